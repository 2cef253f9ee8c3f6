import pytest

from tandem_server.store import PrivateInflux, StoreStartError, find_influxd


@pytest.fixture(scope="session")
def influx_binary():
    try:
        return find_influxd()
    except StoreStartError as error:
        pytest.skip(str(error))


# One for each file: what a file leaves in it would else meet whichever file its worker takes next.
@pytest.fixture(scope="module")
def private_influx(influx_binary, tmp_path_factory):
    with PrivateInflux(influx_binary, tmp_path_factory.mktemp("influx"), 0) as database:
        yield database


@pytest.fixture(scope="session")
def _descriptions():
    return {}


@pytest.fixture
def described_once(_descriptions, monkeypatch):
    """Each experiment is asked what it is once, not once a test: every answer is a process."""
    from tandem.app.runs.registry import Registry

    describe = Registry.describe

    def once(registry, name):
        key = registry._folder, name
        if key not in _descriptions:
            _descriptions[key] = describe(registry, name)
        return _descriptions[key]

    monkeypatch.setattr(Registry, "describe", once)
    monkeypatch.setattr(Registry, "ready", lambda _self, _name: True)
