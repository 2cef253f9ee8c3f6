import pytest

from support.serve_on_loopback import Server, await_ready, end, lay_out, start, whole_server


# One for each file: a probe that one file adds must not be known to another.
@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with whole_server(tmp_path_factory.mktemp("server")) as served:
        yield served


@pytest.fixture
def two_gateways(tmp_path):
    """Two gateway processes behind one port, and their ``database``; either may be ended and started again."""
    ports = lay_out(tmp_path)
    config = tmp_path / "server.toml"
    config.write_text(config.read_text().replace("[listen]\n", "[listen]\ngateway_processes = 2\n"))
    served = Server(tmp_path, *ports, None, (tmp_path / "token").read_text().strip())
    served.database = start(tmp_path, "database")
    await_ready(served.database, "database")
    served.process = start(tmp_path, "gateway")
    await_ready(served.process, "gateway")
    yield served
    assert [end(one) for one in (served.process, served.database) if one.poll() is None] in ([0, 0], [0])
