"""Cut, corrupt and hostile captures: what can be read is analysed, the rest is told by packet number, and nothing grows without bound."""

from __future__ import annotations

import gzip
import os
import struct
import threading

import pytest
from captures import (
    ACK,
    EPOCH,
    MS,
    SYN,
    Packet,
    S,
    Wire,
    block,
    dss,
    enhanced,
    interface,
    mss,
    multipath,
    pcap,
    pcapng,
    section,
)
from hypothesis import given
from hypothesis import strategies as st
from reading import analyse, core, of, one
from scenes import C0, S0, Multipath, plain_download, unknown_option

PACKETS = plain_download().packets
HEADER = 24


def problems(made):
    return [(row["packet"], row["kind"]) for row in made["problems"]]


@pytest.mark.parametrize(
    "content", [b"", b"x", b"no capture at all, but long enough", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"]
)
def test_what_is_no_capture_is_told(content, tmp_path):
    made = analyse(content)
    assert "not_a_capture" in made["file"]["problems"]
    assert made["connections"] == made["bins"] == []
    path = tmp_path / "file"
    path.write_bytes(content)
    assert core.analyse(path)["file"]["problems"] == made["file"]["problems"]


def test_a_file_cut_inside_a_record():
    made = analyse(pcap(PACKETS)[:-10])
    assert problems(made) == [(len(PACKETS), "cut_headers"), (len(PACKETS), "cut_file")]
    made = analyse(pcap(PACKETS) + b"tail")
    assert problems(made) == [(len(PACKETS) + 1, "cut_file")]
    made = analyse(pcapng(PACKETS)[:-10])
    assert problems(made)[-1] == (len(PACKETS), "cut_file")


def test_garbage_in_the_midst_is_passed_over():
    packets = PACKETS[:6]
    content = pcap(packets)
    whole = HEADER + sum(16 + len(packet.content) for packet in packets[:3])
    made = analyse(content[:whole] + b"\xff" * 37 + content[whole:])
    assert problems(made) == [(4, "bad_record")]
    assert one(made, "problems")["offset_bytes"] == whole
    assert len(made["packets"]) == 6


def test_garbage_between_blocks_is_passed_over():
    content = section() + interface() + enhanced(PACKETS[0]) + b"\xff" * 40 + enhanced(PACKETS[1])
    made = analyse(content)
    assert problems(made) == [(2, "bad_record")]
    assert len(made["packets"]) == 2


def test_blocks_that_contradict_themselves():
    lying = struct.pack("<IIIII", 0, 0, 0, 500, 500) + bytes(60)
    stranger = struct.pack("<IIIII", 9, 0, 0, 4, 4) + bytes(4)
    made = analyse(
        section()
        + interface()
        + block("<", 6, lying)
        + block("<", 6, stranger)
        + block("<", 6, b"")
        + enhanced(PACKETS[0])
    )
    assert [kind for _, kind in problems(made) if kind == "bad_record"] == ["bad_record"] * 3
    assert len(made["packets"]) == 1


def test_a_broken_compression_keeps_what_came():
    made = analyse(gzip.compress(pcap(PACKETS))[:-20])
    assert "bad_compression" in made["file"]["problems"]
    assert 0 < len(made["packets"]) <= len(PACKETS)


def test_a_bomb_stops_at_its_limit():
    bomb = gzip.compress(pcap([]) + bytes(50_000_000))
    made = analyse(bomb, limits={"decompressed_bytes": 1_000_000})
    assert "decompressed_bytes" in made["file"]["bounded"]
    assert made["file"]["bytes"] <= 1_000_000


def test_cut_options_are_told_and_the_rest_counts():
    wire = Wire()
    c = wire.end("10.0.0.1", 1, "10.0.0.2", 2)
    c(0, C0, 5, ACK, 100, dss(dsn=9, ssn=1, length=100))
    made = analyse(pcap([wire.packets[0].cut(50), wire.packets[0].cut(30), wire.packets[0].cut(5)]))
    assert [kind for _, kind in problems(made)] == ["cut_headers"] * 3
    assert [row["payload_bytes"] for row in made["packets"]] == [100]


@pytest.mark.parametrize(
    "options",
    [
        b"\x1e\x00",
        b"\x1e\x01",
        b"\x1e\x02",
        b"\x1e\x03\x20",
        b"\x1e\x05\x10\x00\x00",
        b"\x1e\xff\x20",
        multipath(0, 9),
        multipath(15, 15),
    ],
)
def test_options_with_lengths_that_cannot_be(options):
    wire = Wire()
    c = wire.end("10.0.0.1", 1, "10.0.0.2", 2)
    c(0, C0, 0, SYN, options=mss(1400) + options)
    c(1, C0 + 1, 5, ACK, 100, unknown_option() + options)
    made = analyse(pcap(wire.packets))
    assert [row["payload_bytes"] for row in made["packets"]] == [0, 100]


def test_a_clock_that_goes_back():
    times = (5 * S, 5 * S + 1, 0, 5 * S + 2)
    packets = [Packet(EPOCH + at, packet.content, packet.original) for at, packet in zip(times, PACKETS, strict=False)]
    made = analyse(pcap(packets))
    assert problems(made) == [(3, "time_went_back")]
    assert len({(row["subflow"], row["direction"], row["bin_start_utc_ns"]) for row in made["bins"]}) == len(
        made["bins"]
    )
    assert sum(row["packets"] for row in of(made, "bins", subflow=None)) == 4


def test_limits_are_kept_and_named():
    wire = Wire()
    for number in range(20):
        c = wire.end("10.0.0.1", 1000 + number, "10.0.0.2", 2)
        c(number * S, C0, 0, SYN)
        for gap in range(1, 6):
            c(number * S + gap, C0 + gap * 10, 0, ACK, 3, b"\x01\x01\x08\x0a" + struct.pack(">II", gap, 0))
    limits = {
        "flows": 7,
        "intervals": 2,
        "segments": 3,
        "timestamps": 2,
        "bins": 5,
        "events": 4,
        "problems": 3,
        "packets": 6,
    }
    made = analyse(pcap(wire.packets), limits=limits)
    assert set(made["file"]["bounded"]) == set(limits)
    assert (len(made["subflows"]), len(made["events"]), len(made["problems"]), len(made["packets"])) == (7, 4, 3, 6)
    assert made["file"]["problems"]["no_room"] > 3
    totals = of(made, "totals", subflow=None, direction="from_opener")
    assert [row["packets"] for row in totals] == [6] * 7


def test_an_unknown_limit_and_an_impossible_width():
    with pytest.raises(ValueError, match="there is no limit of the name flow"):
        analyse(b"", limits={"flow": 1})
    with pytest.raises(ValueError, match="bin_ns"):
        analyse(b"", bin_ns=0)


def test_acknowledgements_of_what_was_never_seen():
    wire = Wire()
    c = wire.end("10.0.0.1", 1, "10.0.0.2", 2)
    s = c.other()
    s(0, S0, 5, ACK, 100)
    c(MS, 5, S0 + 100)
    c(2 * MS, 5, S0 + 600)
    s(3 * MS, S0 + 600, 5, ACK, 100)
    made = analyse(pcap(wire.packets))
    down = [row for row in made["totals"] if row["payload_bytes"] and row["subflow"] is not None]
    assert [(row["unseen_bytes"], row["acked_bytes"], row["new_bytes"]) for row in down] == [(500, 500, 200)]


def test_the_interpreter_runs_while_it_works(tmp_path):
    """It waits for who opens a pipe's other end, which is this interpreter: were that held up, both would stand for ever."""
    pipe, told = tmp_path / "pipe.pcap", []

    def work():
        try:
            core.analyse(pipe)
        except OSError as error:
            told.append(error)

    os.mkfifo(pipe)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    pipe.open("wb").close()
    thread.join()
    assert told, "a pipe is no file that can be read at any place"


def seeds() -> list[bytes]:
    scene = Multipath(1)
    _, s1 = scene.open()
    _, s2 = scene.join(MS)
    for number in range(4):
        scene.data((s1, s2)[number % 2], number * MS, number // 2 * 500, number * 500, 500)
    return [
        pcap(PACKETS),
        pcapng(PACKETS),
        pcap(scene.wire.packets, order=">"),
        pcapng(scene.wire.packets),
        gzip.compress(pcap(PACKETS)),
    ]


SEEDS = seeds()
CHANGE = st.tuples(st.integers(0, 1 << 20), st.binary(max_size=8), st.integers(0, 8))


@given(seed=st.sampled_from(SEEDS), changes=st.lists(CHANGE, max_size=12), end=st.integers(0, 1 << 12))
def test_whatever_becomes_of_a_capture_its_tables_hold_together(seed, changes, end):
    content = bytearray(seed)
    for at, into, left_out in changes:
        place = at % max(1, len(content))
        content[place : place + left_out] = into
    made = analyse(bytes(content[: max(0, len(content) - end)] if end < 600 else content))
    for row in made["totals"]:
        assert row["hole_fill_bytes"] <= row["new_bytes"] <= row["payload_bytes"]
        assert row["new_bytes"] + row["duplicate_bytes"] == row["payload_bytes"]
        assert row["goodput_bytes"] <= row["payload_bytes"]
        bins = of(made, "bins", connection=row["connection"], subflow=row["subflow"], direction=row["direction"])
        for column in ("packets", "payload_bytes", "goodput_bytes", "acked_bytes", "rtt_samples"):
            assert sum(one_bin[column] for one_bin in bins) == row[column]
    assert sum(row["packets"] for row in made["totals"] if row["subflow"] is None) == made["file"]["tcp_packets"]
    assert {row["connection"] for row in made["subflows"]} == {row["connection"] for row in made["connections"]}
