"""The export: what is asked, whose folder it may go into, and the order in which it is filled; files of runs and tables of captures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tandem.schema.trace import is_name
from tandem_server.analysis.evaluate import AFTER_NS, BEFORE_NS
from tandem_server.analysis.folder import LEDGER, TRACES, capture_name, lacking, parts_of
from tandem_server.analysis.one_run import files_of, operators_of
from tandem_server.analysis.reading import json_object, mapping, whole
from tandem_server.analysis.run_samples import RunSamples
from tandem_server.analysis.traces import manifest
from tandem_server.analysis.traces.manifest import TABLES, TOGETHER, Part, named
from tandem_server.analysis.traces.tables import PartWriter
from tandem_server.durable import whole_file, write_changed
from tandem_server.export.records import RecordExport
from tandem_server.ledger.reader import Ledger, LedgerReader
from tandem_server.ledger.runs import totals
from tandem_server.registry import NO_CAMPAIGN, Registry, Run
from tandem_server.store import SeriesStore
from tandem_server.uploads.store import TABLES as TABLES_FOLDER
from tandem_server.uploads.store import NotTheFile, TraceStore, copy_out

AROUND_NS = 300 * 10**9
"""Where no time is asked for, records this long before the first run and after the last go with them: mobility is told of five minutes."""
BROKEN_OFF = "the export was broken off; hint: the same tandem-server campaign export again goes on"


class NotToExport(ValueError):  # noqa: N818  (it reads as what it is)
    """Nothing of the kind here, or no folder for it; one line with the hint."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``name``: NO_CAMPAIGN for the runs of none. ``probes`` empty: all that have runs. Runs that began in [start, end), records of that
    time; None: all runs. ``traces``: captures and their tables; ``tables``: these alone."""

    name: str
    probes: tuple[str, ...] = ()
    start_utc_ns: int | None = None
    end_utc_ns: int | None = None
    traces: bool = False
    tables: bool = False

    @property
    def words(self) -> str:
        """What it is called."""
        return "runs of no campaign" if self.name == NO_CAMPAIGN else self.name

    @property
    def told(self) -> dict[str, Any]:
        """As campaign.json keeps it."""
        return {
            "name": self.name,
            "probes": sorted(self.probes),
            "from_utc_ns": self.start_utc_ns,
            "to_utc_ns": self.end_utc_ns,
        }

    def holds(self, run: Run) -> bool:
        """Whether it began in the time; one whose clock was not set is placed by its arrival."""
        at = whole(run.manifest, "started_utc_ns") or run.received_utc_ns
        return (self.start_utc_ns or 0) <= at and (self.end_utc_ns is None or at < self.end_utc_ns)


@dataclass(slots=True)
class Stores:
    """Where it comes from; ``traces``: the server's folder, which has tables of captures and samples of runs. ``said`` hears how far it
    is."""

    registry: Registry
    series: SeriesStore
    trace: At
    traces: Path
    ledger: LedgerReader
    said: Callable[[str], None]


@dataclass(slots=True)
class _Probe:
    runs: set[str] = field(default_factory=set)
    paths: dict[str, dict[str, str]] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None
    written: int = 0


@dataclass(slots=True)
class Exported:
    """``probes``: of each the ledger's totals, and ``records_here``. ``missing``: what the ledger lacks, and files that are damaged."""

    folder: Path
    started_utc_ns: int
    ended_utc_ns: int
    probes: dict[str, dict[str, Any]]
    written: dict[str, int]
    missing: list[str]


def export(asked: Asked, stores: Stores, out: Path) -> Exported:
    """Fill ``out`` with what it has not. NotToExport; StoreDown, QueryError, TraceStoreDown, OSError, sqlite3.Error as they come: what is
    in the folder then is whole, and the next export goes on."""
    told = _own(asked, out)
    told = {**told, "stopped": BROKEN_OFF, "ended_utc_ns": None}
    found: dict[str, _Probe] = {}
    names = [probe.name for probe in stores.registry.probes.all() if not asked.probes or probe.name in asked.probes]
    for name in names:
        if (one := _manifests(asked, stores, name, out)).runs:
            found[name] = one
            write_changed(out / "campaign.json", _json(told))  # from the first run on the folder is this campaign's
    if not found:
        other = "; --no-campaign for runs of none" if asked.name != NO_CAMPAIGN else "; tandem-server ledger lists runs"
        raise NotToExport(
            f"{asked.words}: no run of it has arrived; hint: tandem-server campaign status tells what was pushed{other}"
        )
    started, ended = _span(asked, found)
    ledger = _ledger(stores.ledger, found)
    damaged: list[str] = []
    files = records = tables = 0
    for name, one in found.items():
        folder, by_probe = out / "probe" / name, ledger["by_probe"][name]
        captures: dict[str, None] = {}
        for run in stores.registry.runs.each(name, campaign=asked.name):
            if run.id in one.runs:
                more, bad, names = fetch_files(stores.registry, stores.trace, run, folder, captures=asked.traces)
                files, damaged = files + more, damaged + bad
                captures |= dict.fromkeys(one for one in names if one.startswith(CAPTURES))
        if asked.traces or asked.tables:
            by_probe["tables"] = states(stores.registry, name, captures)
            made = stores.traces / name / TABLES_FOLDER
            if captures and made.is_dir():
                with _alone(out / TRACES):
                    tables += TableExport(made, name, out).fetch(captures)
        fetched = RecordExport(stores.series, RunSamples(stores.traces), name, folder / "records", stores.said)
        by_probe["records_here"], more = fetched.fetch(started - BEFORE_NS, ended + AFTER_NS)
        records += more
        damaged += [
            f"{name}/{file}: cannot be read, and the database has none of these records"
            for file, run in fetched.lost.items()
            if run in one.runs
        ]
    ledger["damaged"] = damaged
    write_changed(out / LEDGER, _json(ledger))
    by_hand = mapping(told, "probes")
    told |= _campaign(asked, found, started, ended)
    for name, one in told["probes"].items():
        one |= mapping(by_hand, name)
    write_changed(out / "campaign.json", _json(told))
    manifests = sum(one.written for one in found.values())
    written = {"manifests": manifests, "files": files, "tables": tables, "records": records}
    missing = [f"{name}: no run of {asked.words} has arrived from it" for name in asked.probes if name not in found]
    missing += [line for name in found for line in lacking(ledger, name)]
    return Exported(out, started, ended, ledger["by_probe"], written, missing)


