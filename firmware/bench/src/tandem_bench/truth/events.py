"""The events of a played scenario as lines of ``truth.jsonl``, without absolute times (docs/reference/campaign-folder.md).

Among them falls of a level that a poll once a second could see, wherever the polls lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tandem_bench.truth import mobility

Event = dict[str, Any]

ORDER = ("phase", "mobility", "outage", "handover", "signal_drop", "fault", "radio", "link", "link_log")
"""Lines of the same moment stand in this order."""

DROP_DB = 6.0
POLL_S = 1.0
_FLICKER_S = 0.3


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
        for drop in find_drops(rsrp_dbm, tick_s)
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


@dataclass(frozen=True, slots=True)
class Drop:
    """One fall: ``tick`` of its steepest second's end, change in dB (negative), levels a second before and then.

    ``held_s``: for how long a comparison with the second before would have shown it: a poll sees it with the chance
    ``held_s`` / 1 s, at most 1.
    """

    tick: int
    change_db: float
    from_dbm: float
    to_dbm: float
    held_s: float


def find_drops(levels: Sequence[float | None], tick_s: float, least_db: float = DROP_DB) -> list[Drop]:
    """Falls in ``levels`` (dBm, one a tick, None where absent).

    For each tick the level is compared with that one second before. A fall lasts while the difference is −``least_db`` or
    less; it is stamped at its steepest. Two spells less than 0.3 s apart are one fall: rounding to whole decibels makes a steady
    fall flicker around the threshold.
    """
    lag = round(POLL_S / tick_s)
    bridge = round(_FLICKER_S / tick_s)
    drops: list[Drop] = []
    spell: list[tuple[float, int]] = []
    for tick in range(lag, len(levels) + 1):
        change = _difference(levels, tick, lag)
        if change is not None and change <= -least_db:
            spell.append((change, tick))
        elif spell and (tick == len(levels) or tick - spell[-1][1] >= bridge):
            steepest, at = min(spell)
            before, after = levels[at - lag], levels[at]
            if before is not None and after is not None:
                drops.append(Drop(at, steepest, before, after, round(len(spell) * tick_s, 3)))
            spell = []
    return drops


def _difference(levels: Sequence[float | None], tick: int, lag: int) -> float | None:
    if tick >= len(levels):
        return None
    now, before = levels[tick], levels[tick - lag]
    return None if now is None or before is None else now - before
