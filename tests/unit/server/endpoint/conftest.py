import pytest
from endpoint_on_loopback import Endpoint

from tandem_server.endpoint.sessions import Limits


@pytest.fixture
def endpoint(registry):
    """Starts endpoints with chosen limits, and limits on connections, records going into a list; ends them."""
    started = []

    def start(connections=None, **limits):
        started.append(Endpoint(registry, Limits(**limits), limits_on_connections=connections))
        return started[-1]

    yield start
    for one in started:
        one.stop()
