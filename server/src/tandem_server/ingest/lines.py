"""Which lines of a batch may go into the database. Pure: text in, lines and reasons out."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from tandem.schema.line_protocol import encode_point, parse
from tandem.schema.record import RecordError
from tandem_server.http.body import TooMuch
from tandem_server.http.rates import Buckets
from tandem_server.ingest.fast_path import FastPathCache, fast_path
from tandem_server.schema.measurements import check

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
    are spelt as the exporter does pass as they came (``fast_path.py``): the same points. Empty lines count in the numbering
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