def _own(asked: Asked, out: Path) -> dict[str, Any]:
    """What campaign.json begins with: of an earlier one the cities, which a person may have written there. NotToExport where the folder is
    another's."""
    file = out / "campaign.json"
    fresh: dict[str, Any] = {"format": "tandem-campaign/1", "scenario": asked.words, "export": asked.told}
    if not file.exists():
        if out.is_dir() and any(out.iterdir()):
            raise NotToExport(f"{out}: holds something else than an export; hint: --out of a new folder")
        return fresh
    try:
        told = json_object(file)
    except ValueError as error:
        raise NotToExport(f"{out}: {error}; hint: --out of a new folder") from error
    was = mapping(told, "export")
    if {key: was.get(key) for key in asked.told} != asked.told:
        what = "an export with another NAME, --probe, --from or --to" if was else "a campaign that is no export"
        raise NotToExport(f"{out}: holds {what}; hint: --out of a new folder")
    cities = {name: {"city": one["city"]} for name, one in mapping(told, "probes").items() if "city" in one}
    return {**fresh, "probes": cities}


def _manifests(asked: Asked, stores: Stores, probe: str, out: Path) -> _Probe:
    found = _Probe()
    for run in stores.registry.runs.each(probe, campaign=asked.name):
        if not asked.holds(run):
            continue
        content = json.dumps(run.manifest, indent=1, ensure_ascii=False).encode()
        found.written += write_changed(out / "probe" / probe / "runs" / f"{run.id}.json", content)
        found.runs.add(run.id)
        for path, operator in operators_of(run).items():
            found.paths.setdefault(path, {"operator": operator})
        times = [t for key in ("started_utc_ns", "ended_utc_ns") if (t := whole(run.manifest, key)) is not None]
        if times:
            found.first = min(times if found.first is None else (found.first, *times))
            found.last = max(times if found.last is None else (found.last, *times))
    return found


def _span(asked: Asked, found: dict[str, _Probe]) -> tuple[int, int]:
    """From when to when records are taken."""
    first = [one.first for one in found.values() if one.first is not None]
    last = [one.last for one in found.values() if one.last is not None]
    start, end = asked.start_utc_ns, asked.end_utc_ns
    if (start is None or end is None) and not first:
        raise NotToExport(f"{asked.words}: no run tells a time; hint: --from and --to")
    start = min(first) - AROUND_NS if start is None else start
    end = max(last) + AROUND_NS if end is None else end
    return start, end


def _ledger(reader: LedgerReader, found: dict[str, _Probe]) -> dict[str, Any]:
    """Of the campaign's runs and its probes' spools, as ledger.json has it; runs that lack nothing are counted only."""
    told: dict[str, Any] = {}
    by_probe: dict[str, Any] = {}
    for name, one in found.items():
        read = reader.read(name)
        own = Ledger(
            read.made_utc_ns,
            read.probes,
            read.accounts,
            [r for r in read.runs if r.id in one.runs],
            [],
            read.tolerances,
        )
        by_probe[name] = totals(own.runs)
        of_probe = own.to_dict(incomplete=True)
        if not told:
            told = {**of_probe, "totals": None}
        else:
            told["complete"] = told["complete"] and of_probe["complete"]
            for key in ("probes", "spools", "runs"):
                told[key] += of_probe[key]
    del told["totals"]
    return {**told, "by_probe": by_probe}


def _campaign(asked: Asked, found: dict[str, _Probe], started: int, ended: int) -> dict[str, Any]:
    first, *_ = found
    return {
        "duration_s": (ended - started) / 1e9,
        "started_utc_ns": started,
        "ended_utc_ns": ended,
        "stopped": None,
        "probe": first,
        # By name, as configurations have them: in which order a run had its paths says nothing.
        "probes": {name: {"paths": dict(sorted(one.paths.items()))} for name, one in found.items()},
        "traces": asked.traces,
        "tables": asked.traces or asked.tables,
    }


