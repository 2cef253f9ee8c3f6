from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from filled_database import Filled, filled_database
from incident_results import IncidentRun
from incident_run import play

from support.running_kit import RunningKit, find_influxd, running_kit


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text("secret")
    return file


@pytest.fixture(scope="session")
def influxd() -> Path:
    found = find_influxd()
    if found is None:
        pytest.skip("no influxd; ./kit setup takes it out of the distribution's package")
    return found


@pytest.fixture(scope="module")
def kit(influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningKit]:
    with running_kit(tmp_path_factory.mktemp("rig"), influxd) as running:
        yield running


@pytest.fixture(scope="session")
def incidents(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> IncidentRun:
    """Played once for all files that ask for it, also when several processes run them; ``TANDEM_INCIDENTS``: the folder of one that was
    played before (``run`` in it), while you write what reads it."""
    if kept := os.environ.get("TANDEM_INCIDENTS"):
        return IncidentRun.read(Path(kept) / "run")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / "incidents"
    with (base / "incidents.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "run" / "incidents.json").exists():
            shutil.rmtree(folder, ignore_errors=True)  # another process's, which failed there
            folder.mkdir()
            play(folder, request.getfixturevalue("influxd"))
    return IncidentRun.read(folder / "run")


@pytest.fixture(scope="session")
def filled(incidents: IncidentRun, influxd: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    """The database that the incident run left, running."""
    with filled_database(incidents, influxd, tmp_path_factory.mktemp("filled") / "influxdb") as running:
        yield running
