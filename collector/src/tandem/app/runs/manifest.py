"""What a run leaves: records of what its process said, and its manifest, which is there whole or not at all.

The gateway takes manifests of 1 MiB. A log of segments of one second reaches that in some twenty minutes of play, other experiments' lists
as easily; so whatever is long becomes a file of the run, which the manifest names as it names captures, and the manifest keeps the figures.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tandem.app.runs.context import RunContext
from tandem.app.runs.process import Ending, ExperimentProcess
from tandem.app.runs.request import Plan, PlannedRun
from tandem.app.runs.steering import SteeredRun
from tandem.experiment.control import no_capture
from tandem.export import PendingManifests
from tandem.schema.manifest import (
    FORMAT,
    CampaignRun,
    Conditions,
    Failure,
    Manifest,
    RunFile,
    RunResult,
    ServerCapture,
    Usage,
)
from tandem.schema.metrics import CONNECTION, EXPERIMENT_MEASUREMENTS, MEASUREMENTS, PHASE, SUBFLOW
from tandem.schema.record import Record, RecordError, Value
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# What an experiment's process says, as records, counted for the manifest. It comes from another process: nothing in it is
# trusted.


_CONNECTION = {f.name for f in CONNECTION.fields}
_SUBFLOW = {f.name for f in SUBFLOW.fields}
_PHASE = {f.name for f in PHASE.fields}
_TAG = re.compile(r"[A-Za-z0-9 ._-]{1,64}\Z")
_TOKEN = re.compile(r"[0-9a-f]{1,8}\Z")
_LONGEST_TEXT = 500
_OURS = ("run", "experiment", "campaign", "operator")
"""Tags that the collector adds to a record of an experiment's."""


def sample_records(run: PlannedRun, sample: Mapping[str, Any]) -> tuple[list[Record], int]:
    """The connection's record and one a subflow; and how many of them broke the schema and were left out."""
    found: list[Record] = []
    broken = 0
    monotonic_ns = sample.get("monotonic_ns")
    if type(monotonic_ns) is not int or monotonic_ns < 0:
        return [], 1
    connection = sample.get("connection")
    tags: dict[str, Any]
    wanted: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    if isinstance(connection, dict) and connection:
        # which of its connections it was, another experiment's line says itself
        of = connection if run.kind == "any" else {"kind": run.kind, "path": run.path}
        tags = {"run": run.id, "kind": of.get("kind"), "path": of.get("path"), "end": "probe"}
        wanted.append(("connection", tags, {k: v for k, v in connection.items() if k in _CONNECTION}))
    subflows = sample.get("subflows")
    for subflow in subflows if isinstance(subflows, list) else []:
        if not isinstance(subflow, dict):
            broken += 1
            continue
        tags = {"run": run.id, "end": "probe", **{k: subflow.get(k) for k in ("path", "operator", "subflow")}}
        wanted.append(("subflow", tags, {k: v for k, v in subflow.items() if k in _SUBFLOW}))
    for measurement, tags, fields in wanted:
        try:
            if not all(v is None or isinstance(v, str) for v in tags.values()):
                raise RecordError(f"{measurement}: a tag that is no text")
            found.append(Record.make(measurement, tags, fields, monotonic_ns))
        except RecordError:
            broken += 1
    return found, broken


def phase_record(run: PlannedRun, experiment: str, said: Mapping[str, Any]) -> Record:
    """The record of a phase that begins; RecordError when the line breaks the schema."""
    monotonic_ns = said.get("monotonic_ns")
    if type(monotonic_ns) is not int or monotonic_ns < 0:
        raise RecordError("phase: monotonic_ns is no time")
    fields = {k: v for k, v in said.items() if k in _PHASE}
    return Record.make("phase", {"run": run.id, "experiment": experiment}, fields, monotonic_ns)


