import pytest
from serve_on_loopback import Server, await_ready, end, lay_out, start

from tandem_server.store import StoreStartError


# One for each file: a probe that one file adds must not be known to another.
@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    try:
        ports = lay_out(folder)
    except StoreStartError as error:
        pytest.skip(str(error))
    served = Server(folder, *ports, start(folder), (folder / "token").read_text().strip())
    await_ready(served.process, "endpoint")
    yield served
    assert end(served.process) == 0
