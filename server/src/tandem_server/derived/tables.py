"""Captures that came → Parquet tables (docs/reference/captures.md), each once; a broken one costs itself only.

The tables of a probe are a folder of ``tandem-server analyse --out``, ``PROBE/.tables`` beside its traces, so that they are erased
with them. What a killed pass left there is tidied by the next one, which finds what was whole and does not make it again.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.batch import Analysed, go_on, process_batch
from tandem_server.analysis.traces.manifest import TOGETHER, VERSION, Capture, Part, owner_of
from tandem_server.analysis.traces.processes import Task
from tandem_server.http.rates import Reserve
from tandem_server.ledger.runs import promise_of
from tandem_server.registry import Registry, Run, TraceRow
from tandem_server.uploads.store import TABLES, TraceStore, make_folder

_LOG = logging.getLogger("tandem.tables")
BIN_NS = 100_000_000
_FETCHED = ".fetched"
_AT_ONCE = 32
"""So many units are fetched, out of a bucket, before they are analysed."""

Pool = Callable[[Sequence[list[str]], Task], Iterator[Analysed]]
"""``processes.analysed`` or ``dask_cluster.analysed`` with their settings."""


@dataclass(slots=True)
class Turn:
    """What became of captures: ``analysed``, and ``failed`` (probe, name, why); ``waiting`` for others of their runs."""

    analysed: int = 0
    failed: list[tuple[str, str, str]] = field(default_factory=list)
    waiting: int = 0


class Tabling:
    """``traces``: the folder of traces; ``store_at``: the store of a place in a bucket; ``tell``: what is told of each part, before it
    counts as made: the folder of tables, the part's name, its captures."""

    def __init__(
        self,
        registry: Registry,
        traces: Path,
        store_at: Callable[[str], TraceStore],
        pool: Pool,
        reserve_bytes: int,
        tell: Callable[[Path, str, Sequence[TraceRow]], None] | None = None,
    ) -> None:
        self._tell = tell
        self._registry, self._marks, self._store_at, self._pool = registry, registry.trace_tables, store_at, pool
        self._traces, self._reserve = traces.absolute(), Reserve([traces], reserve_bytes)

    def turn(self, now_utc_ns: int, probe: str | None = None, *, everything: bool = False) -> Turn:
        """Analyse what is due, of one probe when named; ``everything``: also what failed before and what waits for others of its run.

        OSError (no room), TraceStoreDown, ManifestError (another one is at it), sqlite3.Error: what was not done is done next time.
        """
        done = Turn()
        rows = self._marks.due(VERSION, probe, failed=everything)
        found = units(self._registry, rows, now_utc_ns, everything=everything)
        new = {(row.probe, row.name) for row in rows}
        done.waiting = sum((unit.probe, row.name) in new for unit in found if not unit.due for row in unit.captures)
        due = sorted((unit for unit in found if unit.due), key=lambda unit: unit.probe)
        for name, own in groupby(due, key=lambda unit: unit.probe):
            out = self._traces / name / TABLES
            make_folder(out)
            with manifest.alone(out):
                left = list(own)
                while left and self._some(name, out, left[:_AT_ONCE], done):
                    del left[:_AT_ONCE]
        return done

    def _some(self, probe: str, out: Path, some: Sequence[Unit], done: Turn) -> bool:
        """False: the probe was erased meanwhile, and so is what was made."""
        self._reserve.check()
        left = [unit.captures for unit in some if unit.captures]
        try:
            while left:
                left = self._together(out, left, done)
        finally:
            shutil.rmtree(out / _FETCHED, ignore_errors=True)
        if known := bool(self._marks.of(probe)):
            manifest.tidy(out)
        else:
            shutil.rmtree(out, ignore_errors=True)
        return known

    def _together(self, out: Path, wanted: Sequence[tuple[TraceRow, ...]], done: Turn) -> list[tuple[TraceRow, ...]]:
        """Each of these read as one; what is to be read again, without what was broken."""
        of: dict[str, tuple[TraceRow, ...]] = {}
        for rows in wanted:
            placed: dict[str, TraceRow] = {}
            for row in rows:
                try:
                    placed[self._placed(out, row)] = row
                except FileNotFoundError:
                    self._failed(row, "it is gone", done)
            if placed:
                of[TOGETHER.join(placed)] = tuple(placed.values())
        batches = go_on(out, [[path] for path in of], BIN_NS, packets=False)
        begun = {path for batch in batches for path in batch}
        for path in of.keys() - begun:  # whole before its pass was killed
            self._analysed(out, path, of[path], done)
        again: list[tuple[TraceRow, ...]] = []
        task = functools.partial(process_batch, bin_ns=BIN_NS, packets=False, out=out)
        for (path,), result in zip(batches, self._pool(batches, task), strict=True):
            rows = of[path]
            whys = dict(result.failed)
            broken = {row: whys[one] for one, row in zip(path.split(TOGETHER), rows, strict=True) if one in whys}
            if whys and len(rows) == 1:
                broken = {rows[0]: next(iter(whys.values()))}
            if not whys:
                self._analysed(out, path, rows, done)
            elif broken:
                for row, why in broken.items():
                    self._failed(row, why, done)
                again += [tuple(row for row in rows if row not in broken)] if len(broken) < len(rows) else []
            else:  # which of them it was nobody knows
                again += [(row,) for row in rows]
        return again

    def _placed(self, out: Path, row: TraceRow) -> str:
        """Where the native pass can read it, gzip as it is; FileNotFoundError, TraceStoreDown."""
        if not row.place.startswith("s3://"):
            place = self._traces / row.place
            place.stat()
            return str(place)
        place = out / _FETCHED / (row.name + (".gz" if row.encoding == "gzip" else ""))
        if not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            with self._store_at(row.place).open(row.place) as stored, place.open("wb") as file:
                shutil.copyfileobj(stored, file, 1 << 20)
            os.utime(
                place, ns=(row.received_utc_ns, row.received_utc_ns)
            )  # so that it is the same whenever it is fetched
        return str(place)

    def _analysed(self, out: Path, path: str, rows: Sequence[TraceRow], done: Turn) -> None:
        if self._tell is not None:
            self._tell(out, Part(VERSION, BIN_NS, False, (Capture.at(path),)).name, rows)
        self._marks.mark(rows[0].probe, [row.name for row in rows], VERSION)
        done.analysed += len(rows)
        _LOG.info("%s: analysed %s", rows[0].probe, ", ".join(row.name for row in rows))

    def _failed(self, row: TraceRow, why: str, done: Turn) -> None:
        self._marks.mark(row.probe, [row.name], VERSION, why)
        done.failed.append((row.probe, row.name, why))
        _LOG.warning("%s: %s: not analysed: %s", row.probe, row.name, why)


