"""Which representation comes next: what every rule sees, the rules, and the choice among rules. Pure: no clock, no socket.

Bitrates are those of the MPD, rising; a choice is an index into them.

BBA-0: the bitrate follows from the buffer alone (Huang et al., SIGCOMM 2014, "A buffer-based approach to rate adaptation",
algorithm 1).

BOLA-E: a buffer-based choice by utility (Spiteri, Urgaonkar, Sitaraman: "BOLA: near-optimal bitrate adaptation for online videos",
INFOCOM 2016; "From theory to practice: improving bitrate adaptation in the DASH reference player", MMSys 2018). With utilities
u_m = ln(S_m / S_1) + 1 and buffer Q, the choice is the m of the highest (V_p (u_m + g_p) − Q) / S_m. V_p and g_p are set so
that the lowest bitrate is preferred at 10 s and the highest from the target buffer on. The E stands for the placeholder buffer:
seconds that are not there but are counted, so that a choice by throughput at the start, and waiting that was not the network's
fault, do not make the bitrate creep. Increases go no further than throughput sustains (BOLA-O). Too little buffer caps the choice
(``InsufficientBuffer``).

dynamic: by throughput while the buffer is low, by BOLA-E when it is not, as dash.js does by default (3 and 4).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

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
    """A segment has come. ``request_s``, ``end_s``: when it was requested and its last byte came, on ``Context.now_s``'s clock.
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


class Rule(ABC):
    def __init__(self, bitrates: Sequence[int]) -> None:
        self._bitrates, self._top = bitrates, len(bitrates) - 1

    @abstractmethod
    def choose(self, context: Context) -> Choice:
        """Of the next segment. Called once a segment."""

    def loaded(self, loaded: Loaded) -> None:  # noqa: B027  most rules do not look at the network
        """A segment has come."""


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


class FixedRule(Rule):
    def __init__(self, bitrates: Sequence[int], index: int) -> None:
        super().__init__(bitrates)
        self._index = min(index, self._top)

    def choose(self, context: Context) -> Choice:  # noqa: ARG002  whatever it is
        return Choice(self._index, "fixed")


class ThroughputRule(Rule):
    """The highest bitrate within ``SAFETY`` of the estimated throughput; the lowest before there is an estimate. ``throughput``: shared
    with other rules, which then feed it; else its own."""

    def __init__(self, bitrates: Sequence[int], throughput: Throughput | None = None) -> None:
        super().__init__(bitrates)
        self._own = throughput is None
        self._throughput = throughput or Throughput()

    @property
    def _sustained(self) -> int:
        return affordable(self._bitrates, SAFETY * (self._throughput.bit_per_s or 0.0))

    def choose(self, context: Context) -> Choice:  # noqa: ARG002  the buffer is not looked at
        return Choice(self._sustained, "throughput")

    def loaded(self, loaded: Loaded) -> None:
        if self._own:
            self._throughput.add(loaded.size_bytes, loaded.end_s - loaded.request_s)


RESERVOIR = 90 / 240
"""Of the largest buffer: the paper's 90 s of 240 s, in which the lowest bitrate is played."""
CUSHION = 126 / 240
"""Of the largest buffer: the paper's 126 s, over which the bitrate rises to the highest; 10 % are left above it."""


class BbaRule(Rule):
    """By the buffer alone; the network is not looked at. ``reservoir_s`` and ``cushion_s`` in seconds of buffer."""

    def __init__(self, bitrates: Sequence[int], reservoir_s: float, cushion_s: float) -> None:
        super().__init__(bitrates)
        self._reservoir_s, self._cushion_s = reservoir_s, cushion_s
        self._previous = 0

    def rate(self, buffer_s: float) -> float:
        """The map f(B), in bit/s: linear between the reservoir's end and the cushion's."""
        low, high = self._bitrates[0], self._bitrates[-1]
        part = (buffer_s - self._reservoir_s) / self._cushion_s
        return low + (high - low) * min(1.0, max(0.0, part))

    def choose(self, context: Context) -> Choice:
        """The bitrate before is kept until the map passes the next one above or below."""
        rates, top = self._bitrates, self._top
        up = rates[min(self._previous + 1, top)]
        down = rates[max(self._previous - 1, 0)]
        wanted = self.rate(context.buffer_s)
        index = self._previous
        if context.buffer_s <= self._reservoir_s:
            index = 0
        elif context.buffer_s >= self._reservoir_s + self._cushion_s:
            index = top
        elif wanted >= up:
            index = max((i for i, rate in enumerate(rates) if rate < wanted), default=0)
        elif wanted <= down:
            index = min((i for i, rate in enumerate(rates) if rate > wanted), default=top)
        self._previous = index
        return Choice(index, "bba")


