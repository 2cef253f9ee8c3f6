import pytest
from attacked import Attacked, limited

from support.serve_on_loopback import whole_server


@pytest.fixture(scope="session")
def attacked(tmp_path_factory):
    """A whole server with small bounds, to be had in a test's time; in the end it has no traceback in its log and little memory."""
    folder = tmp_path_factory.mktemp("attacked")
    with whole_server(folder, limited, Attacked) as server:
        yield server
        peaks = server.peaks()
    log = (folder / "serve.log").read_text()
    assert "Traceback" not in log
    assert len(log) < 100_000
    assert set(peaks) == {"gateway", "endpoint", "worker"}
    assert max(peaks.values()) < 250 << 20, peaks
    server.no_secrets_in(log)


@pytest.fixture
def meanwhile(attacked):
    """While the test runs, a good probe sends batch after batch; each is answered 200."""
    with attacked.good_probe():
        yield
