import pytest

from tandem_server.registry import Registry


@pytest.fixture
def empty(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        yield opened


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """Of many examples: probe-1 has a token, and probe-2 is invited."""
    with Registry(tmp_path_factory.mktemp("registry") / "registry.sqlite") as opened:
        opened.probes.add("probe-1")
        opened.enrolments.invite("probe-2", 3600, None)
        yield opened


@pytest.fixture
def registry(empty):
    for name in ("probe-1", "probe-2"):
        empty.probes.add(name)
    return empty
