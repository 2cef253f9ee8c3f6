"""When a poll is due: fixed instants, so that nothing drifts."""

from __future__ import annotations


class Schedule:
    """Due times ``start + n · period``, in nanoseconds of CLOCK_MONOTONIC."""

    def __init__(self, start_ns: int, period_s: float) -> None:
        if not period_s > 0:
            raise ValueError(f"the period must be above 0 s, not {period_s}")
        self._period_ns = round(period_s * 1e9)
        self.due_ns = start_ns

    def advance(self, now_ns: int) -> int:
        """Go on to the first due time after the current one that is not past; how many were passed over."""
        self.due_ns += self._period_ns
        behind_ns = now_ns - self.due_ns
        if behind_ns <= 0:
            return 0
        skipped = -(-behind_ns // self._period_ns)
        self.due_ns += skipped * self._period_ns
        return skipped
