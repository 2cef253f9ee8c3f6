"""Hypothesis without deadlines; temporary folders that the programs under test may enter when root's tests were started through sudo."""

import os

import pytest
from hypothesis import HealthCheck, settings

from tandem_bench.rig.rights import Owner

# No test is judged by the clock: on a busy machine, or a small one, an example may take what it takes.
settings.register_profile("tandem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("tandem")


@pytest.fixture(autouse=True, scope="session")
def _entrances(tmp_path_factory: pytest.TempPathFactory) -> None:
    """pytest keeps its folders closed to everybody else; the kit's programs run as the user who called sudo."""
    if "SUDO_UID" in os.environ and os.geteuid() == 0:
        base = tmp_path_factory.getbasetemp()
        base.chmod(0o755)
        base.parent.chmod(0o755)


@pytest.fixture(autouse=True)
def _own_folder(request: pytest.FixtureRequest) -> None:
    """The test's own folder belongs to whoever called sudo."""
    if "tmp_path" in request.fixturenames and os.geteuid() == 0:
        Owner.of_caller().give(request.getfixturevalue("tmp_path"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that may take long begin first, so that a run does not end with one of them alone; each stays as it is in itself."""
    items.sort(key=_patience, reverse=True)


def _patience(item: pytest.Item) -> float:
    """Seconds that the item's file asks for."""
    module = item.getparent(pytest.Module)
    if module is None or module.get_closest_marker("slow") is None:
        return 0.0
    timeout = module.get_closest_marker("timeout")
    return float(timeout.args[0]) if timeout else 300.0
