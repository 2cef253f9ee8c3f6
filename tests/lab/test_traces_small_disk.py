"""A disk that fills up in the middle of a trace: 507, what was taken is kept, and it goes on when there is room. A real file system."""

import random
import subprocess

import pytest

from support.trace_gateway import TraceGateway, offered

pytestmark = pytest.mark.lab
MEBIBYTE = 1 << 20


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "traces"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m,mode=0750", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_trace_that_does_not_fit_goes_on_when_there_is_room(tmp_path, small_disk):
    gateway = TraceGateway(tmp_path)
    gateway.start()
    try:
        offer, stream = offered(random.Random(1).randbytes(5 * MEBIBYTE), encoding="identity")
        assert gateway.offer(offer)[0] == 507  # it is known beforehand that it will not fit
        status, _ = gateway.send(offer, 0, stream)
        assert status == 507
        kept = gateway.stream(offer).stat().st_size
        assert 2 * MEBIBYTE < kept <= 3 * MEBIBYTE
        assert gateway.state(offer)[1] == {"state": "receiving", "offset": kept}
        subprocess.run(["mount", "-o", "remount,size=16m", small_disk], check=True)
        assert gateway.offer(offer) == (200, {"state": "receiving", "offset": kept})
        assert gateway.send(offer, kept, stream[kept:])[1]["state"] == "received"
    finally:
        gateway.end()
    assert "Traceback" not in gateway.log()
