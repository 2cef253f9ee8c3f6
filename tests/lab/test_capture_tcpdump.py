"""Captures by the real tcpdump in a network namespace."""

import hashlib
import json
import shutil
import subprocess

import pytest
from two_paths import lab, why_not

from tandem.capture import Budget, Capture, CaptureError, stop_all

LACK = why_not() or (None if shutil.which("tcpdump") else "tcpdump is not installed")
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]

_SEND = "python3 -c \"import socket; s = socket.socket(2, 2); [s.sendto(bytes(1000), ('{to}', 9)) for _ in range({count})]\""


def send(count: int, to: str = "127.0.0.1") -> str:
    """A command that sends so many UDP packets of 1000 bytes to port 9."""
    return _SEND.format(count=count, to=to)


@pytest.fixture
def space():
    with lab(upwards=False) as made:
        yield made.probe


def begin(space, *captures: Capture) -> None:
    space.inside(lambda: [c.start() for c in captures])


def test_what_is_sent_after_start_and_before_stop_is_on_disk(space, tmp_path):
    budget = Budget(10**7)
    capture = Capture("tmp5-a", tmp_path / "x.pcap", 128, budget, "udp dst port 9")
    begin(space, capture)
    space.run(send(500, "10.71.1.2"))
    result = capture.stop()
    raw = result.file.read_bytes()
    assert (result.packets, result.cut, result.dropped_packets, result.missed_packets) == (500, False, 0, 0)
    assert (result.bytes, result.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert result.bytes == 24 + 500 * (16 + 128) == budget.used_bytes
    told = subprocess.run(["tcpdump", "-n", "-r", "-"], input=raw, capture_output=True, check=True).stdout
    assert len(told.splitlines()) == 500


def test_a_used_up_budget_cuts_at_a_packet_and_says_so(space, tmp_path):
    capture = Capture("lo", tmp_path / "x.pcap", 128, Budget(24 + 100 * 144 + 99), "udp dst port 9")
    begin(space, capture)
    space.run(send(500))
    result = capture.stop()
    assert (result.packets, result.bytes, result.cut) == (100, 24 + 100 * 144, True)
    assert "budget" in str(result.reason)


def test_several_end_together(space, tmp_path):
    captures = [
        Capture("lo", tmp_path / f"{port}.pcap", 128, Budget(10**7), f"udp dst port {port}") for port in (9, 10)
    ]
    begin(space, *captures)
    space.run(send(50))
    assert [r.packets for r in stop_all(captures)] == [50, 0]


def test_a_full_disk_keeps_what_fitted(space, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=True)
    try:
        capture = Capture("lo", tmp_path / "x.pcap", 128, Budget(10**7), "udp dst port 9")
        begin(space, capture)
        space.run(send(1000))
        result = capture.stop()
        assert result.cut
        assert result.reason == "disk: no space left on device"
        assert 0 < result.bytes <= 65536
        assert (result.bytes - 24) % 144 == 0
        assert result.file.stat().st_size == result.bytes
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_an_interface_that_vanishes_cuts_and_says_so(space, tmp_path):
    capture = Capture("tmp5-a", tmp_path / "x.pcap", 128, Budget(10**7))
    begin(space, capture)
    space.run("ip link delete tmp5-a")
    assert capture._process is not None
    capture._process.wait(10)
    result = capture.stop()
    assert result.cut
    assert result.file.read_bytes()[:4] == b"\xd4\xc3\xb2\xa1"


@pytest.mark.parametrize(
    ("interface", "filter_", "words"), [("tmp5-none", "", "No such device"), ("lo", "tcp prot 1", "syntax error")]
)
def test_what_tcpdump_refuses_is_said_in_its_words(space, tmp_path, interface, filter_, words):
    with pytest.raises(CaptureError, match=words):
        begin(space, Capture(interface, tmp_path / "x.pcap", 128, Budget(10**7), filter_))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("user", "capabilities"), [(0, "+net_admin,+net_raw"), (65534, "+net_admin,+net_raw")])
def test_it_works_with_two_capabilities_only(space, tmp_path, user, capabilities):
    """As uid 0 that may not even set its groups, and as an ordinary user."""
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    for parent in list(folder.parents)[:-2]:
        parent.chmod(parent.stat().st_mode | 0o11)
    code = f"""
import json, socket
from pathlib import Path
from tandem.capture import Budget, Capture
capture = Capture("lo", Path({str(folder)!r}) / "x.pcap", 128, Budget(10**7), "udp dst port 9")
capture.start()
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    sender.sendto(b"x", ("127.0.0.1", 9))
result = capture.stop()
print(json.dumps([result.packets, result.cut]))
"""
    assert json.loads(space.python(code, user=user, capabilities=capabilities)) == [20, False]


def test_without_the_capability_the_refusal_is_told(space, tmp_path):
    code = f"""
from pathlib import Path
from tandem.capture import Budget, Capture, CaptureError
try:
    Capture("lo", Path({str(tmp_path)!r}) / "x.pcap", 128, Budget(10**7)).start()
except CaptureError as error:
    print(error)
"""
    assert "permission" in space.python(code, user=0, capabilities="+net_admin").lower()
