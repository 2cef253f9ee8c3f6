"""One probe's records out of the database, as the joins of ``coverage`` need them. At most an hour or so at once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from tandem_server.derived.coverage import S_NS, Fix, Handover, Poll, RunEnded, Slot, Telling
from tandem_server.store import Series, SeriesStore

UNANSWERED = ("no_answer", "port_lost")
UNSERVED = ("searching", "limited", "no_service")

LONGEST_RUN_S = 2 * 3600
"""A run that takes longer is not found by its beginning."""

LEAST_SAMPLES = 5
"""Of the ten a second: what has fewer is the edge of a run, no second of it."""

Row = dict[str, Any]


class ProbeRecords:
    """Asks ``store`` about ``probe``; spans are [start, end) in UTC ns. StoreDown and QueryError as they come.

    Names cannot be placeholders in a query: those that go into one are constants.
    """

    def __init__(self, store: SeriesStore, probe: str) -> None:
        self._store, self._probe = store, probe

    def polls(self, start: int, end: int) -> list[Poll]:
        """Radio records."""
        rows = self._rows('"rsrp_dbm", "state", "stale"', "radio", start, end, ("path", "operator", "rat"))
        return [
            Poll(
                row["time"],
                row["path"],
                row["operator"],
                row["rat"],
                row["state"] not in UNANSWERED,
                row["state"] not in UNSERVED,
                None if row["stale"] is True else _float(row["rsrp_dbm"]),
            )
            for row in rows
        ]

    def fixes(self, start: int, end: int) -> list[Fix]:
        """Position records that have a position."""
        names = '"latitude_deg", "longitude_deg", "horizontal_error_m"'
        return [
            Fix(row["time"], latitude, longitude, row["mode"] == "full", _float(row["horizontal_error_m"]))
            for row in self._rows(names, "position", start, end, ("mode",))
            if (latitude := _float(row["latitude_deg"])) is not None
            and (longitude := _float(row["longitude_deg"])) is not None
        ]

    def handovers(self, start: int, end: int) -> list[Handover]:
        """Events of that kind."""
        rows = self._rows('"seq"', "event", start, end, ("path", "operator"), "\"kind\" = 'handover'")
        return [Handover(row["time"], row["path"], row["operator"]) for row in rows]

    def tellings(self, start: int, end: int) -> list[Telling]:
        """What it said of its mobility."""
        found = [
            Telling(row["time"], row["mobile"], row["speed_class"] or None)
            for row in self._rows('"mobile", "speed_class"', "health", start, end, ())
            if isinstance(row["mobile"], bool)
        ]
        kinds = "(\"kind\" = 'mobility_start' OR \"kind\" = 'mobility_stop')"
        for row in self._rows('"seq", "speed_class"', "event", start, end, ("kind",), kinds):
            begins = row["kind"] == "mobility_start"
            found.append(Telling(row["time"], begins, row["speed_class"] or None, begins, not begins))
        return found

    def slots(self, start: int, end: int) -> list[Slot]:
        """Seconds of TCP downloads that had a path for themselves: by runs that began in the span, or up to two hours before it."""
        begun = "\"kind\" = 'tcp' AND \"experiment\" = 'download' AND \"pairing\" != 'simultaneous'"
        since = start - LONGEST_RUN_S * S_NS
        runs = {row["run"] for row in self._rows('"seq"', "run_begun", since, end, ("run",), begun)}
        if not runs:
            return []
        rows = self._rows(
            'mean("goodput_bit_per_s") AS goodput, count("goodput_bit_per_s") AS samples',
            "connection",
            start,
            end,
            ("run", "path"),
            "\"kind\" = 'tcp' AND \"end\" = 'probe'",
            "time(1s)",
        )
        return [
            Slot(row["time"], row["path"], float(row["goodput"]))
            for row in rows
            if row["run"] in runs and row["samples"] >= LEAST_SAMPLES and row["goodput"] is not None
        ]

    def pairs(self, start: int, end: int, around_s: int) -> list[list[RunEnded]]:
        """All runs of each pair of which one ended in the span; they are looked for ``around_s`` before and after it."""
        touched = {run.pair for run in self._ended(start, end)}
        if not touched:
            return []
        since, until = start - around_s * S_NS, end + around_s * S_NS
        planned = {
            row["pair"]: int(row["of"])
            for row in self._rows('"of"', "run_begun", since - LONGEST_RUN_S * S_NS, until, ("pair",))
            if row["of"] is not None
        }
        of_pair: dict[str, list[RunEnded]] = defaultdict(list)
        for run in self._ended(since, until):
            if run.pair in touched:
                of_pair[run.pair].append(replace(run, of=planned.get(run.pair)))
        return [of_pair[pair] for pair in sorted(of_pair)]

    def operators(self, runs: Collection[RunEnded]) -> dict[str, str]:
        """By path, as these runs' usage names them."""
        start, end = min(run.utc_ns for run in runs), max(run.utc_ns for run in runs) + 1
        ids = {run.id for run in runs}
        rows = self._rows('"seq"', "run_usage", start, end, ("run", "path", "operator"))
        return {row["path"]: row["operator"] for row in rows if row["run"] in ids and row["operator"]}

    def carried(self, run: RunEnded) -> dict[str, int]:
        """Bytes that came over each path of one run."""
        start = run.utc_ns - round((run.duration_s or 0.0) * 1e9) - 60 * S_NS
        rows = self._rows(
            'max("bytes_received") AS bytes',
            "subflow",
            start,
            run.utc_ns + S_NS,
            ("path", "subflow"),
            '"end" = \'probe\' AND "run" = $run',
            run=run.id,
        )
        out: dict[str, int] = defaultdict(int)
        for row in rows:
            out[row["path"]] += int(row["bytes"] or 0)
        return dict(out)

    def _ended(self, start: int, end: int) -> Iterator[RunEnded]:
        names = '"ok", "goodput_bit_per_s", "duration_s", "fallback"'
        tags = ("run", "kind", "path", "pair", "pairing", "campaign")
        paired = "\"pair\" != '' AND (\"pairing\" = 'sequential' OR \"pairing\" = 'simultaneous')"
        for row in self._rows(names, "run", start, end, tags, paired):
            yield RunEnded(
                utc_ns=row["time"],
                id=row["run"],
                kind=row["kind"],
                path=row["path"],
                pair=row["pair"],
                pairing=row["pairing"],
                campaign=row["campaign"],
                ok=row["ok"] is not False,
                goodput_bit_per_s=_float(row["goodput_bit_per_s"]),
                duration_s=_float(row["duration_s"]),
                fallback=row["fallback"],
                of=None,
            )

    def _rows(
        self,
        columns: str,
        measurement: str,
        start: int,
        end: int,
        tags: tuple[str, ...],
        where: str = "",
        window: str = "",
        **params: str,
    ) -> list[Row]:
        """Each row with its time, columns and tags (empty where absent), series by series."""
        also = f" AND {where}" if where else ""
        groups = ", ".join([*([window] if window else []), *(f'"{tag}"' for tag in tags)])
        by = f" GROUP BY {groups}" if groups else ""
        fill = " fill(none)" if window else ""
        answer = self._store.query(
            f'SELECT {columns} FROM "{measurement}" WHERE "probe" = $probe AND time >= {int(start)} AND time < {int(end)}'  # noqa: S608  constants
            f"{also}{by}{fill}",
            {"probe": self._probe, **params},
        )
        return [row for series in answer for row in _of_series(series, tags)]


def _of_series(series: Series, tags: tuple[str, ...]) -> Iterator[Row]:
    told = {tag: series.tags.get(tag, "") for tag in tags}
    for row in series.rows:
        yield {**told, **dict(zip(series.columns, row, strict=True))}


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def probes_with_records(store: SeriesStore, start: int, end: int) -> list[str]:
    """Names of the probes that polled, ran or noticed anything in the span; in order."""
    found: set[str] = set()
    for measurement in ("radio", "run", "event"):
        answer = store.query(
            f'SELECT first("seq") FROM "{measurement}" WHERE time >= {int(start)} AND time < {int(end)} GROUP BY "probe"'  # noqa: S608  constants
        )
        found |= {series.tags.get("probe", "") for series in answer}
    return sorted(found - {""})


def oldest_record(store: SeriesStore) -> int | None:
    """UTC ns of the first radio or run record that there is."""
    found = [
        int(series.rows[0][0])
        for measurement in ("radio", "run")
        for series in store.query(f'SELECT first("seq") FROM "{measurement}"')  # noqa: S608  constants
        if series.rows
    ]
    return min(found, default=None)
