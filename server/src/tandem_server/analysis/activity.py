"""What the probe was doing over a span: the phase the bench played, or the detector's own state in the field."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.mobility import Change, spans
from tandem_server.analysis.truth import Phase


def of_phases(phases: Sequence[Phase], start_s: float, end_s: float) -> str | None:
    """The activity that fills most of [start, end]; None outside every phase."""
    share: dict[str, float] = {}
    for phase in phases:
        share[phase.activity] = share.get(phase.activity, 0.0) + max(
            0.0, min(end_s, phase.end_s) - max(start_s, phase.start_s)
        )
    best = max(share, key=lambda name: share[name], default=None)
    return best if best is not None and share[best] > 0 else None


def of_detector(changes: Sequence[Change], start_s: float, end_s: float) -> str | None:
    """``moving`` or ``still``, whichever the detector said for longer; None for an empty span."""
    moving = sum(b - a for a, b, state in spans(changes, start_s, end_s) if state)
    return ("moving" if moving * 2 >= end_s - start_s else "still") if end_s > start_s else None
