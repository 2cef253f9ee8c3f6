"""The emulated buffer: what has come and is not yet shown, emptied by a clock that the caller gives. Times in seconds.

Whoever loads turns its clock; ``glimpse`` may be called by any other thread meanwhile.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field
from typing import Literal

State = Literal["starting", "playing", "stalled", "ended"]


@dataclass(frozen=True, slots=True)
class Stall:
    """Playback stood still: from when, for how long, at which second of the video."""

    start_s: float
    duration_s: float
    media_s: float


@dataclass(frozen=True, slots=True)
class Glimpse:
    """A play at one instant. ``level_s``: video in the buffer; ``played_s``: shown so far; ``stalled_s``: all stalls so far, an open one
    until now."""

    state: State
    level_s: float
    played_s: float
    stalled_s: float


@dataclass(slots=True)
class Playback:
    """Playback begins when ``startup_s`` of video are there, goes on after a stall with ``resume_s``, and at the end with what is
    left. ``advance`` must be called with times that do not go back."""

    startup_s: float
    resume_s: float
    now_s: float = 0.0
    level_s: float = 0.0
    played_s: float = 0.0
    state: State = "starting"
    started_s: float | None = None
    ended_s: float | None = None
    stalls: list[Stall] = field(default_factory=list)
    _stalled_since_s: float = 0.0
    _whole: bool = False
    _turning: threading.RLock = field(default_factory=threading.RLock, repr=False, compare=False)

    def advance(self, now_s: float) -> None:
        """Play until ``now_s``. A stall begins at the instant at which the buffer was empty."""
        with self._turning:
            self._advance(now_s)

    def _advance(self, now_s: float) -> None:
        passed_s = max(0.0, now_s - self.now_s)
        if self.state == "playing":
            shown_s = min(passed_s, self.level_s)
            self.level_s -= shown_s
            self.played_s += shown_s
            if passed_s >= shown_s and self.level_s <= 1e-9:
                self.level_s = 0.0
                empty_s = self.now_s + shown_s
                if self._whole:
                    self.state, self.ended_s = "ended", empty_s
                elif passed_s > shown_s:
                    self.state, self._stalled_since_s = "stalled", empty_s
        self.now_s = max(self.now_s, now_s)

    def add(self, now_s: float, duration_s: float) -> None:
        """A segment of ``duration_s`` has come."""
        with self._turning:
            self._advance(now_s)
            self.level_s += duration_s
            self._go_on()

    def all_loaded(self, now_s: float) -> None:
        """Nothing more will come."""
        with self._turning:
            self._advance(now_s)
            self._whole = True
            self._go_on()

    def give_up(self, now_s: float) -> None:
        """Loading has failed or was stopped: an open stall ends here, and what is left in the buffer is not waited for.
        The play is over then, without an ``ended_s``: nobody saw the end."""
        with self._turning:
            self._advance(now_s)
            self._end_stall()
            self.state = "ended"

    def glimpse(self, now_s: float) -> Glimpse:
        """How it stands at ``now_s``, if nothing has come meanwhile; nothing is changed by looking."""
        with self._turning:
            twin = copy.copy(self)
            twin._advance(now_s)
            return Glimpse(twin.state, twin.level_s, twin.played_s, twin.stalled_s)

    def _go_on(self) -> None:
        if self.state == "starting" and (self.level_s >= self.startup_s or self._whole):
            self.state, self.started_s = "playing", self.now_s
        elif self.state == "stalled" and (self.level_s >= self.resume_s or self._whole):
            self._end_stall()
            self.state = "playing"
        if self._whole and self.state == "playing" and self.level_s <= 0:
            self.state, self.ended_s = "ended", self.now_s

    def _end_stall(self) -> None:
        if self.state == "stalled":
            long_s = self.now_s - self._stalled_since_s
            self.stalls.append(Stall(self._stalled_since_s, long_s, self.played_s))

    @property
    def stalled_s(self) -> float:
        """All stalls so far, an open one until now."""
        open_s = self.now_s - self._stalled_since_s if self.state == "stalled" else 0.0
        return sum(stall.duration_s for stall in self.stalls) + open_s
