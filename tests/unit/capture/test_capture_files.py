"""Captures on disk: the walk over a pcap stream however it is cut, whole packets, one budget for all."""

import hashlib
import struct
import threading
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.capture.budget import Budget
from tandem.capture.pcap import HEADER_BYTES, LONGEST_PACKET, PcapError, Walker
from tandem.capture.writer import CaptureFile

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


@pytest.mark.parametrize(
    "odd",
    [
        struct.pack("<4I", 0, 0, 0, 0),  # zeros, as a power cut leaves them
        struct.pack("<4I", 1, 2, 100, 99) + bytes(100),
        struct.pack("<4I", 1, 2, 129, 1500) + bytes(129),  # above the header's 128
        struct.pack("<4I", 1, 10**6, 2, 2) + bytes(2),
    ],
)
def test_what_no_capture_writes_is_damage_in_a_torn_file_only(odd):
    torn, live = Walker(torn=True), Walker()
    raw = stream([b"xy"]) + odd
    assert torn.feed(raw)[0] == stream([b"xy"])
    assert torn.damage == "no packet at byte 42"
    assert live.feed(raw)[0] == raw
    assert live.damage is None


def test_text_is_no_pcap():
    with pytest.raises(PcapError, match="no pcap file"):
        Walker().feed(b"tcpd")


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
