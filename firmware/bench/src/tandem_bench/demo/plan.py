"""How long the rehearsal's runs may take: sized from the first still phase and the duration."""

from __future__ import annotations

from dataclasses import dataclass

OVERHEAD_S = 2.0
"""Around each run: session, captures starting and stopping, the connection's set-up and end."""

START_S = 2.0
"""The collector polls this long before the first run."""

PAUSE_S = 2.0
"""Between sequential runs, so that the queue of the one is empty before the next."""


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

    At least 2 s a run are needed for a figure that means anything; PlanError when they do not fit into the whole
    rehearsal. In a scenario that begins on the move the first tenth of it is used instead.
    """
    room = first_still_s if first_still_s > 0 else max(duration_s / 3, 15.0)
    runs = paths + 1
    start = START_S if room >= 25 else 1.0
    pause = PAUSE_S if room >= 25 else 1.0
    seconds = (min(room, duration_s) - start - runs * OVERHEAD_S - (runs - 1) * pause) / runs
    if seconds < 2.0:
        seconds = 2.0
        needed = start + runs * (seconds + OVERHEAD_S) + (runs - 1) * pause
        if needed > duration_s:
            raise PlanError(
                f"--duration {duration_s:g}: one paired run needs {needed:.0f} s; give at least {needed:.0f}"
            )
    return Plan(start, round(min(seconds, 20.0), 1), pause, 8.0 if duration_s >= 120 else 5.0)
