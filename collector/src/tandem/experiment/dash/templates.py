"""The identifiers of a SegmentTemplate (ISO/IEC 23009-1, 5.3.9.4.4). Pure."""

from __future__ import annotations

import re

from tandem.experiment.dash.xml_reading import MpdError

_IDENTIFIER = re.compile(r"\$([A-Za-z]*)(%[^$]{0,16})?\$")
_WIDTH = re.compile(r"%0([0-9]{1,2})d\Z")
_WIDEST = 32


def fill(
    template: str, *, representation: str, bandwidth: int, number: int | None = None, time: int | None = None
) -> str:
    """``template`` with ``$RepresentationID$``, ``$Bandwidth$``, ``$Number$``, ``$Time$`` (the last three also as ``$Number%05d$``) and
    ``$$`` filled in. MpdError for any other identifier, for one that has no value here, and for a lone ``$``."""
    values: dict[str, int | None] = {"Bandwidth": bandwidth, "Number": number, "Time": time}
    pieces: list[str] = []
    end = 0
    for match in _IDENTIFIER.finditer(template):
        _literal(template, pieces, end, match.start())
        end = match.end()
        name, form = match[1], match[2]
        if name in ("", "RepresentationID"):
            if form is not None:
                raise MpdError(f"template {template[:80]!r}: {match[0]} takes no format")
            pieces.append(representation if name else "$")
            continue
        value = values.get(name)
        if value is None:
            raise MpdError(f"template {template[:80]!r}: {match[0]} has no value here")
        pieces.append(_formatted(template, value, form))
    _literal(template, pieces, end, len(template))
    return "".join(pieces)


def _literal(template: str, pieces: list[str], start: int, end: int) -> None:
    text = template[start:end]
    if "$" in text:
        raise MpdError(f"template {template[:80]!r}: a $ without its partner")
    pieces.append(text)


def _formatted(template: str, value: int, form: str | None) -> str:
    if form is None:
        return str(value)
    width = _WIDTH.match(form)
    if width is None or not 1 <= int(width[1]) <= _WIDEST:
        raise MpdError(f"template {template[:80]!r}: the format {form!r} is not %0[1 to {_WIDEST}]d")
    return f"{value:0{int(width[1])}d}"
