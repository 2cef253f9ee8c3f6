"""Captures on disk: whole packets, one budget for all, a full disk."""

import errno
import hashlib
import os
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.capture.budget import Budget
from tandem.capture.writer import CaptureFile

HEAD = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)


def packet(size: int) -> bytes:
    return struct.pack("<4I", 1, 2, size, 1500) + bytes(size)


def test_all_is_written_and_renamed_when_whole(tmp_path):
    file = CaptureFile(tmp_path / "new" / "x.pcap", Budget(10_000))
    raw = HEAD + packet(100) * 3
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
    assert first.write(HEAD + packet(100) * 4)
    assert not second.write(HEAD + packet(100) * 6)
    assert (first.packets, second.packets) == (4, 4)
    assert first.write(b"")
    assert budget.used_bytes <= 1000
    first.close()
    second.close()


@pytest.mark.parametrize("room", [24, 24 + 100, 24 + 116, 24 + 116 + 1, 24 + 3 * 116 - 1])
def test_a_full_disk_cuts_between_packets(tmp_path, monkeypatch, room):
    """The disk takes ``room`` bytes, partly in a write that is cut short, and then says ENOSPC."""
    real, left = os.write, [room]

    def write(fd, data):
        if left[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = real(fd, bytes(data[: left[0]]))
        left[0] -= done
        return done

    budget = Budget(10_000)
    file = CaptureFile(tmp_path / "x.pcap", budget)
    monkeypatch.setattr(os, "write", write)
    assert not file.write(HEAD + packet(100) * 3)
    monkeypatch.undo()
    digest = file.close()
    raw = (tmp_path / "x.pcap").read_bytes()
    assert raw == HEAD + packet(100) * ((room - 24) // 116)
    assert (file.packets, file.bytes, budget.used_bytes) == ((room - 24) // 116, len(raw), len(raw))
    assert digest == hashlib.sha256(raw).hexdigest()
    assert file.reason == "disk: no space left on device"


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
