"""Lines as a probe's exporter writes them, checked without being taken apart: a head seen before, then one regular expression.

What comes is passed on as it is only when the expression of its measurement, made from the table of metrics, describes it wholly: fields in
the order of their names, each at most once, of its type, spelt so that Python and the database read the same number. Everything else, and
everything that is to be refused, takes the long way (``lines.py``), so that there is one place that gives reasons. Pure, but for the cache.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from tandem.schema.metrics import MEASUREMENTS, Field
from tandem.schema.record import SPECS

_HEADS_OF_A_PROBE = 64
_HEAD_CHARACTERS = 256
_WIDE = 2**24 - 1
"""From this maximum on, whole numbers of one digit less are let through unchecked: the rest is rare (cell identities have spare bits)."""


@dataclass(frozen=True, slots=True)
class _Form:
    """``match(line, position of the first space)``: groups are the values of ``bounds`` (None where absent), last the time."""

    match: Callable[[str, int], re.Match[str] | None]
    bounds: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Head:
    """Measurement and tags that were checked: ``text`` as it is stored, None when that is what came."""

    text: str | None
    form: _Form


def _whole(field: Field) -> tuple[str, bool]:
    """The expression of a whole number, and whether its range is still to be checked."""
    least, most = field.minimum, field.maximum
    digits = 18 if most is None else len(str(int(most)))
    ranged = most is not None and most < _WIDE
    if most is not None and not ranged:
        digits -= 1
    if least is not None and least >= 0:
        positive = f"[1-9][0-9]{{0,{digits - 1}}}"
        return (positive if least == 1 else f"(?:0|{positive})"), ranged or least > 1
    return f"(?:0|-?[1-9][0-9]{{0,{digits - 1}}})", ranged or least is not None


def _number(field: Field) -> tuple[str, bool]:
    sign = "" if field.minimum is not None and field.minimum >= 0 else "-?"
    ranged = field.maximum is not None or field.minimum not in (None, 0)
    return f"{sign}[0-9]{{1,15}}\\.[0-9]{{1,18}}(?:e-[0-9]{{2}})?", ranged


def _form(measurement: str) -> _Form:
    parts, bounds = [], []
    for name, field in sorted(SPECS[measurement].items()):
        ranged = False
        if field.kind == "int":
            value, ranged = _whole(field)
        elif field.kind == "float":
            value, ranged = _number(field)
        else:
            value = '"[^"\\\\\\r\\n]*"' if field.kind == "str" else "(?:true|false)"
        if ranged:
            value = f"({value})"
            least, most = field.minimum, field.maximum
            bounds.append((float("-inf") if least is None else least, float("inf") if most is None else most))
        part = f"{re.escape(name)}={value}{'i' if field.kind == 'int' else ''}(?:,|(?= ))"
        parts.append(part if name in ("seq", "monotonic_ns") else f"(?:{part})?")
    # A comma before the time would be a field that is missing. None is possessive: Python before 3.11.5 skips what did not fit.
    return _Form(re.compile(f" {''.join(parts)}(?<!,) ([0-9]{{19}})\\Z").match, tuple(bounds))


_FORMS = {measurement: _form(measurement) for measurement in MEASUREMENTS}


class FastPathCache:
    """Heads of lines by probe, at most ``most`` in all and 64 of a probe. Used by several threads."""

    def __init__(self, most: int = 65_536) -> None:
        self._most, self._count = most, 0
        self._probes: OrderedDict[str, dict[str, Head]] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return self._count

    def of(self, probe: str) -> dict[str, Head]:
        """For ``fast_path``; learnt by ``learn`` only."""
        with self._lock:
            heads = self._probes.setdefault(probe, {})
            self._probes.move_to_end(probe)
            return heads

    def learn(self, probe: str, line: str, stored: str) -> None:
        """``line`` went the long way and became ``stored``: remember its head. One with a backslash is not remembered."""
        came = line[: line.find(" ")]
        text, space, _ = stored.partition(" ")
        if "\\" in came or "\\" in text or not space or len(came) > _HEAD_CHARACTERS or len(text) > _HEAD_CHARACTERS:
            return
        head = Head(None if text == came else text, _FORMS[text.partition(",")[0]])
        with self._lock:
            heads = self._probes.setdefault(probe, {})
            if len(heads) >= _HEADS_OF_A_PROBE:
                self._count -= len(heads)
                heads.clear()
            self._count += came not in heads
            heads[came] = head
            while self._count > self._most:
                _, forgotten = self._probes.popitem(last=False)
                self._count -= len(forgotten)


def fast_path(line: str, heads: dict[str, Head], oldest_utc_ns: int, newest_utc_ns: int) -> str | None:
    """The line to store when it is one that needs no more looking at, else None."""
    end = line.find(" ")
    head = heads.get(line[:end])
    if head is None:
        return None
    form = head.form
    match = form.match(line, end)
    if match is None:
        return None
    *values, time = match.groups()
    if not oldest_utc_ns <= int(time) <= newest_utc_ns:
        return None
    for text, (least, most) in zip(values, form.bounds, strict=True):
        if text is not None and not least <= float(text) <= most:
            return None
    return line if head.text is None else head.text + line[end:]
