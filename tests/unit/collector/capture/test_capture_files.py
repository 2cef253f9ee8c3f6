"""Captures on disk: whole packets however the stream is cut, one budget for all; what a killed collector or a power cut left of one."""

import hashlib
import struct
import subprocess
import sys
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.capture.capture import Budget, CaptureFile
from tandem.capture.pcap import HEADER_BYTES, LONGEST_PACKET, PcapError, Walker, salvage, salvage_all

MAGICS = [(0xA1B2C3D4, "<"), (0xA1B23C4D, "<"), (0xA1B2C3D4, ">"), (0xA1B23C4D, ">")]


def stream(packets: list[bytes], magic: int = 0xA1B2C3D4, order: str = "<", linktype: int = 1) -> bytes:
    head = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 128, linktype)
    return head + b"".join(struct.pack(order + "4I", 1, 2, len(p), 1500) + p for p in packets)


def cut(raw: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(p % (len(raw) + 1) for p in places), len(raw)]
    return [raw[a:b] for a, b in pairwise(edges)]


@given(
    packets=st.lists(st.binary(max_size=200), max_size=20),
    places=st.lists(st.integers(0, 5000), max_size=30),
    tail=st.binary(max_size=15),
    kind=st.sampled_from(MAGICS),
)
def test_however_it_is_cut_the_same_packets_come_whole(packets, places, tail, kind):
    raw = stream(packets, *kind, linktype=101)
    walker, got, sizes = Walker(), b"", []
    for piece in cut(raw + tail, places):
        whole, some = walker.feed(piece)
        assert len(whole) == sum(some)
        got += whole
        sizes += some
    assert got == raw
    assert sizes == [HEADER_BYTES, *(16 + len(p) for p in packets)]
    assert (walker.packets, walker.linktype, walker.pending_bytes) == (len(packets), 101, len(tail))


@given(st.booleans(), st.lists(st.binary(max_size=300), max_size=8))
def test_any_bytes_also_after_a_good_header_are_walked_or_refused(begun, pieces):
    walker = Walker()
    walker.feed(stream([]) if begun else b"")
    fed = 0
    for piece in pieces:
        try:
            whole, _ = walker.feed(piece)
        except PcapError:
            return
        fed += len(piece) - len(whole)
        assert walker.pending_bytes == fed


def test_a_length_no_capture_can_have_is_damage_and_what_was_before_it_is_kept():
    walker, good = Walker(), stream([b"xy"])
    whole, sizes = walker.feed(good + struct.pack("<4I", 1, 2, LONGEST_PACKET + 1, 1500))
    assert (whole, sizes, walker.packets, walker.whole_bytes) == (good, [24, 18], 1, 42)
    assert walker.damage == f"a packet of {LONGEST_PACKET + 1} bytes at byte 42"
    with pytest.raises(PcapError, match="at byte 42"):
        walker.feed(b"more")


def test_what_no_capture_writes_is_damage_in_a_torn_file_only():
    """Zeros as a power cut leaves them; longer than on the wire; above the header's 128; a million microseconds."""
    for seconds, microseconds, length, on_wire in ((0, 0, 0, 0), (1, 2, 100, 99), (1, 2, 129, 1500), (1, 10**6, 2, 2)):
        torn, live = Walker(torn=True), Walker()
        raw = stream([b"xy"]) + struct.pack("<4I", seconds, microseconds, length, on_wire) + bytes(length)
        assert torn.feed(raw)[0] == stream([b"xy"])
        assert torn.damage == "no packet at byte 42"
        assert live.feed(raw)[0] == raw
        assert live.damage is None


HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)


def test_all_is_written_and_renamed_when_whole(tmp_path):
    file = CaptureFile(tmp_path / "new" / "x.pcap", Budget(10_000))
    raw = HEAD + framed(bytes(100)) * 3
    assert file.write(raw[:70])
    assert not (tmp_path / "new/x.pcap").exists()
    assert file.write(raw[70:])
    digest = file.close()
    assert (tmp_path / "new/x.pcap").read_bytes() == raw
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new/x.pcap"]
    assert (file.bytes, file.packets, file.reason) == (len(raw), 3, None)
    assert digest == hashlib.sha256(raw).hexdigest()


def test_the_budget_is_shared(tmp_path):
    budget = Budget(1000)
    first, second = (CaptureFile(tmp_path / name, budget) for name in ("a.pcap", "b.pcap"))
    assert first.write(HEAD + framed(bytes(100)) * 4)
    assert not second.write(HEAD + framed(bytes(100)) * 6)
    assert (first.packets, second.packets) == (4, 4)
    assert first.write(b"")
    assert budget.used_bytes <= 1000
    first.close()
    second.close()


@given(limit=st.integers(0, 500), takes=st.lists(st.integers(0, 200), max_size=20))
def test_a_budget_never_gives_more_than_it_has(limit, takes):
    budget, given_out = Budget(limit), 0
    for count in takes:
        if budget.take(count):
            given_out += count
        else:
            assert given_out + count > limit
        assert budget.used_bytes == given_out <= limit
    budget.give_back(given_out)
    assert budget.left_bytes == limit


