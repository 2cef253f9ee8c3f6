"""Records out of an InfluxDB 1.x."""

from __future__ import annotations

from collections.abc import Collection

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.source import Row, SourceError
from tandem_server.store import QueryError, Series, SeriesStore, StoreDown


class InfluxSource:
    """``analysis.source.Source`` over a store's client."""

    def __init__(self, influx: SeriesStore) -> None:
        self._influx = influx

    def rows(self, measurement: str, probe: str, start_utc_ns: int | None, end_utc_ns: int | None) -> list[Row]:
        """See ``Source``. One query; the answer is held in memory."""
        span = "" if start_utc_ns is None else f" AND time >= {int(start_utc_ns)}"
        span += "" if end_utc_ns is None else f" AND time <= {int(end_utc_ns)}"
        answer = self._ask(
            f'SELECT * FROM "{_known(measurement)}" WHERE "probe" = $probe{span} GROUP BY *',  # noqa: S608  (see _known)
            probe=probe,
        )
        out = [row for series in answer for row in rows_of(series)]
        return sorted(out, key=lambda row: row.utc_ns)

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> list[int]:
        """See ``Source``."""
        out: list[int] = []
        for boot in sorted(boots):
            answer = self._ask(
                f'SELECT "seq" FROM "{_known(measurement)}" WHERE "probe" = $probe AND "boot" = $boot',  # noqa: S608  (see _known)
                probe=probe,
                boot=boot,
            )
            out += [int(n) for series in answer for n in series.column("seq") if n is not None]
        return out

    def _ask(self, influxql: str, **params: str) -> list[Series]:
        try:
            return self._influx.query(influxql, params)
        except (StoreDown, QueryError) as error:
            raise SourceError(f"the database could not be asked: {error}") from error


def _known(measurement: str) -> str:
    """Names cannot be placeholders in a query: only those of the schema go into one."""
    return MEASUREMENTS[measurement].name


def rows_of(series: Series) -> list[Row]:
    """The records of a series; absent fields and tags are left out."""
    tags = {name: value for name, value in series.tags.items() if value}
    names = series.columns[1:]
    return [
        Row(int(row[0]), tags, {name: value for name, value in zip(names, row[1:], strict=True) if value is not None})
        for row in series.rows
    ]
