"""Captures by the real tcpdump in a network namespace."""

import hashlib
import json
import os
import subprocess
import tempfile

import pytest

from support.two_paths import lab, lab_with
from tandem.capture import Budget, Capture, CaptureError, stop_all

pytestmark = lab_with("tcpdump")

_SEND = "python3 -c \"import socket; s = socket.socket(2, 2); [s.sendto(bytes(1000), ('{to}', 9)) for _ in range({count})]\""


def send(count: int, to: str = "127.0.0.1") -> str:
    """A command that sends so many UDP packets of 1000 bytes to port 9."""
    return _SEND.format(count=count, to=to)


PACKET = 16 + 128
"""Bytes of one in a file, whose header has 24."""
PATIENT_S = 3.0
"""The kernel hands over what it has after a second; the rest is for a tcpdump on a busy machine."""


@pytest.fixture(scope="module")
def space():
    with lab(upwards=False) as made:
        yield made.probe


def begin(space, *captures: Capture) -> None:
    space.inside(lambda: [c.start(60) for c in captures])


def ended(capture: Capture) -> None:
    """Wait until tcpdump has ended by itself."""
    assert capture._process is not None
    capture._process.wait(60)


def test_what_is_sent_after_start_and_before_stop_is_on_disk(space, tmp_path):
    budget = Budget(10**7)
    capture = Capture("tmp5-a", tmp_path / "x.pcap", 128, budget, "udp dst port 9")
    begin(space, capture)
    space.run(send(500, "10.71.1.2"))
    result = capture.stop(PATIENT_S)
    raw = result.file.read_bytes()
    assert (result.packets, result.cut, result.dropped_packets, result.missed_packets) == (500, False, 0, 0)
    assert (result.bytes, result.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    assert result.bytes == 24 + 500 * PACKET == budget.used_bytes
    told = subprocess.run(["tcpdump", "-n", "-r", "-"], input=raw, capture_output=True, check=True).stdout
    assert len(told.splitlines()) == 500


def test_a_used_up_budget_cuts_at_a_packet_and_says_so(space, tmp_path):
    capture = Capture("lo", tmp_path / "x.pcap", 128, Budget(24 + 100 * PACKET + 99), "udp dst port 9")
    begin(space, capture)
    space.run(send(500))
    ended(capture)
    result = capture.stop()
    assert (result.packets, result.bytes, result.cut) == (100, 24 + 100 * PACKET, True)
    assert "budget" in str(result.reason)


def test_several_end_together_at_once_and_account_for_every_packet(space, tmp_path):
    def capture(port: int) -> Capture:
        return Capture("tmp5-b", tmp_path / f"{port}.pcap", 128, Budget(10**7), f"udp dst port {port}")

    captures = [capture(9), capture(10)]
    begin(space, *captures)
    space.run(send(50, "10.71.2.2"))
    # On a busy machine some may still be in the kernel's buffer, and are told.
    assert [r.packets + r.dropped_packets + r.missed_packets for r in stop_all(captures)] == [50, 0]


def test_a_full_disk_keeps_what_fitted(space, tmp_path):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], check=True)
    try:
        capture = Capture("lo", tmp_path / "x.pcap", 128, Budget(10**7), "udp dst port 9")
        begin(space, capture)
        space.run(send(1000))
        ended(capture)
        result = capture.stop()
        assert result.cut
        assert result.reason == "disk: no space left on device"
        assert 0 < result.bytes <= 65536
        assert (result.bytes - 24) % PACKET == 0
        assert result.file.stat().st_size == result.bytes
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_an_interface_that_vanishes_cuts_and_says_so(space, tmp_path):
    space.run("ip link add gone type bridge; ip link set gone up")
    capture = Capture("gone", tmp_path / "x.pcap", 128, Budget(10**7))
    begin(space, capture)
    space.run("ip link delete gone")
    ended(capture)
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


CAPTURE = """
import json, socket
from pathlib import Path
from tandem.capture import Budget, Capture
capture = Capture("lo", Path("{folder}") / "x.pcap", 128, Budget(10**7), "udp dst port 9")
capture.start(60)
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20):
    sender.sendto(b"x", ("127.0.0.1", 9))
result = capture.stop({patient_s})
print(json.dumps([result.packets, result.cut]))
"""


@pytest.mark.parametrize(("user", "capabilities"), [(0, "+net_admin,+net_raw"), (65534, "+net_admin,+net_raw")])
def test_it_works_with_two_capabilities_only(space, user, capabilities):
    """As uid 0 that may not even set its groups, and as an ordinary user, to whom pytest's folders are closed."""
    with tempfile.TemporaryDirectory(prefix="tandem-capture-") as folder:
        os.chown(folder, user, user)
        told = space.python(CAPTURE.format(folder=folder, patient_s=PATIENT_S), user=user, capabilities=capabilities)
    assert json.loads(told) == [20, False]


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