def experiment_record(
    plan: Plan, run: PlannedRun, said: Mapping[str, Any], operators: Mapping[str, str | None]
) -> Record:
    """A record that the experiment says itself (``tandem.experiment.base.record``); RecordError when it breaks the schema, when an
    experiment may not say its like, or when it names a path that is not the run's. Long texts are cut."""
    measurement, tags, fields = said.get("measurement"), said.get("tags"), said.get("fields")
    if not isinstance(measurement, str) or measurement not in EXPERIMENT_MEASUREMENTS:
        raise RecordError(f"{measurement!r} is no measurement of an experiment's own")
    monotonic_ns = said.get("monotonic_ns")
    if type(monotonic_ns) is not int or monotonic_ns < 0:
        raise RecordError(f"{measurement}: monotonic_ns is no time")
    if not isinstance(tags, dict) or not isinstance(fields, dict):
        raise RecordError(f"{measurement}: tags and fields are objects")
    kind = MEASUREMENTS[measurement]
    for name, value in tags.items():
        if name in _OURS or name not in kind.tags:
            raise RecordError(f"{measurement}: the tag {name!r} is not an experiment's to say")
        if not (value is None or (isinstance(value, str) and _TAG.match(value))):
            raise RecordError(f"{measurement}: the tag {name} is no short text")
    if not {field.name for field in kind.fields}.issuperset(fields):
        raise RecordError(f"{measurement}: a field that it has not")
    path = tags.get("path")
    if path is not None and path not in run.paths:
        raise RecordError(f"{measurement}: {path!r} is no path of {run.id}")
    ours = {**_of_the_run(plan, run), "operator": None if path is None else operators.get(path)}
    short = {k: v[:_LONGEST_TEXT] if isinstance(v, str) else v for k, v in fields.items()}
    return Record.make(measurement, {**tags, **{k: ours[k] for k in _OURS if k in kind.tags}}, short, monotonic_ns)


def usage_records(
    run: PlannedRun, usage: Usage, operators: Mapping[str, str | None], monotonic_ns: int
) -> list[Record]:
    records = []
    for path, row in usage["paths"].items():
        tags = {"run": run.id, "path": path, "operator": operators.get(path)}
        fields: dict[str, Value | None] = {
            "received_bytes": row["received"],
            "sent_bytes": row["sent"],
            "shared": usage["shared_by_pair"],
        }
        records.append(Record.make("run_usage", tags, fields, monotonic_ns))
    return records


def begun_record(plan: Plan, run: PlannedRun, monotonic_ns: int) -> Record:
    request, campaign = plan.request, plan.request.campaign or {}
    fields: dict[str, Value | None] = {
        "number": plan.runs.index(run) + 1,
        "of": len(plan.runs),
        "paths": ",".join(run.paths),
        "trigger": request.trigger,
        "seconds": request.seconds,
        "bytes": request.bytes,
        "step_number": campaign.get("number"),
        **{name: campaign.get(name) for name in ("step", "repetition", "arm", "attempt", "label")},
    }
    return Record.make("run_begun", _of_the_run(plan, run), fields, monotonic_ns)


def run_record(
    plan: Plan, run: PlannedRun, result: Mapping[str, Any] | None, failure: Mapping[str, Any] | None, monotonic_ns: int
) -> Record:
    """The record of a run that ended; RecordError when its figures break the schema."""
    figures = {} if result is None else result
    names = ("bytes", "duration_s", "goodput_bit_per_s", "connect_ms", "first_byte_ms", "fallback")
    fields: dict[str, Any] = {name: figures.get(name) for name in names}
    if run.kind == "any":  # its result is its own: a key of ours may mean something else there
        fields = {name: value if _fits(name, value, monotonic_ns) else None for name, value in fields.items()}
    fields["ok"] = failure is None
    fields["failure"] = None if failure is None else str(failure.get("reason"))[:500]
    return Record.make("run", _of_the_run(plan, run), fields, monotonic_ns)


