"""What the ledger has counted and need not count again: runs that are complete, and the numbers of a spool that are settled."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem_server.registry.probes import Opening

RECEIVED = "received"
SCHEMA = """
CREATE TABLE complete_runs (
    run TEXT PRIMARY KEY REFERENCES runs(id),
    records TEXT NOT NULL,
    files TEXT NOT NULL,
    ended_utc_ns INTEGER
) STRICT;
CREATE TABLE counted_numbers (
    probe TEXT NOT NULL REFERENCES probes(name),
    spool TEXT NOT NULL,
    through INTEGER NOT NULL,
    from_utc_ns INTEGER NOT NULL,
    arrived INTEGER NOT NULL,
    twice INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    missing TEXT NOT NULL,
    PRIMARY KEY (probe, spool)
) STRICT;
"""
"""``records``: how many of each measurement, ``files``: their names, both JSON; where not all were received, by name why not.
``from_utc_ns``: no record of a number above ``through`` is older. ``missing``: ranges,
both ends included, JSON."""


@dataclass(frozen=True, slots=True)
class CompleteRun:
    """A run that was found complete: its row in the ledger, without the manifest. ``files``: by name ``received``, or why there is none."""

    id: str
    probe: str
    kind: str
    received_utc_ns: int
    status: str
    records: dict[str, int]
    files: dict[str, str]
    ended_utc_ns: int | None


@dataclass(frozen=True, slots=True)
class CountedNumbers:
    """The numbers up to ``through``: ``arrived`` of them, ``twice`` at two times, ``expired`` by retention, ``missing`` as ranges."""

    through: int
    from_utc_ns: int
    arrived: int
    twice: int
    expired: int
    missing: tuple[tuple[int, int], ...]


class Counted:
    """The tables of what was counted. Everything in them can be counted again."""

    def __init__(self, read: Opening, write: Opening) -> None:
        self._read, self._write = read, write

    def complete_runs(self, probe: str | None = None, run: str | None = None) -> list[CompleteRun]:
        """In the order of arrival, of one probe when named; ``run``: this one only."""
        of = "(?1 IS NULL OR probe = ?1)" if run is None else "complete_runs.run = ?2 AND probe = ?1"
        with self._read() as connection:
            rows = connection.execute(
                "SELECT runs.id, runs.probe,"  # noqa: S608
                # One that SQLite does not read (kept by an older gateway) must not hide the others.
                " CASE WHEN json_valid(manifest) THEN json_extract(manifest, '$.kind') ELSE '' END,"
                " received_utc_ns, status, records, files,"
                " ended_utc_ns FROM complete_runs JOIN runs ON runs.id = complete_runs.run"
                f" WHERE {of} ORDER BY received_utc_ns, runs.id",
                (probe,) if run is None else (probe, run),
            ).fetchall()
        return [
            CompleteRun(run, of, kind, received, status, json.loads(records), _by_name(json.loads(files)), ended)
            for run, of, kind, received, status, records, files, ended in rows
        ]

    def keep_runs(self, runs: Sequence[tuple[str, Mapping[str, int], Mapping[str, str], int | None]]) -> None:
        """Write down as complete: id, records by measurement, files as ``CompleteRun`` has them, end in UTC ns."""
        with self._write() as connection:
            connection.executemany(
                # Not OR REPLACE: within the triggers that it fires it would hold too.
                "INSERT INTO complete_runs VALUES (?, ?, ?, ?) ON CONFLICT (run) DO UPDATE SET records = excluded.records,"
                " files = excluded.files, ended_utc_ns = excluded.ended_utc_ns",
                [
                    (run, json.dumps(dict(records)), json.dumps(_shortest(files)), ended)
                    for run, records, files, ended in runs
                ],
            )

    def numbers(self, probe: str) -> dict[str, CountedNumbers]:
        """By spool."""
        with self._read() as connection:
            rows = connection.execute(
                "SELECT spool, through, from_utc_ns, arrived, twice, expired, missing FROM counted_numbers WHERE probe = ?",
                (probe,),
            ).fetchall()
        return {
            spool: CountedNumbers(
                through, from_utc_ns, arrived, twice, expired, tuple((a, b) for a, b in json.loads(missing))
            )
            for spool, through, from_utc_ns, arrived, twice, expired, missing in rows
        }

    def keep_numbers(self, probe: str, spool: str, counted: CountedNumbers) -> None:
        """Write down in place of what was there."""
        row = (counted.through, counted.from_utc_ns, counted.arrived, counted.twice, counted.expired)
        with self._write() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO counted_numbers VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (probe, spool, *row, json.dumps(counted.missing)),
            )

    def forget(self, probe: str | None = None) -> None:
        """Count again: all, or one probe's."""
        with self._write() as connection:
            connection.execute(
                "DELETE FROM complete_runs WHERE ?1 IS NULL OR run IN (SELECT id FROM runs WHERE probe = ?1)", (probe,)
            )
            connection.execute("DELETE FROM counted_numbers WHERE ?1 IS NULL OR probe = ?1", (probe,))


def _shortest(files: Mapping[str, str]) -> list[str] | dict[str, str]:
    return list(files) if set(files.values()) <= {RECEIVED} else dict(files)


def _by_name(told: list[str] | dict[str, str]) -> dict[str, str]:
    return told if isinstance(told, dict) else dict.fromkeys(told, RECEIVED)
