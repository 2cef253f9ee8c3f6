"""What the ledger has found, so that it need not look again: runs that are complete, the numbers of a spool that are settled, each run as
it was judged last with the time to look again, and sums of that by probe, campaign and state.

The file itself keeps runs and sums true, by triggers, whoever writes: a session, a manifest, a trace, a recount makes its run due; a run
that is judged moves from one sum to another. So neither what is settled nor the number of runs costs anything when the sums are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tandem.schema.manifest import CHECK_RUN, ROUND_TRIPS_RUN
from tandem_server.registry.table import Table

RECEIVED = "received"
COUNTED = """
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


class Counted(Table):
    """The tables of what was counted. Everything in them can be counted again."""

    def complete_runs(self, probe: str | None = None, run: str | None = None) -> list[CompleteRun]:
        """In the order of arrival, of one probe when named; ``run``: this one only."""
        of = "(?1 IS NULL OR probe = ?1)" if run is None else "complete_runs.run = ?2 AND probe = ?1"
        rows = self._rows(
            "SELECT runs.id, runs.probe,"  # noqa: S608
            # One that SQLite does not read (kept by an older gateway) must not hide the others.
            " CASE WHEN json_valid(manifest) THEN json_extract(manifest, '$.kind') ELSE '' END,"
            " received_utc_ns, status, records, files,"
            " ended_utc_ns FROM complete_runs JOIN runs ON runs.id = complete_runs.run"
            f" WHERE {of} ORDER BY received_utc_ns, runs.id",
            (probe,) if run is None else (probe, run),
        )
        return [
            CompleteRun(run, of, kind, received, status, json.loads(records), _by_name(json.loads(files)), ended)
            for run, of, kind, received, status, records, files, ended in rows
        ]

    def keep_runs(self, runs: Sequence[tuple[str, Mapping[str, int], Mapping[str, str], int | None]]) -> None:
        """Write down as complete: id, records by measurement, files as ``CompleteRun`` has them, end in UTC ns."""
        self._do_all(
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
        rows = self._rows(
            "SELECT spool, through, from_utc_ns, arrived, twice, expired, missing FROM counted_numbers WHERE probe = ?",
            (probe,),
        )
        return {
            spool: CountedNumbers(
                through, from_utc_ns, arrived, twice, expired, tuple((a, b) for a, b in json.loads(missing))
            )
            for spool, through, from_utc_ns, arrived, twice, expired, missing in rows
        }

    def keep_numbers(self, probe: str, spool: str, counted: CountedNumbers) -> None:
        """Write down in place of what was there."""
        row = (counted.through, counted.from_utc_ns, counted.arrived, counted.twice, counted.expired)
        self._do(
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


def _by_name(files: list[str] | dict[str, str]) -> dict[str, str]:
    return files if isinstance(files, dict) else dict.fromkeys(files, RECEIVED)


_SUMS = ("runs", "failed", "records_promised", "records_arrived", "files_promised", "files_received")


def _moved(row: str, sign: str) -> str:
    """The statement that adds (or takes) a row of ``ledger_runs`` to its sum."""
    values = ", ".join(f"{sign}{'1' if name == 'runs' else f'{row}.{name}'}" for name in _SUMS)
    added = ", ".join(f"{name} = {name} + excluded.{name}" for name in _SUMS)
    return (
        f"INSERT INTO ledger_sums (probe, campaign, state, {', '.join(_SUMS)}) VALUES ({row}.probe, {row}.campaign, {row}.state, {values})"  # noqa: S608
        f" ON CONFLICT (probe, campaign, state) DO UPDATE SET {added};"
    )


JUDGED_RUNS = f"""
CREATE TABLE ledger_runs (
    probe TEXT NOT NULL REFERENCES probes(name),
    run TEXT NOT NULL,
    campaign TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL DEFAULT 'uncounted',
    failed INTEGER NOT NULL DEFAULT 0,
    records_promised INTEGER NOT NULL DEFAULT 0,
    records_arrived INTEGER NOT NULL DEFAULT 0,
    files_promised INTEGER NOT NULL DEFAULT 0,
    files_received INTEGER NOT NULL DEFAULT 0,
    lacks_records INTEGER NOT NULL DEFAULT 0,
    lacks_files INTEGER NOT NULL DEFAULT 0,
    ended_utc_ns INTEGER NOT NULL,
    heard_utc_ns INTEGER NOT NULL DEFAULT 0,
    due_utc_ns INTEGER DEFAULT 0,
    touched INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (probe, run)
) STRICT;
CREATE TABLE ledger_sums (
    probe TEXT NOT NULL,
    campaign TEXT NOT NULL,
    state TEXT NOT NULL,
    runs INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    records_promised INTEGER NOT NULL,
    records_arrived INTEGER NOT NULL,
    files_promised INTEGER NOT NULL,
    files_received INTEGER NOT NULL,
    PRIMARY KEY (probe, campaign, state)
) STRICT;
INSERT INTO ledger_runs (probe, run, ended_utc_ns) SELECT probe, id, received_utc_ns FROM runs;
CREATE INDEX sessions_of_run ON sessions (probe, run);
INSERT INTO ledger_runs (probe, run, ended_utc_ns)
    SELECT probe, run, max(opened_utc_ns) FROM sessions WHERE run <> '{CHECK_RUN}' GROUP BY probe, run ON CONFLICT (probe, run) DO NOTHING;
INSERT INTO ledger_sums SELECT probe, '', 'uncounted', count(*), 0, 0, 0, 0, 0 FROM ledger_runs GROUP BY probe;
CREATE INDEX ledger_due ON ledger_runs (due_utc_ns, ended_utc_ns DESC) WHERE due_utc_ns IS NOT NULL;
CREATE INDEX ledger_open ON ledger_runs (probe, campaign, lacks_records, lacks_files, ended_utc_ns)
    WHERE state IN ('waiting', 'missing');
CREATE INDEX ledger_unheard ON ledger_runs (probe, ended_utc_ns) WHERE state = 'waiting' AND heard_utc_ns <= ended_utc_ns;
CREATE INDEX ledger_complete ON ledger_runs (ended_utc_ns) WHERE state = 'complete';
CREATE TRIGGER ledger_run_new AFTER INSERT ON ledger_runs BEGIN
    {_moved("new", "")}
END;
CREATE TRIGGER ledger_run_judged AFTER UPDATE ON ledger_runs BEGIN
    {_moved("old", "-")}
    {_moved("new", "")}
END;
CREATE TABLE trace_sums (
    probe TEXT PRIMARY KEY,
    received INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT;
INSERT INTO trace_sums SELECT probe, count(*), sum(bytes), sum(stored_bytes) FROM traces GROUP BY probe;
CREATE TRIGGER trace_received AFTER INSERT ON traces BEGIN
    INSERT INTO trace_sums VALUES (new.probe, 1, new.bytes, new.stored_bytes) ON CONFLICT (probe) DO UPDATE SET
    received = received + 1, bytes = bytes + excluded.bytes, stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER ledger_session AFTER INSERT ON sessions WHEN new.run <> '{CHECK_RUN}' BEGIN
    INSERT INTO ledger_runs (probe, run, ended_utc_ns) VALUES (new.probe, new.run, new.opened_utc_ns) ON CONFLICT (probe, run) DO NOTHING;
END;
CREATE TRIGGER ledger_manifest AFTER INSERT ON runs BEGIN
    INSERT INTO ledger_runs (probe, run, ended_utc_ns) VALUES (new.probe, new.id, new.received_utc_ns)
    ON CONFLICT (probe, run) DO UPDATE SET due_utc_ns = 0, touched = touched + 1;
END;
CREATE TRIGGER ledger_manifest_again AFTER UPDATE OF manifest ON runs WHEN old.manifest <> new.manifest BEGIN
    UPDATE ledger_runs SET due_utc_ns = 0, touched = touched + 1 WHERE probe = new.probe AND run = new.id;
END;
CREATE TRIGGER ledger_trace AFTER INSERT ON traces WHEN new.run IS NOT NULL BEGIN
    UPDATE ledger_runs SET due_utc_ns = 0, touched = touched + 1
    WHERE probe = new.probe AND run = new.run AND state IN ('waiting', 'missing');
END;
CREATE TRIGGER ledger_found_complete AFTER INSERT ON complete_runs BEGIN
    UPDATE ledger_runs SET due_utc_ns = 0, touched = touched + 1
    WHERE run = new.run AND probe = (SELECT probe FROM runs WHERE id = new.run) AND state IN ('uncounted', 'waiting', 'missing');
END;
CREATE TRIGGER ledger_recount AFTER DELETE ON complete_runs BEGIN
    UPDATE ledger_runs SET due_utc_ns = 0, touched = touched + 1
    WHERE run = old.run AND probe = (SELECT probe FROM runs WHERE id = old.run);
END;
"""  # noqa: S608  constants
"""``state``: one of the ledger's, or ``uncounted``: not looked at yet. ``campaign``: '' without one. ``lacks_records``: 1 when
records or the manifest are not all here. ``heard_utc_ns``: what was recorded before this was settled at the probe when it was judged
last. ``due_utc_ns``: when to look again; NULL: not before something happens. ``touched``: counts what happened."""

NO_ROUND_TRIPS = f"""
DROP TRIGGER IF EXISTS ledger_session;
CREATE TRIGGER ledger_session AFTER INSERT ON sessions WHEN new.run NOT IN ('{CHECK_RUN}', '{ROUND_TRIPS_RUN}') BEGIN
    INSERT INTO ledger_runs (probe, run, ended_utc_ns) VALUES (new.probe, new.run, new.opened_utc_ns) ON CONFLICT (probe, run) DO NOTHING;
END;
"""  # noqa: S608  constants
"""Round trips measured all the time are no run."""

SAMPLED = """
CREATE TABLE sampled_runs (
    probe TEXT NOT NULL REFERENCES probes(name),
    run TEXT NOT NULL,
    touched INTEGER NOT NULL,
    PRIMARY KEY (probe, run)
) STRICT, WITHOUT ROWID;
"""
"""Runs whose samples are in files, as of what had happened to them."""

_JUDGED = "campaign", "state", *_SUMS[1:], "lacks_records", "lacks_files", "ended_utc_ns", "heard_utc_ns", "due_utc_ns"


@dataclass(frozen=True, slots=True)
class DueRun:
    """A run to look at. ``ended_utc_ns``: as far as known; ``touched``: for ``keep``."""

    probe: str
    run: str
    ended_utc_ns: int
    heard_utc_ns: int
    touched: int


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """What was found of one; see the table."""

    probe: str
    run: str
    touched: int
    campaign: str
    state: str
    failed: bool
    records_promised: int
    records_arrived: int
    files_promised: int
    files_received: int
    lacks_records: bool
    lacks_files: bool
    ended_utc_ns: int
    heard_utc_ns: int
    due_utc_ns: int | None


@dataclass(frozen=True, slots=True)
class LedgerSum:
    """Over the runs of one probe, campaign ('': of none) and state."""

    probe: str
    campaign: str
    state: str
    runs: int
    failed: int
    records_promised: int
    records_arrived: int
    files_promised: int
    files_received: int


class LedgerRuns(Table):
    """The two tables."""

    def due(self, now_utc_ns: int, most: int) -> list[DueRun]:
        """At most so many that are due, first those to which something happened, the newest of these first."""
        rows = self._rows(
            "SELECT probe, run, ended_utc_ns, heard_utc_ns, touched FROM ledger_runs"
            " WHERE due_utc_ns <= ? ORDER BY due_utc_ns, ended_utc_ns DESC LIMIT ?",
            (now_utc_ns, most),
        )
        return [DueRun(*row) for row in rows]

    def unheard(self) -> list[DueRun]:
        """Those for which something may still come from a spool that had not settled their time when they were judged."""
        rows = self._rows(
            "SELECT probe, run, ended_utc_ns, heard_utc_ns, touched FROM ledger_runs"
            " WHERE state = 'waiting' AND heard_utc_ns <= ended_utc_ns"
        )
        return [DueRun(*row) for row in rows]

    def touch(self, runs: Sequence[DueRun]) -> None:
        """Something happened to these: look again."""
        self._do_all(
            "UPDATE ledger_runs SET due_utc_ns = 0, touched = touched + 1 WHERE probe = ? AND run = ?",
            [(one.probe, one.run) for one in runs],
        )

    def keep(self, runs: Sequence[JudgedRun]) -> None:
        """Write down what was found, but of those to which something happened meanwhile: they stay due."""
        assigned = ", ".join(f"{name} = ?" for name in _JUDGED)
        self._do_all(
            f"UPDATE ledger_runs SET {assigned} WHERE probe = ? AND run = ? AND touched = ?",  # noqa: S608  constants
            [(*(getattr(one, name) for name in _JUDGED), one.probe, one.run, one.touched) for one in runs],
        )

    def expire(self, before_utc_ns: int) -> None:
        """What was complete and ended before this is so no more: the database has forgotten it."""
        self._do(
            "UPDATE ledger_runs SET state = 'expired' WHERE state = 'complete' AND ended_utc_ns < ?", (before_utc_ns,)
        )

    def unsampled(self, before_utc_ns: int, most: int) -> list[DueRun]:
        """Complete ones that ended before this and whose samples are in no file as they are now, the newest first. Not those that are
        still to be judged anew."""
        rows = self._rows(
            "SELECT probe, run, ended_utc_ns, heard_utc_ns, ledger_runs.touched FROM ledger_runs"
            " LEFT JOIN sampled_runs USING (probe, run) WHERE state = 'complete' AND due_utc_ns IS NULL"
            " AND ended_utc_ns < ? AND sampled_runs.touched IS NOT ledger_runs.touched ORDER BY ended_utc_ns DESC LIMIT ?",
            (before_utc_ns, most),
        )
        return [DueRun(*row) for row in rows]

    def sampled(self, one: DueRun) -> bool:
        """Its samples are in a file; False: its probe was erased meanwhile."""
        changed = self._do(
            "INSERT INTO sampled_runs SELECT probe, run, ?3 FROM ledger_runs WHERE probe = ?1 AND run = ?2"
            " ON CONFLICT (probe, run) DO UPDATE SET touched = excluded.touched",
            (one.probe, one.run, one.touched),
        )
        return changed == 1

    def sample_again(self) -> None:
        """No run has a file."""
        self._do("DELETE FROM sampled_runs")

    def sums(self) -> list[LedgerSum]:
        """By probe, campaign and state, where there are any."""
        rows = self._rows(
            f"SELECT probe, campaign, state, {', '.join(_SUMS)} FROM ledger_sums WHERE runs > 0"  # noqa: S608  constants
            " ORDER BY probe, campaign, state"
        )
        return [LedgerSum(*row) for row in rows]

    def open_since(self) -> dict[tuple[str, str], tuple[int | None, int | None]]:
        """By probe and campaign, when the oldest run ended that lacks records or its manifest, and the oldest that lacks files."""
        rows = self._rows(
            "SELECT probe, campaign, min(iif(lacks_records, ended_utc_ns, NULL)), min(iif(lacks_files, ended_utc_ns, NULL))"
            " FROM ledger_runs WHERE state IN ('waiting', 'missing') GROUP BY probe, campaign"
        )
        return {(probe, campaign): (records, files) for probe, campaign, records, files in rows}
