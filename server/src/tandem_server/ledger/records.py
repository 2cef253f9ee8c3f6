"""What the database holds, in few queries whatever the number of runs: by run, by boot, by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from tandem.schema.metrics import MEASUREMENTS
from tandem_server.ledger.numbers import BootCount, Numbers
from tandem_server.ledger.states import SpoolReport, report_of
from tandem_server.store import Series, SeriesStore

OF_A_RUN = tuple(m.name for m in MEASUREMENTS.values() if "run" in m.tags)
"""Measurements whose records name their run."""

_ALL = ", ".join(f'"{name}"' for name in MEASUREMENTS)
_RUNS = ", ".join(f'"{name}"' for name in OF_A_RUN)
_HOUR_NS = 3600 * 10**9
_AT_ONCE = 200_000
"""So many numbers are looked at together: some MB."""


class RecordCounts:
    """Asks ``store``; StoreDown and QueryError as they come. Records of the sender have no ``seq`` and are not counted.

    Names cannot be placeholders in a query: those that go into one are constants of the schema.
    """

    def __init__(self, store: SeriesStore) -> None:
        self._store = store

    def of_runs(self, probe: str | None, since_utc_ns: int | None) -> dict[tuple[str, str], dict[str, int]]:
        """By probe and run, how many records of each measurement: one query."""
        out: dict[tuple[str, str], dict[str, int]] = {}
        for series in self._ask(
            f'SELECT count("seq") FROM {_RUNS}',  # noqa: S608  constants
            _where(probe, since_utc_ns),
            'GROUP BY "probe", "run"',
            probe,
        ):
            of_run = out.setdefault((series.tags.get("probe", ""), series.tags.get("run", "")), {})
            of_run[series.name] = int(series.rows[0][1])
        return out

    def of_named(
        self, runs: Collection[str], since_utc_ns: int | None, until_utc_ns: int
    ) -> dict[tuple[str, str], dict[str, int]]:
        """The same of these runs alone, in this time: what other runs there are costs nothing."""
        params = {f"run{n}": run for n, run in enumerate(runs)}
        any_of = " OR ".join(f'"run" = ${name}' for name in params)
        where = f"{_where(None, since_utc_ns)} AND time <= {until_utc_ns} AND ({any_of})"
        out: dict[tuple[str, str], dict[str, int]] = {}
        for series in self._store.query(f'SELECT count("seq") FROM {_RUNS}{where} GROUP BY "probe", "run"', params):  # noqa: S608
            of_run = out.setdefault((series.tags.get("probe", ""), series.tags.get("run", "")), {})
            of_run[series.name] = int(series.rows[0][1])
        return out

    def reports(self, probe: str | None, since_utc_ns: int | None = None) -> list[SpoolReport]:
        """The newest report of each probe and boot."""
        end = 'GROUP BY "probe", "boot" ORDER BY time DESC LIMIT 1'
        found = self._ask('SELECT * FROM "spool"', _where(probe, since_utc_ns), end, probe)
        found_reports = (
            report_of(
                s.tags.get("probe", ""),
                s.tags.get("boot", ""),
                int(s.rows[0][0]),
                dict(zip(s.columns, s.rows[0], strict=True)),
            )
            for s in found
        )
        return [report for report in found_reports if report is not None]

    def spool_of(self, probe: str, boot: str) -> str | None:
        """The id of the spool that reported in this boot."""
        found = self._store.query(
            'SELECT last("spool") FROM "spool" WHERE "probe" = $probe AND "boot" = $boot',
            {"probe": probe, "boot": boot},
        )
        return str(found[0].rows[0][1]) if found else None

    def of_boots(self, probe: str, since_utc_ns: int | None) -> dict[str, BootCount]:
        """By boot, how many numbered records, the lowest number and the highest: one query."""
        what = f'SELECT count("seq"), min("seq"), max("seq") FROM {_ALL}'  # noqa: S608  constants
        out: dict[str, BootCount] = {}
        for series in self._ask(what, _where(probe, since_utc_ns), 'GROUP BY "boot"', probe):
            if None in series.rows[0][1:4]:
                continue  # its first record arrived between the database's counting and its adding up: it counts the next time
            count, low, high = (int(v) for v in series.rows[0][1:4])
            boot = series.tags.get("boot", "")
            was = out.get(boot, BootCount(0, low, high))
            out[boot] = BootCount(was.count + count, min(was.low, low), max(was.high, high))
        return out

    def between(
        self, probe: str, boots: Collection[str] | None, above: int, through: int | None, since_utc_ns: int | None
    ) -> tuple[int, int]:
        """How many records have a number above ``above`` and up to ``through``, and the sum of these numbers. ``boots`` None: of all."""
        where = _where(probe, since_utc_ns) + _numbered(above, through)
        count = total = 0
        for series in self._by_boot('SELECT count("seq"), sum("seq")', where, "", probe, boots):
            if None not in series.rows[0][1:3]:  # as above
                count, total = count + int(series.rows[0][1]), total + int(series.rows[0][2])
        return count, total

    def numbers(
        self, probe: str, boots: Collection[str] | None, above: int, through: int, since_utc_ns: int | None
    ) -> Iterator[Numbers]:
        """These numbers themselves, as they come from the database: of about ``_AT_ONCE`` at the most, or of an hour."""
        where = _where(probe, since_utc_ns) + _numbered(above, through)
        hours: Counter[int] = Counter()
        for series in self._by_boot('SELECT count("seq")', where, ", time(1h) fill(none)", probe, boots):
            hours.update({int(row[0]): int(row[1]) for row in series.rows if row[1]})
        spans: list[list[int]] = []
        held = _AT_ONCE
        for hour, count in sorted(hours.items()):
            if held + count > _AT_ONCE:
                spans.append([hour])
                held = 0
            spans[-1].append(hour + _HOUR_NS)
            held += count
        for start, *_, end in spans:
            span = f"{where} AND time >= {start} AND time < {end}"
            # A measurement's numbers are every third or so: those of all measurements together are few ranges.
            parts = [
                np.array(series.column("seq"), dtype=np.int64)
                for series in self._by_boot('SELECT "seq"', span, "", probe, boots)
            ]
            if parts:
                yield np.concatenate(parts)

    def newest(self, measurement: str, probe: str | None, since_utc_ns: int) -> dict[str, int]:
        """By probe, the time of its newest record of this measurement since then."""
        name = MEASUREMENTS[measurement].name
        what = f'SELECT last("seq") FROM "{name}"'  # noqa: S608  of the schema
        found = self._ask(what, _where(probe, since_utc_ns), 'GROUP BY "probe"', probe)
        return {series.tags.get("probe", ""): int(series.rows[0][0]) for series in found}

    def waiting_between(self, probe: str | None, start_utc_ns: int, end_utc_ns: int) -> dict[str, int]:
        """By probe, how many records waited at the last report in this time."""
        where = f"{_where(probe, start_utc_ns)} AND time < {end_utc_ns}"
        end = 'GROUP BY "probe" ORDER BY time DESC LIMIT 1'
        out: dict[str, int] = {}
        for s in self._ask('SELECT * FROM "spool"', where, end, probe):
            fields = dict(zip(s.columns, s.rows[0], strict=True))
            report = report_of(s.tags.get("probe", ""), str(fields.get("boot", "")), int(s.rows[0][0]), fields)
            if report is not None:
                out[report.probe] = report.waiting
        return out

    def _by_boot(
        self, what: str, where: str, further: str, probe: str, boots: Collection[str] | None
    ) -> Iterator[Series]:
        for series in self._store.parts(f'{what} FROM {_ALL}{where} GROUP BY "boot"{further}', {"probe": probe}):
            if boots is None or series.tags.get("boot", "") in boots:
                yield series

    def _ask(self, what: str, where: str, end: str, probe: str | None) -> list[Series]:
        params: dict[str, Any] = {} if probe is None else {"probe": probe}
        return self._store.query(f"{what}{where} {end}", params)


def _where(probe: str | None, since_utc_ns: int | None) -> str:
    conditions = [] if probe is None else ['"probe" = $probe']
    # Without a lower bound a query with GROUP BY time begins in 1677; nothing is stored of before 2020.
    conditions.append(f"time >= {1_577_836_800 * 10**9 if since_utc_ns is None else since_utc_ns}")
    return " WHERE " + " AND ".join(conditions)


def _numbered(above: int, through: int | None) -> str:
    return f' AND "seq" > {above}' + ("" if through is None else f' AND "seq" <= {through}')
