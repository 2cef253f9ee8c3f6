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
    process = start(folder)
    await_ready(process, "endpoint")
    yield Server(folder, *ports, process, (folder / "token").read_text().strip())
    assert end(process) == 0
