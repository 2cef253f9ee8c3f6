"""The events of a played scenario as lines of ``truth.jsonl``, without absolute times (docs/reference/campaign-folder.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem_bench.truth import drops, mobility

Event = dict[str, Any]

ORDER = ("phase", "mobility", "outage", "handover", "signal_drop", "fault", "radio", "link", "link_log")
"""Lines of the same moment stand in this order."""


def in_order(events: Sequence[Event]) -> list[Event]:
    """By time, then by type and operator; equal ones keep their places."""
    rank = {name: i for i, name in enumerate(ORDER)}
    return sorted(events, key=lambda e: (e["t_s"], rank.get(e["type"], len(ORDER)), e.get("operator", "")))


def of_mobility(speed_m_s: Sequence[float], tick_s: float) -> list[Event]:
    """``mobility`` lines; each with the speed at that moment."""
    return [
        {"t_s": round(tick * tick_s, 1), "type": "mobility", "moving": moving, "speed_m_s": speed_m_s[tick]}
        for tick, moving in mobility.changes(speed_m_s, tick_s)
    ]


def of_drops(operator: str, rsrp_dbm: Sequence[float | None], tick_s: float) -> list[Event]:
    """``signal_drop`` lines of one operator."""
    return [
        {
            "t_s": round(drop.tick * tick_s, 1),
            "type": "signal_drop",
            "operator": operator,
            "change_db": drop.change_db,
            "from_dbm": drop.from_dbm,
            "to_dbm": drop.to_dbm,
            "held_s": drop.held_s,
        }
        for drop in drops.find(rsrp_dbm, tick_s)
    ]


def handover(
    operator: str, t_s: float, from_eci: int, to_eci: int, interruption_ms: float | None, kept: bool, cause: str
) -> Event:
    """A ``handover`` line. ``t_s`` is when the new cell serves; the interruption lies before it."""
    return {
        "t_s": t_s,
        "type": "handover",
        "operator": operator,
        "from_eci": from_eci,
        "to_eci": to_eci,
        "handover_kind": "sector" if from_eci >> 8 == to_eci >> 8 else "enb",
        "interruption_ms": interruption_ms,
        "queue": "kept" if kept else "dropped",
        "cause": cause,
    }
