"""The collector's own account as rows of tables; what it did not write down is None."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem_server.analysis.reading import mapping, number, whole


@dataclass(frozen=True, slots=True)
class PollRow:
    """How punctual the polls of one path were; ``late_ms`` are median, 99th percentile and most."""

    path: str
    made: int | None
    late: int | None
    failed: int | None
    late_ms: tuple[float | None, float | None, float | None]


@dataclass(frozen=True, slots=True)
class UsageRow:
    """Bytes over one path's interface; ``control_bytes`` of these carried records and control."""

    path: str
    received_bytes: int | None
    sent_bytes: int | None
    control_bytes: int | None


def polls(collector: Mapping[str, Any]) -> list[PollRow]:
    """One row a path."""
    return [
        PollRow(
            path,
            whole(entry, "made"),
            whole(entry, "late"),
            whole(entry, "failed"),
            (number(entry, "late_ms_p50"), number(entry, "late_ms_p99"), number(entry, "late_ms_max")),
        )
        for path, entry in mapping(collector, "polls").items()
        if isinstance(entry, dict)
    ]


def usage(collector: Mapping[str, Any]) -> list[UsageRow]:
    """One row a path."""
    return [
        UsageRow(path, whole(entry, "received_bytes"), whole(entry, "sent_bytes"), whole(entry, "control_bytes"))
        for path, entry in mapping(collector, "usage").items()
        if isinstance(entry, dict)
    ]


def settings(collector: Mapping[str, Any]) -> dict[str, str]:
    """The kernel's and the collector's settings as recorded."""
    return {
        str(k): "not recorded" if v is None else str(v) for k, v in sorted(mapping(collector, "environment").items())
    }
