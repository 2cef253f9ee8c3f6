"""Which lines of a batch may go into the database. Text in, lines and reasons out; but for the cache, pure.

Lines as a probe's exporter writes them are checked without being taken apart: a head seen before, then one regular expression.
Such a line is passed on as it is only when the expression of its measurement, made from the table of metrics, describes it
wholly: fields in the order of their names, each at most once, of its type, spelt so that Python and the database read the same
number. Everything else, and everything that is to be refused, takes the long way (``_checked``), so that there is one place that
gives reasons.
"""

from __future__ import annotations

import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from tandem.schema.line_protocol import encode_point, parse
from tandem.schema.metrics import MEASUREMENTS, Field
from tandem.schema.record import SPECS, RecordError
from tandem_server.http.body import TooMuch
from tandem_server.http.rates import Buckets
from tandem_server.schema.measurements import check

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
    for name, spec in sorted(SPECS[measurement].items()):
        ranged = False
        if spec.kind == "int":
            value, ranged = _whole(spec)
        elif spec.kind == "float":
            value, ranged = _number(spec)
        else:
            value = '"[^"\\\\\\r\\n]*"' if spec.kind == "str" else "(?:true|false)"
        if ranged:
            value = f"({value})"
            least, most = spec.minimum, spec.maximum
            bounds.append((float("-inf") if least is None else least, float("inf") if most is None else most))
        part = f"{re.escape(name)}={value}{'i' if spec.kind == 'int' else ''}(?:,|(?= ))"
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


LINES_LIMIT = 10_000
BYTES_LIMIT = 8 * 1024 * 1024

EARLIEST_UTC_NS = 1_577_836_800 * 10**9
"""2020-01-01: an earlier time is a clock that was never set (a Raspberry Pi without a battery starts in 1970)."""


REASON_CHARACTERS = 500
_HOUR_S = 3600.0
_HEAD = re.compile(r"[^\\ ]*(?:\\.[^\\ ]*)*").match
"""Measurement and tags: up to the first blank that no backslash is before."""


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """Times from ``oldest_utc_ns`` to ``newest_utc_ns``, both included, may be stored."""

    oldest_utc_ns: int
    newest_utc_ns: int

    @classmethod
    def at(cls, now_utc_ns: int, future_s: float, retention_days: int | None) -> TimeWindow:
        """The window now. ``future_s``: how far a probe's clock may run ahead."""
        oldest = EARLIEST_UTC_NS
        if retention_days is not None:
            oldest = max(oldest, now_utc_ns - retention_days * 86_400 * 10**9)
        return cls(oldest, now_utc_ns + int(future_s * 1e9))


@dataclass(slots=True)
class ValidatedBatch:
    """``lines`` as they go into the database, ``origins`` their line numbers in the request from 0, ``rejected`` the others.
    ``series``: a number for each that ``lines`` are of."""

    lines: list[str] = field(default_factory=list)
    origins: list[int] = field(default_factory=list)
    rejected: list[tuple[int, str]] = field(default_factory=list)
    series: set[int] = field(default_factory=set)


class NewSeries:
    """Bounds the series that each probe begins: ``per_hour``, of which what it did not use comes back by and by. What it wrote in this hour
    or the one before is not new. Used by one thread."""

    def __init__(self, per_hour: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self._per_hour, self._now_s = per_hour, now_s
        self._begun = Buckets(per_hour, now=now_s, period_s=_HOUR_S)
        self._hour = 0
        self._seen: dict[str, set[int]] = {}
        self._before: dict[str, set[int]] = {}

    def wait_s(self, probe: str, series: set[int]) -> float:
        """0: ``series`` (``ValidatedBatch``) are counted, and may go in; else seconds until they may."""
        hour = int(self._now_s() // _HOUR_S)
        if hour != self._hour:
            self._before = self._seen if hour == self._hour + 1 else {}
            self._seen, self._hour = {}, hour
        seen = self._seen.setdefault(probe, set())
        new = len(series - seen - self._before.get(probe, set()))
        # A batch with more than an hour's worth has to get through, too, when nothing was used.
        if new and (wait_s := self._begun.wait_s(probe, min(new, self._per_hour))) > 0:
            return wait_s
        self._begun.take(probe, new)
        seen |= series
        return 0.0


def validate_batch(body: str, probe: str, window: TimeWindow, cache: FastPathCache | None = None) -> ValidatedBatch:
    """Check every line of ``body`` against the schema and the window, and set its tag ``probe``. TooMuch above 10,000 lines.

    Lines are written anew from what was understood: what the database reads is what was checked. With ``cache``, those that
    are spelt as the exporter does pass as they came (``fast_path``): the same points. Empty lines count in the numbering
    and are otherwise passed over.
    """
    if body.count("\n") - body.endswith("\n") >= LINES_LIMIT:
        raise TooMuch(f"more than {LINES_LIMIT} lines")
    batch = ValidatedBatch()
    mine = {} if cache is None else cache.of(probe)
    oldest, newest = window.oldest_utc_ns, window.newest_utc_ns
    for number, line in enumerate(body.split("\n")):
        if not line:
            continue
        stored = fast_path(line, mine, oldest, newest)
        if stored is None:
            try:
                stored = _checked(line, probe, window)
            except RecordError as error:
                batch.rejected.append((number, str(error)[:REASON_CHARACTERS]))
                continue
            if cache is not None:
                cache.learn(probe, line, stored)
        batch.lines.append(stored)
        batch.origins.append(number)
    batch.series = {hash(line[: _HEAD(line).end()]) for line in batch.lines}  # type: ignore[union-attr]  # it matches any text
    return batch


def _checked(line: str, probe: str, window: TimeWindow) -> str:
    point = parse(line)
    tags, fields = point.tags, point.fields
    tags["probe"] = probe
    check(point.measurement, tags, fields)
    for common in ("seq", "monotonic_ns"):
        if common not in fields:
            raise RecordError(f"{point.measurement}: no field {common!r}")
    if "boot" not in tags:
        raise RecordError(f"{point.measurement}: no tag 'boot'")
    utc_ns = point.utc_ns
    if utc_ns is None:
        raise RecordError(f"{point.measurement}: no time")
    if utc_ns < window.oldest_utc_ns:
        raise RecordError(f"{point.measurement}: time {utc_ns} ns is before {window.oldest_utc_ns} ns, the oldest kept")
    if utc_ns > window.newest_utc_ns:
        raise RecordError(f"{point.measurement}: time {utc_ns} ns is in the future (after {window.newest_utc_ns} ns)")
    return encode_point(point)
