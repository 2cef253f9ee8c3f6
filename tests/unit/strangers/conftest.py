import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ingest"))

from attacked import Attacked, limited
from serve_on_loopback import await_ready, end, lay_out, start

from tandem_server.store import StoreStartError


@pytest.fixture(scope="session")
def attacked(tmp_path_factory):
    """A whole server with small bounds, to be had in a test's time; in the end it has no traceback in its log and little memory."""
    folder = tmp_path_factory.mktemp("attacked")
    try:
        ports = lay_out(folder)
    except StoreStartError as error:
        pytest.skip(str(error))
    limited(folder)
    process = start(folder)
    await_ready(process, "endpoint")
    server = Attacked(folder, *ports, process, (folder / "token").read_text().strip())
    yield server
    peaks = server.peaks()
    assert end(process) == 0
    log = (folder / "serve.log").read_text()
    assert "Traceback" not in log
    assert len(log) < 100_000
    assert set(peaks) == {"gateway", "endpoint"}
    assert max(peaks.values()) < 250 << 20, peaks
    server.no_secrets_in(log)


@pytest.fixture
def meanwhile(attacked):
    """While the test runs, a good probe sends batch after batch; each is answered 200."""
    with attacked.good_probe():
        yield
