"""`tandem run` as it is, on the doubles of this folder instead of modems and kernel: ``run_on_doubles.py CONFIG``."""

import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[3])]

from doubles import FakeCaptures, FakeDetectors, FakeHardware, FakePaths  # noqa: E402 found by the line above

from tandem.app.daemon import supervisor  # noqa: E402
from tandem.app.health.machine import Roots  # noqa: E402
from tandem.cli.main import main  # noqa: E402
from tandem.mptcp.paths import PathEvent  # noqa: E402


class HeldPaths(FakePaths):
    """Made while no file ``hold`` lies in the folder: until then the collector is starting."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._hold = folder / "hold"

    def apply(self) -> list[PathEvent]:
        while self._hold.exists():
            time.sleep(0.01)
        return super().apply()


def hardware(folder: Path) -> FakeHardware:
    """A machine whose /sys lies in ``folder``."""
    made = FakeHardware(HeldPaths(folder), FakeCaptures(), FakeDetectors())
    made.roots = replace(Roots(), sys=folder / "sys", vcgencmd=folder / "vcgencmd")
    return made


if __name__ == "__main__":
    file = Path(sys.argv[1])
    supervisor.Hardware = lambda: hardware(file.parent)
    sys.exit(main(["run", "--config", str(file)]))