def result_row(
    plan: Plan, run: PlannedRun, result: Mapping[str, Any] | None, failure: Mapping[str, Any] | None
) -> dict[str, Any]:
    """How a run ended, in one row for people and for who requested it."""
    figures = result or {}
    return {
        "id": run.id,
        "pair": plan.pair,
        "experiment": plan.request.experiment,
        "kind": run.kind,
        "path": run.path,
        "pairing": plan.request.pairing,
        "goodput_bit_per_s": number(figures.get("goodput_bit_per_s"), float),
        "bytes": number(figures.get("bytes"), int),
        "duration_s": number(figures.get("duration_s"), float),
        "fallback": bool(figures.get("fallback")),
        "ok": failure is None,
        "failure": None if failure is None else failure.get("reason"),
    }


def number(value: object, kind: type[int] | type[float]) -> Any:  # noqa: ANN401 int or float as requested, or None
    """What another process reported, as a number; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return kind(value)


def _of_the_run(plan: Plan, run: PlannedRun) -> dict[str, str | None]:
    request = plan.request
    return {
        "run": run.id,
        "kind": run.kind,
        "path": run.path,
        "pair": plan.pair,
        "pairing": request.pairing,
        "experiment": request.experiment,
        "campaign": None if request.campaign is None else request.campaign.get("name"),
    }


def _fits(name: str, value: Any, monotonic_ns: int) -> bool:  # noqa: ANN401 any JSON value
    try:
        Record.make("run", {}, {name: value}, monotonic_ns)
    except RecordError:
        return False
    return True


class RunLines:
    """Called with every line of one run but the last. ``counts``: records by measurement, and the ``broken`` ones, which were left out;
    ``version``: what the process says of its experiment."""

    def __init__(
        self,
        context: RunContext,
        plan: Plan,
        run: PlannedRun,
        sampled: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        """``sampled``: who else takes the lines of type ``sample``."""
        self._sampled = sampled
        self._context, self._plan, self._run = context, plan, run
        self._operators = context.config.operators
        self.counts: Counter[str] = Counter()
        self.version: dict[str, Any] = {}

    def __call__(self, said: dict[str, Any]) -> None:
        kind = said.get("type")
        if kind == "started":
            self.version.update({k: said[k] for k in ("experiment", "version", "units") if k in said})
        elif kind == "sample":
            records, broken = sample_records(self._run, said)
            self.counts["broken"] += broken
            self.emit(records)
            for observer in self._context.observers:
                observer.run_sampled(self._run, said)
            if self._sampled is not None:
                self._sampled(said)
        elif kind == "phase":
            if self._checked(lambda: phase_record(self._run, self._plan.request.experiment, said)):
                for observer in self._context.observers:
                    observer.run_phased(self._run, said)
        elif kind == "record":
            self._checked(lambda: experiment_record(self._plan, self._run, said, self._operators))
        elif kind == "ordering" and (token := token_of(said.get("connection"))) is not None:
            self._context.paths.leave(token)

    def emit(self, records: list[Record]) -> None:
        self.counts.update(record.measurement for record in records)
        self._context.emit(records)

    def _checked(self, make: Callable[[], Record]) -> bool:
        try:
            record = make()
        except RecordError:
            self.counts["broken"] += 1
            return False
        self.emit([record])
        return True


def token_of(said: object) -> int | None:
    """The kernel's number of a connection, as experiments tell it: eight hexadecimal digits."""
    return int(said, 16) if isinstance(said, str) and _TOKEN.match(said) else None


# ---------------------------------------------------------------------------------------------------------------------
# The manifest: put together, what is too long for it moved into files beside it, and written.


_BESIDE = ("type", "result", "failure", "environment", "server_captures")
_UNTOLD = "no session was opened, or the run was cut off before it told of one"

RESULTS = "results"
"""Of the probe's folder, beside ``runs``."""
VALUE_BYTES = 64 * 1024
"""A value of a result that is longer than this, as JSON, gets a file of its own."""
MANIFEST_BYTES = 900_000
"""Above this the longest values go, wherever they stand: the gateway takes 1,048,576 bytes."""