MINIMUM_BUFFER_S = 10.0
MINIMUM_BUFFER_PER_BITRATE_S = 2.0
STABLE_BUFFER_S = 12.0
PLACEHOLDER_DECAY = 0.99
INSUFFICIENT_SAFETY = 0.5
INSUFFICIENT_IGNORED = 2
"""The constants of dash.js 3 and 4. ``INSUFFICIENT_IGNORED``: so many first segments are not judged by the buffer."""


class InsufficientBuffer:
    """A cap: the next segment must come before half of the buffer has run out, at the average throughput; the lowest bitrate while
    playback stands still. It says nothing of the first two segments, when the buffer is always small."""

    def __init__(self, bitrates: Sequence[int], throughput: Throughput) -> None:
        self._bitrates, self._throughput = bitrates, throughput
        self._ignored = INSUFFICIENT_IGNORED

    def highest(self, context: Context) -> int:
        rate = self._throughput.bit_per_s
        if self._ignored > 0 or rate is None:
            return len(self._bitrates) - 1
        if context.stalled:
            return 0
        return affordable(self._bitrates, INSUFFICIENT_SAFETY * rate * context.buffer_s / context.segment_s)

    def loaded(self) -> None:
        self._ignored = max(0, self._ignored - 1)


class BolaRule(ThroughputRule):
    """By throughput until a whole segment is in the buffer, then by buffer."""

    def __init__(
        self, bitrates: Sequence[int], stable_buffer_s: float = STABLE_BUFFER_S, throughput: Throughput | None = None
    ) -> None:
        super().__init__(bitrates, throughput)
        self._cap = InsufficientBuffer(bitrates, self._throughput)
        self.utilities = [math.log(bitrate / bitrates[0]) + 1 for bitrate in bitrates]
        target_s = max(stable_buffer_s, MINIMUM_BUFFER_S + MINIMUM_BUFFER_PER_BITRATE_S * len(bitrates))
        span = self.utilities[-1] - 1
        # One bitrate (or all alike): nothing to choose, and the parameters do not exist.
        self.gp = span / (target_s / MINIMUM_BUFFER_S - 1)
        self.vp = MINIMUM_BUFFER_S / self.gp if span > 0 else None
        self._steady = False
        self._last = 0
        self._called_s: float | None = None
        self._finished_s: float | None = None
        self.placeholder_s = 0.0

    def choose(self, context: Context) -> Choice:
        """Of the next segment, and how long to wait before its request."""
        if self.vp is None:
            return Choice(0, "bola-e")
        sustained, wait_s = self._sustained, 0.0
        if not self._steady:
            index = sustained
            self.placeholder_s = max(0.0, self._least_s(index) - context.buffer_s)
            self._steady = self._finished_s is not None and context.buffer_s >= context.segment_s
        else:
            self._grow(context)
            index = self.best(context.buffer_s + self.placeholder_s)
            if index > self._last and index > sustained:
                index = max(sustained, self._last)
            wait_s = self._wait_s(context.buffer_s, index)
        self._called_s, self._finished_s = context.now_s, None
        self._last = min(index, self._cap.highest(context))
        return Choice(index, "bola-e", wait_s) if self._last == index else Choice(self._last, "insufficient-buffer")

    def loaded(self, loaded: Loaded) -> None:
        """The placeholder fades, and never promises more than the segment just loaded could have been chosen with."""
        super().loaded(loaded)
        self._cap.loaded()
        if self.vp is not None:
            self.placeholder_s *= PLACEHOLDER_DECAY
            at_request_s = loaded.buffer_s + (loaded.end_s - loaded.request_s)
            self.placeholder_s = min(self.placeholder_s, max(0.0, self._most_s(loaded.index) - at_request_s))
        if loaded.stalled:
            self.placeholder_s = 0.0  # seconds that are not there must not raise the bitrate now
        self._finished_s = loaded.end_s

    def best(self, buffer_s: float) -> int:
        """The index of the highest score at this buffer; of equal ones the highest."""
        vp = self.vp or 0.0
        scores = [
            (vp * (u + self.gp) - buffer_s) / bitrate for u, bitrate in zip(self.utilities, self._bitrates, strict=True)
        ]
        return max(range(len(scores)), key=lambda index: (scores[index], index))

    def _most_s(self, index: int) -> float:
        """The buffer at which a segment of this bitrate scores 0: with more, waiting is better."""
        return (self.vp or 0.0) * (self.utilities[index] + self.gp)

    def _least_s(self, index: int) -> float:
        """The buffer from which on this bitrate is preferred to every lower one; 0 for the lowest."""
        rate, utility = self._bitrates[index], self.utilities[index]
        least = 0.0
        for lower, lower_utility in zip(self._bitrates[:index], self.utilities[:index], strict=True):
            if lower_utility < utility:
                meeting = self.gp + (rate * lower_utility - lower * utility) / (rate - lower)
                least = max(least, (self.vp or 0.0) * meeting)
        return least

    def _grow(self, context: Context) -> None:
        """Time that passed since the last segment (or call) was not spent on the network: it counts as buffer."""
        since_s = self._finished_s if self._finished_s is not None else self._called_s
        if since_s is not None:
            self.placeholder_s += max(0.0, context.now_s - since_s)

    def _wait_s(self, buffer_s: float, index: int) -> float:
        """No more low-quality video than is worth while: first the placeholder gives way, then the request waits; at the highest
        bitrate the player alone decides how full the buffer gets."""
        excess_s = max(0.0, buffer_s + self.placeholder_s - self._most_s(index))
        taken_s = min(excess_s, self.placeholder_s)
        self.placeholder_s -= taken_s
        return excess_s - taken_s if index < self._top else 0.0


