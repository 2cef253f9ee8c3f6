"""Which path to send over: the one that last worked, with the others waiting for their turn after a failure. Pure."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass

FIRST_S, LONGEST_S = 1.0, 60.0


@dataclass(slots=True)
class _State:
    failures: int = 0
    not_before_s: float = 0.0


class PathChoice:
    """``names`` in the order of preference at the start. Times are seconds of any steady clock."""

    def __init__(self, names: Sequence[str], chance: random.Random) -> None:
        self._chance = chance
        self._states = {name: _State() for name in names}
        self._preferred = names[0]

    @property
    def preferred(self) -> str:
        """The path that worked last."""
        return self._preferred

    def next(self, now_s: float, among: Collection[str] | None = None) -> str | None:
        """The path to try now, None while all of them are held back; of ``among`` only, if given."""
        order = sorted(self._states, key=lambda name: (name != self._preferred, self._states[name].failures))
        allowed = self._states if among is None else among
        return next((n for n in order if n in allowed and self._states[n].not_before_s <= now_s), None)

    def wait_s(self, now_s: float, among: Collection[str] | None = None) -> float:
        """How long until ``next`` has one."""
        allowed = self._states if among is None else among
        return max(0.0, min((s.not_before_s for n, s in self._states.items() if n in allowed), default=now_s) - now_s)

    def worked(self, name: str) -> None:
        """The path brought an answer."""
        self._states[name] = _State()
        self._preferred = name

    def failed(self, name: str, now_s: float) -> None:
        """The path brought none: it waits, twice as long each time, with jitter so that probes do not march in step."""
        state = self._states[name]
        state.failures += 1
        wait = min(LONGEST_S, FIRST_S * 2 ** min(state.failures - 1, 10))
        state.not_before_s = now_s + wait * self._chance.uniform(0.5, 1.0)
