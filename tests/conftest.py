"""Hypothesis without deadlines, Ctrl-C for whoever is sent it, and folders that a user's programs may enter when root runs the tests."""

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from tandem_bench.run.programs import Owner

# No test is judged by the clock: on a busy machine, or a small one, an example may take what it takes.
# Few examples while one works, the same ones each time; many, and new ones, in `./kit test --all`.
settings.register_profile(
    "test", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=25, derandomize=True
)
settings.register_profile(
    "all", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=200, print_blob=True
)
settings.load_profile(os.environ.get("TANDEM_HYPOTHESIS", "test"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "exhaustive: in ./kit test --all alone; an edge of it runs always")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("TANDEM_HYPOTHESIS") != "all":
        for item in items:
            if item.get_closest_marker("exhaustive"):
                item.add_marker(pytest.mark.skip(reason="in ./kit test --all, or with TANDEM_HYPOTHESIS=all"))


if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell without job control starts what it puts into the background deaf to Ctrl-C, and children inherit that; tests interrupt them.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True, scope="session")
def _entrances(tmp_path_factory: pytest.TempPathFactory) -> None:
    """pytest keeps its folders closed to everybody else; the kit's programs run as the user who called sudo."""
    if "SUDO_UID" in os.environ and os.geteuid() == 0:
        base = tmp_path_factory.getbasetemp()
        for folder in (base, base.parent):
            folder.chmod(folder.stat().st_mode | 0o755)


@pytest.fixture(autouse=True)
def _own_folder(request: pytest.FixtureRequest) -> None:
    """The test's own folder belongs to whoever called sudo."""
    if "tmp_path" in request.fixturenames and os.geteuid() == 0:
        Owner.of_caller().give(request.getfixturevalue("tmp_path"))
