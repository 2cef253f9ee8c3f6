"""BBA-0: the bitrate follows from the buffer alone (Huang et al., SIGCOMM 2014, "A buffer-based approach to rate adaptation",
algorithm 1). Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.experiment.dash.abr import Choice, Context, Loaded

RESERVOIR = 90 / 240
"""Of the largest buffer: the paper's 90 s of 240 s, in which the lowest bitrate is played."""
CUSHION = 126 / 240
"""Of the largest buffer: the paper's 126 s, over which the bitrate rises to the highest; 10 % are left above it."""


class BbaRule:
    """``reservoir_s`` and ``cushion_s`` in seconds of buffer."""

    def __init__(self, bitrates: Sequence[int], reservoir_s: float, cushion_s: float) -> None:
        self._bitrates = bitrates
        self._reservoir_s, self._cushion_s = reservoir_s, cushion_s
        self._previous = 0

    def rate(self, buffer_s: float) -> float:
        """The map f(B), in bit/s: linear between the reservoir's end and the cushion's."""
        low, high = self._bitrates[0], self._bitrates[-1]
        part = (buffer_s - self._reservoir_s) / self._cushion_s
        return low + (high - low) * min(1.0, max(0.0, part))

    def choose(self, context: Context) -> Choice:
        """The bitrate before is kept until the map passes the next one above or below."""
        rates, top = self._bitrates, len(self._bitrates) - 1
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

    def loaded(self, loaded: Loaded) -> None:
        """The network is not looked at."""
