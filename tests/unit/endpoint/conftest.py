import pytest
from endpoint_on_loopback import Endpoint

from tandem_server.endpoint.sessions import Limits
from tandem_server.registry import Registry
from tandem_server.store import PrivateInflux, StoreStartError, find_influxd


@pytest.fixture(scope="session")
def private_influx(tmp_path_factory):
    try:
        binary = find_influxd()
    except StoreStartError as error:
        pytest.skip(str(error))
    with PrivateInflux(binary, tmp_path_factory.mktemp("influx"), 0) as database:
        yield database


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        yield opened


@pytest.fixture
def endpoint(registry):
    """Starts endpoints with chosen limits, records going into a list; ends them."""
    started = []

    def start(store=None, **limits):
        started.append(Endpoint(registry, Limits(**limits), store))
        return started[-1]

    yield start
    for one in started:
        one.stop()
