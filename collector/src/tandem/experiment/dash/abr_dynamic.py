"""dynamic: by throughput while the buffer is low, by BOLA-E when it is not, as dash.js does by default (3 and 4). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.experiment.dash.abr import Choice, Context, Loaded, Throughput, ThroughputRule
from tandem.experiment.dash.abr_bola import STABLE_BUFFER_S, BolaRule, InsufficientBuffer

OFF_PART = 0.5
"""From ``stable_buffer_s`` of buffer on BOLA-E decides; below this part of it throughput again."""


class DynamicRule:
    """Both rules see every segment; the one in charge decides. The insufficient-buffer rule caps either."""

    def __init__(self, bitrates: Sequence[int], stable_buffer_s: float = STABLE_BUFFER_S) -> None:
        self._shared = Throughput()
        self._throughput = ThroughputRule(bitrates, self._shared)
        self._bola = BolaRule(bitrates, stable_buffer_s, self._shared)
        self._cap = InsufficientBuffer(bitrates, self._shared)
        self._stable_s = stable_buffer_s
        self.by_buffer = False

    def choose(self, context: Context) -> Choice:
        """Which rule, then what it says. BOLA-E is asked each time, so that its placeholder buffer is up to date when it takes over."""
        threshold_s = self._stable_s * (OFF_PART if self.by_buffer else 1.0)
        self.by_buffer = context.buffer_s > threshold_s if self.by_buffer else context.buffer_s >= threshold_s
        of_bola = self._bola.choose(context)
        if self.by_buffer:
            return of_bola
        chosen = self._throughput.choose(context)
        capped = min(chosen.index, self._cap.highest(context))
        return chosen if capped == chosen.index else Choice(capped, "insufficient-buffer")

    def loaded(self, loaded: Loaded) -> None:
        """See ``Rule``."""
        self._shared.add(loaded.size_bytes, loaded.end_s - loaded.request_s)
        self._cap.loaded()
        self._bola.loaded(loaded)
