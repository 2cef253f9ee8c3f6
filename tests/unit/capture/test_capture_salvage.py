"""What a killed collector or a power cut left of a capture: whole packets up to the cut are kept, whatever the end is."""

import hashlib
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.capture.salvage import salvage, salvage_all

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)


def packet(content: bytes, length: int = 1500) -> bytes:
    return struct.pack("<4I", 1_795_262_400, 2, len(content), length) + content


packets = st.lists(st.binary(max_size=128), min_size=1, max_size=20).map(lambda all_: [packet(one) for one in all_])


def left(folder: Path, raw: bytes, name: str = "run-0123456789ab-a.pcap.tmp") -> Path:
    file = folder / name
    file.write_bytes(raw)
    return file


@given(made=packets, cut=st.integers(1, 143))
def test_what_is_whole_before_a_cut_is_kept_and_no_more(made: list[bytes], cut: int) -> None:
    whole = HEAD + b"".join(made)
    last = packet(b"x" * 128)
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), whole + last[:cut]))
        assert told.file is not None
        assert told.file.read_bytes() == whole
        assert (told.bytes, told.packets, told.lost_bytes) == (len(whole), len(made), cut)
        assert told.sha256 == hashlib.sha256(whole).hexdigest()
        assert [file.name for file in Path(folder).iterdir()] == ["run-0123456789ab-a.pcap"]


@given(made=packets, zeros=st.integers(1, 5000))
def test_zeros_at_the_end_are_no_packets(made: list[bytes], zeros: int) -> None:
    """A file grown by a write whose blocks the power cut kept from the disk."""
    whole = HEAD + b"".join(made)
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), whole + bytes(zeros)))
        assert (told.bytes, told.packets, told.lost_bytes) == (len(whole), len(made), zeros)


@given(made=packets, junk=st.binary(max_size=400))
def test_any_end_leaves_at_least_what_was_whole_before_it_and_a_file_that_can_be_walked(
    made: list[bytes], junk: bytes
) -> None:
    whole = HEAD + b"".join(made)
    with tempfile.TemporaryDirectory() as folder:
        told = salvage(left(Path(folder), whole + junk))
        assert told.file is not None
        kept = told.file.read_bytes()
        assert (whole + junk).startswith(kept)
        assert kept.startswith(whole)
        assert count(kept) == told.packets


@given(st.binary(max_size=400))
def test_any_bytes_are_salvaged_or_removed(raw: bytes) -> None:
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


def test_a_capture_without_a_packet_is_gone_and_told(tmp_path: Path) -> None:
    for raw in (b"", HEAD[:10], HEAD, b"no capture at all"):
        told = salvage(left(tmp_path, raw))
        assert (told.file, told.packets, told.lost_bytes) == (None, 0, len(raw))
        assert list(tmp_path.iterdir()) == []


def test_a_closed_capture_is_never_written_over_and_others_are_left_alone(tmp_path: Path) -> None:
    closed = tmp_path / "x.pcap"
    closed.write_bytes(b"closed")
    (tmp_path / "notes.tmp").write_text("mine")
    left(tmp_path, HEAD + packet(b"a"), "x.pcap.tmp")
    (told,) = salvage_all(tmp_path)
    assert told.file == tmp_path / "x.2.pcap"
    assert closed.read_bytes() == b"closed"
    assert (tmp_path / "notes.tmp").exists()
    assert salvage_all(tmp_path) == []
    assert salvage_all(tmp_path / "nowhere") == []


def test_one_that_cannot_be_opened_stays_and_stops_no_other(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.pcap.tmp").mkdir()
    (tmp_path / "b.pcap.tmp").symlink_to("/etc/passwd")
    left(tmp_path, HEAD + packet(b"a"), "c.pcap.tmp")
    told = {one.left.name: one.file for one in salvage_all(tmp_path)}
    assert told["c.pcap.tmp"] == tmp_path / "c.pcap"
    assert "a.pcap.tmp" in caplog.text
    assert Path("/etc/passwd").stat().st_size > 0


WRITES = """
import os, signal, struct, sys
from pathlib import Path
from tandem.capture import Budget
from tandem.capture.writer import CaptureFile
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


def test_what_a_writer_had_when_it_was_killed_is_all_kept(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", WRITES, str(tmp_path / "x.pcap")], check=False)
    assert ended.returncode == -9
    (told,) = salvage_all(tmp_path)
    assert (told.packets, told.bytes, told.lost_bytes) == (1000, 24 + 116_000, 0)
