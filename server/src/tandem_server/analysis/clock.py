"""One time axis for everything: seconds since the campaign's (on a bench: the scenario's) start.

On a bench all programs share one CLOCK_MONOTONIC, so monotonic times are compared: a step of the wall clock cannot bend the
scores. In the field each machine has its own, so UTC is compared; so it is for what was recorded in another boot than the bench's, whose
monotonic clock began elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """``start_monotonic_ns`` is None in the field; ``start_utc_ns`` is second 0 on the wall clock. ``boot``: in which the monotonic time
    was read; None: there was one only."""

    start_utc_ns: int
    start_monotonic_ns: int | None = None
    boot: str | None = None

    def seconds(self, utc_ns: int | None, monotonic_ns: int | None, boot: str | None = None) -> float | None:
        """Seconds since the start, or None when neither time serves. ``boot``: of ``monotonic_ns``."""
        same = self.boot is None or boot is None or boot == self.boot
        if same and self.start_monotonic_ns is not None and monotonic_ns is not None:
            return (monotonic_ns - self.start_monotonic_ns) / 1e9
        if utc_ns is not None:
            return (utc_ns - self.start_utc_ns) / 1e9
        return None