_KEY = re.compile(r"[A-Za-z0-9_]{1,40}\Z")


@dataclass(slots=True)
class Running:
    """A run under way; without a process it could not begin, and ``failure`` says why. ``modems``: who they were and what they said last,
    ``used``: received and sent bytes by path since the collector's start, when it began. Times are CLOCK_MONOTONIC ns."""

    run: PlannedRun
    started_ns: int
    modems: dict[str, dict[str, Any]]
    used: Mapping[str, tuple[int, int]]
    lines: RunLines
    process: ExperimentProcess | None = None
    steered: SteeredRun | None = None
    steering: dict[str, Any] | None = None
    ended_ns: int = 0
    failure: dict[str, Any] | None = None


def manifest(
    context: RunContext,
    plan: Plan,
    running: Running,
    ending: Ending,
    parameters: Mapping[str, Any],
    captures: Mapping[str, Any],
    files: list[RunFile],
    usage: Usage,
    conditions: Conditions | None,
) -> Manifest:
    """The manifest of a run that ended. ``captures``: what became of them, in its environment."""
    clock, run, experiment = context.clock, running.run, running.lines.version
    modems = {path: {"at_start": running.modems.get(path), "at_end": now} for path, now in context.modems().items()}
    made = Manifest(
        format=FORMAT,
        id=run.id,
        pair=plan.pair,
        pairing=plan.request.pairing,
        kind=run.kind,
        paths=list(run.paths),
        probe=context.config.probe,
        boot=clock.boot,
        trigger=plan.request.trigger,
        experiment={
            "name": plan.request.experiment,
            "version": experiment.get("version"),
            **{key: value for key, value in experiment.items() if key == "units"},
        },
        parameters={
            **{k: v for k, v in parameters.items() if k not in ("run", "server")},
            "server": {k: v for k, v in parameters["server"].items() if k in ("control", "measurement")},
            **_of_the_group(plan),
        },
        seed=plan.seed,
        started_utc_ns=clock.utc_ns(running.started_ns),
        ended_utc_ns=clock.utc_ns(running.ended_ns),
        started_monotonic_ns=running.started_ns,
        ended_monotonic_ns=running.ended_ns,
        environment={
            **context.environment,
            "captures": dict(captures),
            "path_addresses": context.paths.addresses,
            "experiment": ending.environment,
            "further": {k: v for k, v in ending.said.items() if k not in _BESIDE},
        },
        modems=modems,
        clock=clock.state(running.started_ns, running.ended_ns),
        records={name: count for name, count in running.lines.counts.items() if count},
        result=cast("RunResult | dict[str, Any] | None", ending.result),
        failure=cast("Failure | None", ending.failure),
        files=files,
        usage=usage,
    )
    if plan.request.capture == "both":
        made["server_captures"] = server_captures(ending)
    if conditions is not None:
        made["conditions"] = conditions
    if running.steering is not None:
        made["steering"] = running.steering
    if plan.request.campaign is not None:
        made["campaign"] = cast("CampaignRun", dict(plan.request.campaign))
    return made


def server_captures(ending: Ending) -> list[ServerCapture]:
    """What became of the server's captures of a run that requested them."""
    said = ending.said.get("server_captures")
    known = ServerCapture.__annotations__.keys()
    entries = [one for one in said if isinstance(one, dict) and one.keys() == known] if isinstance(said, list) else []
    return cast("list[ServerCapture]", entries) or [no_capture(None, _UNTOLD)]


