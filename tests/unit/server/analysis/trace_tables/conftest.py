import pytest


@pytest.fixture
def server(tmp_path):
    from trace_server import Server  # it skips where what it needs is not there

    made = Server(tmp_path)
    yield made
    made.registry.close()
