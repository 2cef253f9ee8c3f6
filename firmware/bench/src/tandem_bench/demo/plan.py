"""How long the rehearsal's runs may take: sized from the first still phase and the duration."""

from __future__ import annotations

from dataclasses import dataclass

OVERHEAD_S = 2.5
"""Around each run, measured: session and captures start (1.2 s), captures end (1.3 s)."""

START_S = 1.0
"""The collector polls this long before the first run."""

PAUSE_S = 1.0
"""Between sequential runs. With the end of the captures that is more than 2 s, in which the queues run empty: a run that begins while
they drain leaves slow start too early."""


LEAST_S, LONGEST_S = 2.0, 20.0
"""A run shorter than this is all slow start; one longer tells nothing more."""


class PlanError(ValueError):
    """The scenario leaves no room for the one paired run that a rehearsal always makes."""


@dataclass(frozen=True)
class Plan:
    """``first_*``: the sequential pair of the first still phase; ``run_seconds``: of the pairs that mobility starts."""

    first_start_s: float
    first_seconds: float
    first_pause_s: float
    run_seconds: float


def plan(first_still_s: float, duration_s: float, paths: int) -> Plan:
    """Fit one MPTCP and ``paths`` TCP runs into the first still phase of ``first_still_s`` seconds.

    PlanError when runs of ``LEAST_S`` do not fit into the whole rehearsal. In a scenario that begins on the move the first third of it is
    used instead.
    """
    room = first_still_s if first_still_s > 0 else max(duration_s / 3, 15.0)
    runs = paths + 1
    # Where all of it is still, the pair must be over well before the end, on a slow machine too.
    room = min(room, 0.85 * duration_s - 1.0)
    seconds = (room - START_S - runs * OVERHEAD_S - (runs - 1) * PAUSE_S) / runs
    if seconds < LEAST_S:
        seconds = LEAST_S
        needed = START_S + runs * (seconds + OVERHEAD_S) + (runs - 1) * PAUSE_S
        if needed > duration_s:
            raise PlanError(
                f"--duration {duration_s:g}: one paired run needs {needed:.0f} s; give at least {needed:.0f}"
            )
    return Plan(START_S, round(min(seconds, LONGEST_S), 1), PAUSE_S, 8.0 if duration_s >= 120 else 5.0)