OFF_PART = 0.5
"""From ``stable_buffer_s`` of buffer on BOLA-E decides; below this part of it throughput again."""


class DynamicRule(Rule):
    """Both rules see every segment; the one in charge decides. The insufficient-buffer rule caps either."""

    def __init__(self, bitrates: Sequence[int], stable_buffer_s: float = STABLE_BUFFER_S) -> None:
        super().__init__(bitrates)
        self._shared = Throughput()
        self._throughput = ThroughputRule(bitrates, self._shared)
        self._bola = BolaRule(bitrates, stable_buffer_s, self._shared)
        self._cap = InsufficientBuffer(bitrates, self._shared)
        self._stable_s = stable_buffer_s
        self.by_buffer = False

    def choose(self, context: Context) -> Choice:
        """Which rule, then what it says. BOLA-E chooses each time, so that its placeholder buffer is up to date when it takes over."""
        threshold_s = self._stable_s * (OFF_PART if self.by_buffer else 1.0)
        self.by_buffer = context.buffer_s > threshold_s if self.by_buffer else context.buffer_s >= threshold_s
        of_bola = self._bola.choose(context)
        if self.by_buffer:
            return of_bola
        chosen = self._throughput.choose(context)
        capped = min(chosen.index, self._cap.highest(context))
        return chosen if capped == chosen.index else Choice(capped, "insufficient-buffer")

    def loaded(self, loaded: Loaded) -> None:
        self._shared.add(loaded.size_bytes, loaded.end_s - loaded.request_s)
        self._cap.loaded()
        self._bola.loaded(loaded)
