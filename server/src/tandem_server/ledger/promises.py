"""What a run's manifest promises: records by measurement, files by hash. Pure; a manifest comes from outside, nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.schema.trace import is_sha256
from tandem_server.ledger.records import OF_A_RUN
from tandem_server.registry import Run


@dataclass(frozen=True, slots=True)
class PromisedFile:
    """``name`` relative to the probe's folder; ``sha256`` None where the manifest tells none."""

    name: str
    bytes: int | None
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Promise:
    """One run as its manifest has it; times in UTC ns, None while the probe's clock was not set."""

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
        _files(told.get("files")),
    )


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
