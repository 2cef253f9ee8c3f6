"""Which captures are read together, and when: those of a run, or of a pair whose runs share them, once all of them are here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tandem_server.analysis.traces.manifest import owner_of
from tandem_server.ledger.runs import promise_of
from tandem_server.registry import Registry, Run, TraceRow

WAIT_NS = 86_400 * 10**9
"""So long after the newest of them the others are waited for."""


@dataclass(frozen=True, slots=True)
class Unit:
    """Captures that are read together: one machine made them of its interfaces. ``due``: all that were promised are here, or it waited."""

    probe: str
    captures: tuple[TraceRow, ...]
    due: bool


def units(
    registry: Registry, rows: Iterable[TraceRow], version: int, now_utc_ns: int, *, everything: bool = False
) -> list[Unit]:
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
        newest = max(one.received_utc_ns for one, _ in there)
        due = everything or now_utc_ns - newest >= WAIT_NS or _whole(registry, row, owner, prefix, there_names(there))
        own = [one for one, its in there if everything or its.state != "failed" or its.version < version]
        made.append(Unit(row.probe, tuple(own), due))
    return made


def there_names(there: Iterable[tuple[TraceRow, object]]) -> frozenset[str]:
    """Of what ``TraceTables.under`` gives."""
    return frozenset(row.name for row, _ in there)


def _whole(registry: Registry, row: TraceRow, owner: str, prefix: str, names: frozenset[str]) -> bool:
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
