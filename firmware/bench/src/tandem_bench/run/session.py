"""The end of what is played: Ctrl-C and SIGTERM at any moment, or the scenario's own end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType

from tandem_bench.run.programs import ProgramError
from tandem_bench.run.rig import Rig

DOUBLE_S = 0.7
"""A terminal sends Ctrl-C to the whole process group and the parent passes it on: two signals this close are one."""


class Stopped(Exception):  # noqa: N818  # no error: the user's wish
    """The user asked to stop; the text says how."""


class StopSignals:
    """Raises ``Stopped`` in the main thread at the first signal; exits at one that comes ``DOUBLE_S`` or more later.

    The rehearsal is the first process of its namespace, so the exit takes every program with it.
    """

    def __init__(self) -> None:
        self.first_monotonic_s: float | None = None

    def install(self) -> None:
        """Take over SIGINT, SIGTERM and SIGHUP."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._received)

    def _received(self, number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self.first_monotonic_s is None:
            self.first_monotonic_s = now
            raise Stopped(
                {signal.SIGINT: "Ctrl-C", signal.SIGHUP: "terminal closed"}.get(signal.Signals(number), "SIGTERM")
            )
        if now - self.first_monotonic_s >= DOUBLE_S:
            os.write(2, b"tandem-bench: stopped at once\n")
            os._exit(130)


def play_alone(rig: Rig, truth: Path, explain: Callable[[], None]) -> bool:
    """Hold a bench without collector and server until the scenario is over (True) or the user stops it (False); ``explain`` is called once
    all is up. Writes ``truth``. ProgramError when something ends by itself, and what ``Rig`` raises."""
    whole = True
    StopSignals().install()
    with rig:
        try:
            rig.start_radio()
            explain()
            while (left := rig.played.duration_s - rig.now_s()) > 0:
                if why := rig.failed():
                    raise ProgramError(why)
                time.sleep(min(left, 0.5))
        except Stopped:
            whole = False
        rig.stop_radio()
        rig.write_truth(truth)
    # What root wrote beside the modems' own files is the caller's.
    for made in (truth, *rig.folder.glob("*.log"), *rig.folder.glob("link-*.jsonl")):
        rig.owner.give(made)
    print(f"truth: {truth}")
    return whole
