"""A run's manifest: put together, what is too long for it moved into files beside it, and written so that it is there whole or not at all.

The gateway takes manifests of 1 MiB. A log of segments of one second reaches that in some twenty minutes of play, other experiments' lists
as easily; so whatever is long becomes a file of the run, which the manifest names as it names captures, and the manifest keeps the figures.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from tandem.app.runs.context import RunContext
from tandem.app.runs.plan import Plan, PlannedRun
from tandem.app.runs.process import Ending, ExperimentProcess
from tandem.app.runs.records import RunLines
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
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

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
