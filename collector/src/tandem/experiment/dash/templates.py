"""The identifiers of a SegmentTemplate (ISO/IEC 23009-1, 5.3.9.4.4). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from tandem.experiment.dash.xml_reading import MpdError

_IDENTIFIER = re.compile(r"\$([A-Za-z]*)(%[^$]{0,16})?\$")
_WIDTH = re.compile(r"%0([0-9]{1,2})d\Z")
_WIDEST = 32
_FIRST_MARK, _MARKS = 0xE000, 16
_MARK = re.compile(f"([{chr(_FIRST_MARK)}-{chr(_FIRST_MARK + _MARKS - 1)}])")
"""Stand in for numbers and times while the rest is resolved: characters of the private use area, which no URL has."""

Filled = Callable[[int | None, int | None], str]
"""From number and time (None: it has none) to the text; MpdError when the one that is needed is None."""


def prepare(template: str, representation: str, bandwidth: int, resolve: Callable[[str], str]) -> Filled:
    """``template`` with ``$RepresentationID$``, ``$Bandwidth$`` and ``$$`` filled in and ``resolve`` applied, once; ``$Number$`` and
    ``$Time$`` are left for each segment (they and the bandwidth also as ``$Number%05d$``). Digits cannot change how a URL is taken apart;
    an id can. MpdError for any other identifier and for a lone ``$``."""
    if _MARK.search(template + representation):
        raise MpdError(f"template {template[:80]!r}: characters that no URL has")
    pieces: list[str] = []
    widths: list[tuple[str, int]] = []
    end = 0
    for match in _IDENTIFIER.finditer(template):
        _literal(template, pieces, end, match.start())
        end = match.end()
        name, form = match[1], match[2]
        if name in ("", "RepresentationID"):
            if form is not None:
                raise MpdError(f"template {template[:80]!r}: {match[0]} takes no format")
            pieces.append(representation if name else "$")
        elif name == "Bandwidth":
            pieces.append(f"{bandwidth:0{_width(template, form)}d}")
        elif name in ("Number", "Time") and len(widths) < _MARKS:
            pieces.append(chr(_FIRST_MARK + len(widths)))
            widths.append((name, _width(template, form)))
        else:
            raise MpdError(f"template {template[:80]!r}: {match[0]} has no value here")
    _literal(template, pieces, end, len(template))
    parts = _MARK.split(resolve("".join(pieces)))

    def filled(number: int | None, time: int | None) -> str:
        told = list(parts)
        for place in range(1, len(parts), 2):
            name, width = widths[ord(parts[place]) - _FIRST_MARK]
            value = number if name == "Number" else time
            if value is None:
                raise MpdError(f"template {template[:80]!r}: ${name}$ has no value here")
            told[place] = f"{value:0{width}d}"
        return "".join(told)

    return filled


def fill(
    template: str, *, representation: str, bandwidth: int, number: int | None = None, time: int | None = None
) -> str:
    """``prepare`` for one text that is not resolved."""
    return prepare(template, representation, bandwidth, lambda text: text)(number, time)


def _literal(template: str, pieces: list[str], start: int, end: int) -> None:
    text = template[start:end]
    if "$" in text:
        raise MpdError(f"template {template[:80]!r}: a $ without its partner")
    pieces.append(text)


def _width(template: str, form: str | None) -> int:
    if form is None:
        return 1
    width = _WIDTH.match(form)
    if width is None or not 1 <= int(width[1]) <= _WIDEST:
        raise MpdError(f"template {template[:80]!r}: the format {form!r} is not %0[1 to {_WIDEST}]d")
    return int(width[1])
