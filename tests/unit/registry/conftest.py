import pytest

from tandem_server.registry import Registry


@pytest.fixture
def empty(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        yield opened


@pytest.fixture
def registry(empty):
    for name in ("probe-1", "probe-2"):
        empty.probes.add(name)
    return empty
