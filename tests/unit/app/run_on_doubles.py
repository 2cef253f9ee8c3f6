"""`tandem run` as it is, on the doubles of this folder instead of modems and kernel: ``run_on_doubles.py CONFIG``."""

import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "export")]

from doubles import FAKE, FakeCaptures, FakeDetectors, FakePaths, FakePoller  # noqa: E402 found by the line above

from tandem.app import real_parts  # noqa: E402
from tandem.app.health.machine import Roots  # noqa: E402
from tandem.app.parts import Parts, PathChange  # noqa: E402
from tandem.cli.main import main  # noqa: E402


class HeldPaths(FakePaths):
    """Made while no file ``hold`` lies in the folder: until then the collector is starting."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._hold = folder / "hold"

    def apply(self) -> list[PathChange]:
        while self._hold.exists():
            time.sleep(0.01)
        return super().apply()


def parts(folder: Path) -> Parts:
    """A machine whose /sys lies in ``folder``."""
    return Parts(
        poller=FakePoller,
        detectors=lambda _config: FakeDetectors(),
        paths=lambda _config: HeldPaths(folder),
        captures=lambda _config, _used: FakeCaptures(),
        set_sysctls=lambda _wanted: {},
        missing_requirement=lambda _wanted: None,
        undo_earlier=lambda _spool, _boot: [],
        environment=dict,
        experiment=lambda _name: [sys.executable, str(FAKE), "quick"],
        roots=replace(Roots(), sys=folder / "sys", vcio=folder / "vcio"),
    )


if __name__ == "__main__":
    file = Path(sys.argv[1])
    real_parts.real_parts = lambda: parts(file.parent)
    sys.exit(main(["run", "--config", str(file)]))