def _of_the_group(plan: Plan) -> dict[str, Any]:
    if plan.request.kind == "any":
        return {}
    return {"order": [r.id for r in plan.runs], "pause_s": plan.request.pause_s, "primary": plan.request.primary}


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """``.tmp``, sync, rename. OSError when the disk takes nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_durably(path, (json.dumps(content, indent=1, allow_nan=False) + "\n").encode())


def relieved(manifest: Manifest) -> tuple[Manifest, dict[str, bytes]]:
    """The manifest with what is long replaced by ``{"file": NAME, "rows": N}`` (``rows`` of a list), and the files by name, relative to the
    probe's folder: ``.jsonl`` with an element a line for a list, ``.json`` for anything else. As it was when nothing is long."""
    kept = cast("dict[str, Any]", {**manifest})
    files: dict[str, bytes] = {}
    for holder, key, size in list(_values(kept)):
        if holder is kept["result"] and size > VALUE_BYTES:
            _move(kept["id"], holder, key, files)
    for holder, key, _ in sorted(_values(kept), key=lambda found: -found[2]):
        if _size(kept) <= MANIFEST_BYTES:
            break
        _move(kept["id"], holder, key, files)
    kept["files"] = [
        *manifest["files"],
        *(
            RunFile(name=name, bytes=len(content), sha256=hashlib.sha256(content).hexdigest(), packets=None)
            for name, content in files.items()
        ),
    ]
    return cast("Manifest", kept), files


def _values(manifest: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str, int]]:
    """Where something long may stand: the result's values, and what the experiment reported beside it. Each holder is a copy of ours, which
    may be written to."""
    environment = manifest["environment"] = {**manifest["environment"]}
    holders = [(manifest, "result"), (environment, "further"), (environment, "experiment")]
    for place, name in holders:
        if isinstance(place.get(name), dict):
            holder = place[name] = {**place[name]}
            for key, value in list(holder.items()):
                if isinstance(value, dict | list | str):
                    yield holder, key, len(json.dumps(value))


def _move(run: str, holder: dict[str, Any], key: str, files: dict[str, bytes]) -> None:
    value = holder[key]
    stem = f"{RESULTS}/{run}-{key if _KEY.match(key) else 'value'}"
    while f"{stem}.json" in files or f"{stem}.jsonl" in files:
        stem += "-"
    if isinstance(value, list):
        name, text = f"{stem}.jsonl", "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in value)
        holder[key] = {"file": name, "rows": len(value)}
    else:
        name, text = f"{stem}.json", json.dumps(value, separators=(",", ":")) + "\n"
        holder[key] = {"file": name}
    files[name] = text.encode()


def _size(manifest: dict[str, Any]) -> int:
    """As ``write_json`` writes it."""
    return len(json.dumps(manifest, indent=1))


class Manifests:
    """Writes manifests and has them sent. One that the disk does not take is kept and tried again by ``retry``. ``written`` is called with
    each run whose manifest is on the disk."""

    def __init__(
        self, runs: Path, pending: PendingManifests, written: Callable[[str], None] = lambda _run: None
    ) -> None:
        self._runs, self._pending, self._written = runs, pending, written
        self._lock = threading.Lock()
        self._unwritten: list[tuple[Manifest, dict[str, bytes]]] = []

    def save(self, manifest: Manifest) -> None:
        """Write it, from any thread, with what is too long for it as files beside it."""
        kept, files = relieved(manifest)
        for name, content in files.items():
            log.info("%s: %d bytes of its result lie in %s, which the manifest names", kept["id"], len(content), name)
        with self._lock:
            self._unwritten.append((kept, files))
        self.retry()

    def retry(self) -> int:
        """Write what could not be written; how many still are not."""
        with self._lock:
            while self._unwritten:
                manifest, files = self._unwritten[0]
                try:
                    for name, content in files.items():  # before the manifest that names them
                        (self._runs.parent / name).parent.mkdir(parents=True, exist_ok=True)
                        write_durably(self._runs.parent / name, content)
                    write_json(self._runs / f"{manifest['id']}.json", {**manifest})
                    self._pending.add(manifest["id"])
                except OSError as error:
                    log.error("%s: the manifest of %s waits in memory: %s", self._runs, manifest["id"], error.strerror)
                    break
                self._unwritten.pop(0)
                self._written(manifest["id"])
            return len(self._unwritten)
