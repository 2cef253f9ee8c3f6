import pytest


@pytest.fixture
def server(tmp_path):
    from captures_server import Server  # it skips where what it needs is not there

    made = Server(tmp_path)
    yield made
    made.registry.close()