@contextmanager
def _alone(tables: Path) -> Iterator[None]:
    try:
        with manifest.alone(tables):
            yield
    except manifest.ManifestError as error:
        raise NotToExport(str(error)) from error


def _json(told: dict[str, Any]) -> bytes:
    return f"{json.dumps(told, indent=1, ensure_ascii=False)}\n".encode()


# --- Files of a run, out of the store of received traces ------------------------------------------------------------

CAPTURES = "captures/"
At = Callable[[str], TraceStore]
"""The store that has a place."""


def fetch_files(
    registry: Registry, at: At, run: Run, folder: Path, *, captures: bool
) -> tuple[int, list[str], list[str]]:
    """The run's files that the server has into the probe's ``folder``, those that are there left out, and captures unless asked for: how
    many were written, what could not be, a line each, and the names under which the server has them all. OSError, TraceStoreDown."""
    written, damaged, known = 0, list[str](), list[str]()
    for told in files_of(registry, run):
        if told.trace is None or not is_name(told.name):
            continue
        known.append(told.trace.name)
        if told.name.startswith(CAPTURES) and not captures:
            continue
        path = folder / told.name
        if path.is_file() and path.stat().st_size == told.trace.bytes:
            continue
        try:
            with whole_file(path) as file:
                copy_out(at(told.trace.place), told.trace, file.write)
            written += 1
        except NotTheFile as error:
            damaged.append(f"{run.probe}/{told.name}: {told.trace.place}: {error}")
    return written, damaged, known


# --- Tables of a probe's captures, as the server made them when they came -------------------------------------------
# A capture is named as it lies, or would lie, in the folder: ``probe/NAME/captures/FILE``. A part is a run's or a pair's, or one capture of
# the server's own; it is held at once.

PACKETS = "packets"


class TableExport:
    """``made``: the probe's tables at the server; ``out``: the campaign folder. ManifestError, OSError as they come."""

    def __init__(self, made: Path, probe: str, out: Path) -> None:
        self._made, self._probe, self._out = made, probe, out / TRACES
        self._parts = manifest.read(made)
        self._part_of = {
            one: name for name, part in self._parts.items() for file in part.files for one in _names(file.file)
        }
        there = manifest.tidy(self._out) if self._out.is_dir() else {}
        self._there = {name: part for name, part in there.items() if self._is_ours(part)}

    def fetch(self, captures: Iterable[str]) -> int:
        """Parts that hold any of these captures, by their names among the probe's files; those that are there left out. How many were
        written."""
        wanted = {self._part_of[one] for one in map(capture_name, captures) if one in self._part_of}
        written = 0
        for name in sorted(wanted):
            part = self._parts[name]
            files = tuple(replace(file, file=self._here(file.file)) for file in part.files)
            here = Part(part.version, part.bin_ns, part.packets, files)
            if here.name not in self._there:
                written += self._copy(name, part, here)
        return written

    def _copy(self, name: str, part: Part, here: Part) -> bool:
        """False: it was taken away meanwhile, since its captures are read anew with others; the next export has these."""
        of = {old.file: new.file for old, new in zip(part.files, here.files, strict=True)}
        try:
            with PartWriter(self._out, part.packets) as writer:
                for table in TABLES:
                    if part.packets or table != PACKETS:
                        rows = pq.read_table(self._made / table / f"{name}.parquet", partitioning=None)
                        files = pa.array([of[file] for file in rows["file"].cast(pa.string()).to_pylist()], pa.string())
                        at = rows.schema.get_field_index("file")
                        # As the native pass's tables have it: text by its number.
                        column = files if table == "files" else files.dictionary_encode()
                        writer.add_rows(table, rows.set_column(at, "file", column))
                writer.keep(here.name)
        except FileNotFoundError:
            return False
        mine = {one for file in here.files for one in _names(file.file)}
        manifest.write(self._out, here)
        # A capture has one part: what is older was made without those that came later.
        for old, its in list(self._there.items()):
            if any(one in mine for file in its.files for one in _names(file.file)):
                manifest.remove(self._out, old)
                del self._there[old]
        self._there[here.name] = here
        return True

    def _here(self, file: str) -> str:
        """Wherever they were read: the server may have fetched them out of a bucket."""
        own = "captures/server/" if "/captures/server/" in file else "captures/"
        return named(TOGETHER.join(f"probe/{self._probe}/{own}{one}" for one in _names(file)))

    def _is_ours(self, part: Part) -> bool:
        return all(file.file.startswith(f"probe/{self._probe}/") for file in part.files)


def states(registry: Registry, probe: str, captures: Iterable[str]) -> dict[str, int]:
    """How many of these captures have been analysed, wait for it, or could not be."""
    known = registry.trace_tables.of(probe)
    told = {"analysed": 0, "waiting": 0, "failed": 0}
    for name in captures:
        if (one := known.get((probe, name))) is not None:
            told[one.state] += 1
    return told


def _names(file: str) -> list[str]:
    return parts_of(capture_name(file))
