"""Falls of a level that a poll once a second could see, wherever the polls lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

DROP_DB = 6.0
POLL_S = 1.0
_FLICKER_S = 0.3


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


def find(levels: Sequence[float | None], tick_s: float, least_db: float = DROP_DB) -> list[Drop]:
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
