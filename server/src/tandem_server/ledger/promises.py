"""What a run's manifest promises: records by measurement, files by hash. Pure; a manifest comes from outside, nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tandem.schema.trace import SERVER_CAPTURES, is_name, is_sha256, server_capture
from tandem_server.ledger.records import OF_A_RUN
from tandem_server.registry import Run, TraceRow


@dataclass(frozen=True, slots=True)
class PromisedFile:
    """``name`` relative to the probe's folder; ``sha256`` None where the manifest tells none."""

    name: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Promise:
    """One run as its manifest has it; times in UTC ns, None while the probe's clock was not set. ``not_made``: by the names of captures
    that the server was asked for why it has none."""

    id: str
    probe: str
    kind: str
    boot: str | None
    status: str
    received_utc_ns: int
    started_utc_ns: int | None
    ended_utc_ns: int | None
    records: dict[str, int]
    files: tuple[PromisedFile, ...]
    not_made: dict[str, str] = field(default_factory=dict)


def promise_of(run: Run) -> Promise:
    """The promise of a run that is in the registry."""
    told = run.manifest
    records, boot = told.get("records"), told.get("boot")
    counts = records if isinstance(records, Mapping) else {}
    return Promise(
        run.id,
        run.probe,
        str(told.get("kind")),
        boot if isinstance(boot, str) else None,
        run.status,
        run.received_utc_ns,
        _whole(told.get("started_utc_ns")),
        _whole(told.get("ended_utc_ns")),
        {name: count for name in OF_A_RUN if (count := _whole(counts.get(name)))},
        (*_files(told.get("files")), *(one for one in _files(told.get("server_captures")) if _is_servers(one.name))),
        _not_made(run.id, told.get("server_captures")),
    )


def with_own(promise: Promise, traces: Iterable[TraceRow]) -> Promise:
    """With what the server captured itself of this run, whatever the probe heard of it. ``traces``: received of its probe."""
    known = {file.name for file in promise.files}
    own = [row for row in traces if row.run == promise.id and _is_servers(row.name)]
    files = [PromisedFile(row.name, row.bytes, row.sha256) for row in own if row.name not in known]
    made = {row.name for row in own}
    not_made = {name: why for name, why in promise.not_made.items() if name not in made}
    return replace(promise, files=(*promise.files, *files), not_made=not_made)


def _is_servers(name: str) -> bool:
    return name.startswith(SERVER_CAPTURES)


def _not_made(run: str, told: object) -> dict[str, str]:
    found = {}
    for entry in told if isinstance(told, list) else []:
        if isinstance(entry, dict) and entry.get("name") is None and isinstance(why := entry.get("why"), str):
            session = entry.get("session")
            name = server_capture(run, session) if isinstance(session, str) else f"{SERVER_CAPTURES}{run}"
            found[name if is_name(name) else f"{SERVER_CAPTURES}{run}"] = " ".join(why.split())[:300]
    return found


def _files(told: object) -> tuple[PromisedFile, ...]:
    found: dict[str, PromisedFile] = {}
    for entry in told if isinstance(told, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("name"), str):
            digest = entry.get("sha256")
            found[entry["name"]] = PromisedFile(
                entry["name"], _whole(entry.get("bytes")), digest if is_sha256(digest) else None
            )
    return tuple(found.values())


def _whole(value: Any) -> int | None:  # noqa: ANN401  any JSON value
    return value if type(value) is int and 0 <= value < 2**63 else None