# --- Which captures are read together, and when: those of a run, or of a pair whose runs share them, once all are here -----

WAIT_NS = 86_400 * 10**9
"""So long after the newest of them the others are waited for."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Captures that are read together: one machine made them of its interfaces. ``due``: all that were promised are here, or it waited."""

    probe: str
    captures: tuple[TraceRow, ...]
    due: bool


def units(registry: Registry, rows: Iterable[TraceRow], now_utc_ns: int, *, everything: bool = False) -> list[Unit]:
    """What these captures are part of, in the order in which their first ones came: with those that were analysed before, without those
    that this version of the analysis failed with. ``everything``: with these, and nothing is waited for."""
    made: list[Unit] = []
    done: set[tuple[str, str]] = set()
    for row in rows:
        owner = owner_of(row.name)
        prefix = f"captures/{owner}-" if owner else row.name
        if (row.probe, prefix) in done:
            continue
        done.add((row.probe, prefix))
        if owner is None:
            made.append(Unit(row.probe, (row,), due=True))
            continue
        there = registry.trace_tables.under(row.probe, prefix)
        newest, names = max(one.received_utc_ns for one, _ in there), {one.name for one, _ in there}
        due = everything or now_utc_ns - newest >= WAIT_NS or _whole(registry, row, owner, prefix, names)
        own = [one for one, its in there if everything or its.state != "failed" or its.version < VERSION]
        made.append(Unit(row.probe, tuple(own), due))
    return made


def _whole(registry: Registry, row: TraceRow, owner: str, prefix: str, names: set[str]) -> bool:
    """Whether a manifest came, and no capture that it promises of this run or pair is still to come."""
    known = _runs(registry, row, owner)
    promised = {file.name for one in known for file in promise_of(one).files if file.name.startswith(prefix)}
    return bool(known) and promised <= names


def runs_of(registry: Registry, captures: Iterable[TraceRow]) -> list[Run]:
    """The runs that these captures, of one unit, are of, as far as their manifests are here."""
    for row in captures:
        if known := _runs(registry, row, owner_of(row.name) or row.run or ""):
            return known
    return []


def _runs(registry: Registry, row: TraceRow, owner: str) -> list[Run]:
    run = registry.runs.get(row.run or owner)
    if run is None or run.probe != row.probe:
        return []
    if owner.startswith("pair-"):
        return registry.runs.of_pair(row.probe, owner, run.received_utc_ns) or [run]
    return [run]
