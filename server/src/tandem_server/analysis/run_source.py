"""The records of one run out of an InfluxDB 1.x, in bounded memory whatever a probe claims of its run."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.influx_source import rows_of
from tandem_server.analysis.source import Row, SourceError
from tandem_server.ledger.numbers import Numbers
from tandem_server.store import QueryError, SeriesStore, StoreDown

_SAMPLES, _SERIES = 6000, 64
"""Of one subflow, and how many of these, at most; where a run has more samples, each row is a mean."""
_EVENTS, _EVENT_SERIES = 100, 200
"""Of one kind and path, and how many kinds and paths."""
_SAMPLE_NS = 100 * 10**6
_READ = {
    "subflow": ("goodput_bit_per_s", "rtt_ms"),
    "connection": ("goodput_bit_per_s",),
    "event": ("change_db", "from_eci", "to_eci", "detail"),
}


class RunSource:
    """``analysis.source.Source`` of what belongs to one run, and of the events meanwhile; other measurements are empty."""

    def __init__(self, store: SeriesStore, run: str) -> None:
        self._store, self._run = store, run

    def step_ns(self, start_utc_ns: int, end_utc_ns: int) -> int | None:
        """Over how long rows of samples are means in this time; None: they are the samples themselves."""
        step = -(-(end_utc_ns - start_utc_ns) // _SAMPLES)
        return None if step <= _SAMPLE_NS else -(-step // 10**9) * 10**9

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,  # noqa: ARG002  as ``Source`` has it
    ) -> list[Row]:
        """See ``Source``; both times must be given, and the fields are ``_READ``."""
        if measurement not in _READ or start_utc_ns is None or end_utc_ns is None:
            return []
        where = f'"probe" = $probe AND time >= {int(start_utc_ns)} AND time <= {int(end_utc_ns)}'
        step, read = self.step_ns(start_utc_ns, end_utc_ns), _READ[measurement]
        if measurement == "event":
            what, by, bound = ", ".join(f'"{name}"' for name in read), "*", (_EVENTS, _EVENT_SERIES)
            what += ', "monotonic_ns"'  # so that an event without any of these is a row, too
        else:
            where += ' AND "run" = $run'
            how = "{}" if step is None else "mean({0}) AS {0}"
            what = ", ".join(how.format(f'"{name}"') for name in read)
            by = "*" if step is None else f"*, time({step}ns) fill(none)"
            bound = (2 * _SAMPLES, _SERIES)
        name = MEASUREMENTS[measurement].name
        asked = f'SELECT {what} FROM "{name}" WHERE {where} GROUP BY {by} LIMIT {bound[0]} SLIMIT {bound[1]}'  # noqa: S608  of the schema
        try:
            answer = self._store.query(asked, {"probe": probe, "run": self._run})
        except (StoreDown, QueryError) as error:
            raise SourceError(f"the database could not be asked: {error}") from error
        return [row for series in answer for row in rows_of(series)]

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:  # noqa: ARG002  as ``Source`` has it
        """See ``Source``: none, the ledger has counted them."""
        return np.empty(0, dtype=np.int64)