def test_a_budget_is_exact_under_threads():
    budget, taken = Budget(10_000), []
    threads = [
        threading.Thread(target=lambda: taken.extend(1 for _ in range(4000) if budget.take(1))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(taken) == 10_000 == budget.used_bytes


def framed(content: bytes, length: int = 1500) -> bytes:
    return struct.pack("<4I", 1_795_262_400, 2, len(content), length) + content


packets = st.lists(st.binary(max_size=128), min_size=1, max_size=20).map(lambda all_: [framed(one) for one in all_])


def left(folder: Path, raw: bytes, name: str = "run-0123456789ab-a.pcap.tmp") -> Path:
    file = folder / name
    file.write_bytes(raw)
    return file


@given(made=packets, cut=st.integers(1, 143), last=st.sampled_from([framed(b"x" * 128), bytes(5000)]))
def test_what_is_whole_before_a_cut_or_zeros_is_kept_and_no_more(made, cut, last):
    """Zeros: a file grown by a write whose blocks the power cut kept from the disk."""
    whole = HEAD + b"".join(made)
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), whole + last[:cut]))
        assert told.file is not None
        assert told.file.read_bytes() == whole
        assert (told.bytes, told.packets, told.lost_bytes) == (len(whole), len(made), cut)
        assert told.sha256 == hashlib.sha256(whole).hexdigest()
        assert [file.name for file in Path(folder).iterdir()] == ["run-0123456789ab-a.pcap"]


@given(made=packets, junk=st.binary(max_size=400))
def test_any_end_leaves_at_least_what_was_whole_before_it_and_a_file_that_can_be_walked(made, junk):
    whole = HEAD + b"".join(made)
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), whole + junk))
        assert told.file is not None
        kept = told.file.read_bytes()
        assert (whole + junk).startswith(kept)
        assert kept.startswith(whole)
        assert count(kept) == told.packets


@given(st.binary(max_size=400))
def test_any_bytes_are_salvaged_or_removed(raw):
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), raw))
        assert told.bytes + told.lost_bytes == len(raw)
        assert list(Path(folder).iterdir()) == ([told.file] if told.file else [])


def count(raw: bytes) -> int:
    """Packets, walked without the code under test."""
    at, found = 24, 0
    while at < len(raw):
        at += 16 + struct.unpack_from("<I", raw, at + 8)[0]
        found += 1
    assert at == len(raw)
    return found


def test_a_capture_without_a_packet_is_gone_and_told(tmp_path):
    for raw in (b"", HEAD[:10], HEAD, b"no capture at all"):
        told = salvage(left(tmp_path, raw))
        assert (told.file, told.packets, told.lost_bytes) == (None, 0, len(raw))
        assert list(tmp_path.iterdir()) == []


def test_a_closed_capture_is_never_written_over_and_others_are_left_alone(tmp_path):
    closed = tmp_path / "x.pcap"
    closed.write_bytes(b"closed")
    (tmp_path / "notes.tmp").write_text("mine")
    left(tmp_path, HEAD + framed(b"a"), "x.pcap.tmp")
    (told,) = salvage_all(tmp_path)
    assert told.file == tmp_path / "x.2.pcap"
    assert closed.read_bytes() == b"closed"
    assert (tmp_path / "notes.tmp").exists()
    assert salvage_all(tmp_path) == []
    assert salvage_all(tmp_path / "nowhere") == []


def test_one_that_cannot_be_opened_stays_and_stops_no_other(tmp_path, caplog):
    (tmp_path / "a.pcap.tmp").mkdir()
    (tmp_path / "b.pcap.tmp").symlink_to("/etc/passwd")
    left(tmp_path, HEAD + framed(b"a"), "c.pcap.tmp")
    told = {one.left.name: one.file for one in salvage_all(tmp_path)}
    assert told["c.pcap.tmp"] == tmp_path / "c.pcap"
    assert "a.pcap.tmp" in caplog.text
    assert Path("/etc/passwd").stat().st_size > 0


WRITES = """
import os, signal, struct, sys
from pathlib import Path
from tandem.capture import Budget
from tandem.capture.capture import CaptureFile
file = CaptureFile(Path(sys.argv[1]), Budget(10**9))
file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1))
one = struct.pack("<4I", 1, 2, 100, 1500) + bytes(100)
for number in range(1000):
    file.write(one if number % 7 else one[:50])
    if number % 7 == 0:
        file.write(one[50:])
file.write(one[:60])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_writer_had_when_it_was_killed_is_all_kept(tmp_path):
    ended = subprocess.run([sys.executable, "-c", WRITES, str(tmp_path / "x.pcap")], check=False)
    assert ended.returncode == -9
    (told,) = salvage_all(tmp_path)
    assert (told.packets, told.bytes, told.lost_bytes) == (1000, 24 + 116_000, 0)
