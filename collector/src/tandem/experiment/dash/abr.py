"""Which representation comes next: what every rule sees, the two simplest rules, and the choice among rules. Pure: no clock, no socket.

A rule is an object with ``choose(Context) -> Choice`` and ``loaded(Loaded)``. Bitrates are those of the MPD, rising; a choice is an
index into them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

SAFETY = 0.9
"""Part of the estimated throughput that is trusted (dash.js: bandwidthSafetyFactor)."""
FAST_HALF_LIFE_S = 3.0
SLOW_HALF_LIFE_S = 8.0
"""Half-lives of the two moving averages of throughput, in seconds of download (dash.js: throughputFastHalfLifeSeconds, …Slow…)."""


@dataclass(frozen=True, slots=True)
class Context:
    """What is known when a segment is to be chosen. ``buffer_s``: video that is loaded and not yet played. ``segment_s``: duration of
    the segment to come. ``stalled``: playback has begun and stands still. ``now_s``: seconds from any beginning."""

    now_s: float
    buffer_s: float
    segment_s: float
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class Loaded:
    """A segment has come. ``request_s``, ``end_s``: when it was asked for and its last byte came, on ``Context.now_s``'s clock.
    ``buffer_s``: with this segment in it. ``stalled``: playback stood still before it came."""

    index: int
    size_bytes: int
    request_s: float
    end_s: float
    duration_s: float
    buffer_s: float
    stalled: bool = False


@dataclass(frozen=True, slots=True)
class Choice:
    """``wait_s``: the rule wants to wait so long before the request (0 for most). ``rule``: who decided."""

    index: int
    rule: str
    wait_s: float = 0.0


class Rule(Protocol):
    """One way to choose."""

    def choose(self, context: Context) -> Choice:
        """Of the next segment. Called once a segment."""
        ...

    def loaded(self, loaded: Loaded) -> None:
        """A segment has come."""
        ...


def affordable(bitrates: Sequence[int], bit_per_s: float) -> int:
    """The highest of ``bitrates`` that is not above ``bit_per_s``; the lowest when all are."""
    fitting = [index for index, bitrate in enumerate(bitrates) if bitrate <= bit_per_s]
    return fitting[-1] if fitting else 0


class Throughput:
    """The estimate that rules share: two exponentially weighted moving averages of the segments' throughput (bytes from the request to the
    last byte, so latency counts), each weighted by how long its download took; the smaller of the two."""

    def __init__(self) -> None:
        self._fast = self._slow = self._seconds = 0.0

    def add(self, size_bytes: int, seconds: float) -> None:
        """A segment of ``size_bytes`` took ``seconds``."""
        seconds = max(seconds, 1e-3)
        rate = size_bytes * 8 / seconds
        fast, slow = _fading(seconds, FAST_HALF_LIFE_S), _fading(seconds, SLOW_HALF_LIFE_S)
        self._fast = fast * self._fast + (1 - fast) * rate
        self._slow = slow * self._slow + (1 - slow) * rate
        self._seconds += seconds

    @property
    def bit_per_s(self) -> float | None:
        """None before the first segment. The averages began at 0, which is corrected for."""
        if self._seconds == 0:
            return None
        fast = self._fast / (1 - _fading(self._seconds, FAST_HALF_LIFE_S))
        slow = self._slow / (1 - _fading(self._seconds, SLOW_HALF_LIFE_S))
        return min(fast, slow)


def _fading(seconds: float, half_life_s: float) -> float:
    """What is left of a weight after ``seconds``."""
    return math.exp2(-seconds / half_life_s)


class FixedRule:
    """Always the same."""

    def __init__(self, bitrates: Sequence[int], index: int) -> None:
        self._index = min(index, len(bitrates) - 1)

    def choose(self, context: Context) -> Choice:  # noqa: ARG002  whatever it is
        """See ``Rule``."""
        return Choice(self._index, "fixed")

    def loaded(self, loaded: Loaded) -> None:
        """See ``Rule``."""


class ThroughputRule:
    """The highest bitrate within ``SAFETY`` of the estimated throughput; the lowest before there is an estimate."""

    def __init__(self, bitrates: Sequence[int], throughput: Throughput | None = None) -> None:
        self._bitrates = bitrates
        self._own = throughput is None
        self._throughput = throughput or Throughput()

    def choose(self, context: Context) -> Choice:  # noqa: ARG002  the buffer is not looked at
        """See ``Rule``."""
        return Choice(affordable(self._bitrates, SAFETY * (self._throughput.bit_per_s or 0.0)), "throughput")

    def loaded(self, loaded: Loaded) -> None:
        """See ``Rule``."""
        if self._own:
            self._throughput.add(loaded.size_bytes, loaded.end_s - loaded.request_s)
