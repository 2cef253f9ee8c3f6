"""The collector's own account as rows of tables; what it did not write down is None."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tandem_server.analysis.reading import mapping, number, whole

POLLS = ("made", "late", "failed", "late_ms_p50", "late_ms_p99", "late_ms_max")
"""How punctual the polls of one path were."""
USAGE = ("received_bytes", "sent_bytes", "control_bytes")
"""Over one path's interface; the last of these carried records and control."""


def by_path(collector: Mapping[str, Any], what: str, columns: Sequence[str]) -> dict[str, dict[str, float | None]]:
    """One row a path."""
    return {
        path: {key: number(entry, key) if key.startswith("late_ms") else whole(entry, key) for key in columns}
        for path, entry in mapping(collector, what).items()
        if isinstance(entry, dict)
    }


def settings(collector: Mapping[str, Any]) -> dict[str, str]:
    """The kernel's and the collector's settings as recorded."""
    return {
        str(k): "not recorded" if v is None else str(v) for k, v in sorted(mapping(collector, "environment").items())
    }
