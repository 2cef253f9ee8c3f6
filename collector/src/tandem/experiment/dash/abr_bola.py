"""BOLA-E: a buffer-based choice by utility (Spiteri, Urgaonkar, Sitaraman: "BOLA: near-optimal bitrate adaptation for online videos",
INFOCOM 2016; "From theory to practice: improving bitrate adaptation in the DASH reference player", MMSys 2018). Pure.

With utilities u_m = ln(S_m / S_1) + 1 and buffer Q, the choice is the m of the highest (V_p (u_m + g_p) − Q) / S_m. V_p and g_p are set so
that the lowest bitrate is preferred at 10 s and the highest from the target buffer on. The E stands for the placeholder buffer:
seconds that are not there but are counted, so that a choice by throughput at the start, and waiting that was not the network's
fault, do not make the bitrate creep. Increases go no further than throughput sustains (BOLA-O). Too little buffer caps the choice
(``InsufficientBuffer``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tandem.experiment.dash.abr import SAFETY, Choice, Context, Loaded, Throughput, affordable

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
        """The highest index allowed."""
        top = len(self._bitrates) - 1
        rate = self._throughput.bit_per_s
        if self._ignored > 0 or rate is None:
            return top
        if context.stalled:
            return 0
        return affordable(self._bitrates, INSUFFICIENT_SAFETY * rate * context.buffer_s / context.segment_s)

    def loaded(self) -> None:
        """A segment has come."""
        self._ignored = max(0, self._ignored - 1)


class BolaRule:
    """``throughput``: shared with other rules, which then feed it; else its own."""

    def __init__(
        self,
        bitrates: Sequence[int],
        stable_buffer_s: float = STABLE_BUFFER_S,
        throughput: Throughput | None = None,
    ) -> None:
        self._bitrates = bitrates
        self._own = throughput is None
        self._throughput = throughput or Throughput()
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
        """By throughput until a whole segment is in the buffer, then by buffer."""
        if self.vp is None:
            return Choice(0, "bola-e")
        sustained = affordable(self._bitrates, SAFETY * (self._throughput.bit_per_s or 0.0))
        wait_s = 0.0
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
        capped = min(index, self._cap.highest(context))
        self._last = capped
        return Choice(
            capped, "bola-e" if capped == index else "insufficient-buffer", wait_s if capped == index else 0.0
        )

    def loaded(self, loaded: Loaded) -> None:
        """The placeholder fades, and never promises more than the segment just loaded could have been chosen with."""
        if self._own:
            self._throughput.add(loaded.size_bytes, loaded.end_s - loaded.request_s)
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
        return excess_s - taken_s if index < len(self._bitrates) - 1 else 0.0
