"""How punctual the polls of each modem were."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

from tandem.schema.grades import SCALES

LATE_MS = SCALES["radio.poll_late_ms"].good
_KEPT = 200_000
"""Lateness values kept for the percentiles: two days at one poll a second, under 1 MB."""


@dataclass(slots=True)
class _Path:
    made: int = 0
    late: int = 0
    failed: int = 0
    skipped: int = 0
    worst_ms: float = 0.0
    values: array[float] = field(default_factory=lambda: array("f"))


class PollAccount:
    """Used by one thread; ``totals`` may be read by any."""

    def __init__(self, paths: list[str]) -> None:
        self._paths = {path: _Path() for path in paths}

    def add(self, path: str, late_ms: float, *, failed: bool, skipped: int) -> None:
        """A poll that began ``late_ms`` after it was due; ``skipped``: due times passed over before it, late as well."""
        kept = self._paths.setdefault(path, _Path())
        kept.made += 1
        kept.late += (late_ms > LATE_MS) + skipped
        kept.failed += failed
        kept.skipped += skipped
        kept.worst_ms = max(kept.worst_ms, late_ms)
        if len(kept.values) < _KEPT:
            kept.values.append(late_ms)
        else:
            kept.values[kept.made % _KEPT] = late_ms

    def totals(self) -> dict[str, int]:
        """Over all modems."""
        return {name: sum(getattr(p, name) for p in self._paths.values()) for name in ("made", "late", "failed")}

    def as_json(self) -> dict[str, dict[str, Any]]:
        """For collector.json."""
        return {path: _row(kept) for path, kept in self._paths.items()}


def _row(kept: _Path) -> dict[str, Any]:
    ordered = sorted(kept.values)
    return {
        "made": kept.made,
        "late": kept.late,
        "late_ms_p50": _quantile(ordered, 0.5),
        "late_ms_p99": _quantile(ordered, 0.99),
        "late_ms_max": round(kept.worst_ms, 3) if kept.made else None,
        "failed": kept.failed,
        "skipped": kept.skipped,
    }


def _quantile(ordered: list[float], share: float) -> float | None:
    """The value that ``share`` of all do not exceed; None without values."""
    if not ordered:
        return None
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
