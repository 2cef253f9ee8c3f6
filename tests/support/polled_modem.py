"""The bench's modem as a process of its own, and what the collector's poller makes of it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.running_kit import play_fault
from support.scripted_modem import Collected
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller


class PolledModem(Collected):
    """``made``: its polls, with driver ``auto``, from ``start`` on; ``port``: leads to its terminal."""

    def __init__(self, folder: Path, timeline: Path, family: str = "generic", period_s: float = 0.3) -> None:
        super().__init__()
        self.family, self.port, self._control = family, folder / family, folder / f"{family}.sock"
        argv = [sys.executable, "-m", "tandem_bench", "modem", "--family", family, "--timeline", str(timeline)]
        argv += ["--link", str(self.port), "--control", str(self._control)]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.poller = Poller("a", "A", str(self.port), "auto", period_s, self.add)

    def start(self) -> None:
        assert self.process.stdout.readline().startswith("ready")
        self.poller.start()

    def close(self) -> None:
        self.poller.stop(60)
        self.process.terminate()
        self.process.wait(60)
        self.process.stdout.close()

    def wish(self, **wish: Any) -> None:
        play_fault(self._control, wish)

    def until(self, wanted: Callable[[Poll], bool], since: int = 0) -> int:
        """How many polls there are once one since the ``since``-th is as wanted."""
        return len(self.wait(lambda made: any(map(wanted, made[since:]))))
