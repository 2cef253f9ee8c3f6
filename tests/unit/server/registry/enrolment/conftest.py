import pytest
from enrolling import Gateway, lay_out_gateway

from support.serve_on_loopback import await_ready, end, start


# One for each file: who enrolled in one must not be known to another.
@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """A real gateway over TLS, with a tunnel and without a database, which enrolment does not need."""
    folder = tmp_path_factory.mktemp("gateway")
    port = lay_out_gateway(folder)
    process = start(folder, "gateway")
    await_ready(process, "gateway")
    yield Gateway(folder, port)
    assert end(process) == 0
    assert "Traceback" not in (folder / "serve.log").read_text()
