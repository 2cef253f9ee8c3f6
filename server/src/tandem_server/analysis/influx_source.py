"""Records out of an InfluxDB 1.x."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.analysis.source import Row, SourceError
from tandem_server.ledger.numbers import Numbers
from tandem_server.store import QueryError, Series, SeriesStore, StoreDown


class InfluxSource:
    """``analysis.source.Source`` over a store's client."""

    def __init__(self, influx: SeriesStore) -> None:
        self._influx = influx

    @property
    def store(self) -> SeriesStore:
        """What it asks."""
        return self._influx

    def rows(
        self,
        measurement: str,
        probe: str,
        start_utc_ns: int | None,
        end_utc_ns: int | None,
        fields: Sequence[str] | None = None,
    ) -> Iterator[Row]:
        """See ``Source``. One query, whose answer is not held: a campaign of weeks has millions of records."""
        span = "" if start_utc_ns is None else f" AND time >= {int(start_utc_ns)}"
        span += "" if end_utc_ns is None else f" AND time <= {int(end_utc_ns)}"
        # Every record has the last one: without it those that have none of the fields would be no rows.
        what = "*" if fields is None else ", ".join(f'"{name}"' for name in dict.fromkeys((*fields, "monotonic_ns")))
        answer = self._ask(
            f'SELECT {what} FROM "{_known(measurement)}" WHERE "probe" = $probe{span} GROUP BY *',  # noqa: S608  (see _known)
            probe=probe,
        )
        return (row for series in answer for row in rows_of(series))

    def numbers(self, measurement: str, probe: str, boots: Collection[str]) -> Numbers:
        """See ``Source``."""
        parts = [
            np.array([n for n in series.column("seq") if n is not None], dtype=np.int64)
            for boot in sorted(boots)
            for series in self._ask(
                f'SELECT "seq" FROM "{_known(measurement)}" WHERE "probe" = $probe AND "boot" = $boot',  # noqa: S608  (see _known)
                probe=probe,
                boot=boot,
            )
        ]
        return np.concatenate([np.empty(0, dtype=np.int64), *parts])

    def _ask(self, influxql: str, **params: str) -> Iterator[Series]:
        try:
            yield from self._influx.parts(influxql, params)
        except (StoreDown, QueryError) as error:
            raise SourceError(f"the database could not be asked: {error}") from error


def _known(measurement: str) -> str:
    """Names cannot be placeholders in a query: only those of the schema go into one."""
    return MEASUREMENTS[measurement].name


def rows_of(series: Series) -> Iterator[Row]:
    """The records of a series; absent fields and tags are left out."""
    tags = {name: value for name, value in series.tags.items() if value}
    names = series.columns[1:]
    for row in series.rows:
        fields = {name: value for name, value in zip(names, row[1:], strict=True) if value is not None}
        yield Row(int(row[0]), tags, fields)
