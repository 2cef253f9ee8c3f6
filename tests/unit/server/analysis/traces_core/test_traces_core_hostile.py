"""Cut, corrupt and hostile captures: what can be read is analysed, the rest is told by packet number, and nothing grows without bound."""

import bz2
import gzip
import lzma
import os
import random
import struct
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.capture_scenes import C0, S0, Multipath, by_path, plain_download, two_subflows
from support.captures import (
    ACK,
    CLIENT2,
    EPOCH,
    LINKS,
    MS,
    SYN,
    Packet,
    S,
    Wire,
    block,
    dss,
    enhanced,
    framed,
    interface,
    ipaddress,
    ipv4,
    mss,
    multipath,
    pcap,
    pcapng,
    section,
    summed,
    tcp,
)
from support.native_tables import analyse, core, of, one, rows

PACKETS = plain_download().packets
HEADER = 24
CLIENT2_RAW = ipaddress.IPv4Address(CLIENT2).packed


def problems(made):
    return [(row["packet"], row["kind"]) for row in made["problems"]]


def test_what_is_no_capture_is_told_and_other_compressions_are_named(tmp_path):
    for content in (b"", b"no capture at all, but long enough", b"\x1f\x8b", b"\x28\xb5\x2f\xfd"):
        made = analyse(content)
        assert "not_a_capture" in made["file"]["problems"]
        assert made["connections"] == made["bins"] == []
        (tmp_path / "file").write_bytes(content)
        assert core.analyse(tmp_path / "file")["file"]["problems"] == made["file"]["problems"]
    for packed, kind in ((lzma.compress, "compressed_by_xz"), (bz2.compress, "compressed_by_bzip2")):
        made = analyse(packed(pcap(PACKETS)))
        assert (made["file"]["format"], made["file"]["problems"]) == (None, {kind: 1})


def test_a_file_cut_inside_a_record_and_garbage_in_the_midst():
    made = analyse(pcap(PACKETS)[:-10])
    assert problems(made) == [(len(PACKETS), "cut_headers"), (len(PACKETS), "cut_file")]
    made = analyse(pcap(PACKETS) + b"tail")
    assert problems(made) == [(len(PACKETS) + 1, "cut_file")]
    made = analyse(pcapng(PACKETS)[:-10])
    assert problems(made)[-1] == (len(PACKETS), "cut_file")
    packets = PACKETS[:6]
    content = pcap(packets)
    whole = HEADER + sum(16 + len(packet.content) for packet in packets[:3])
    made = analyse(content[:whole] + b"\xff" * 37 + content[whole:])
    assert problems(made) == [(4, "bad_record")]
    assert one(made, "problems")["offset_bytes"] == whole
    assert len(made["packets"]) == 6


def test_garbage_between_blocks_and_blocks_that_contradict_themselves_are_passed_over():
    made = analyse(section() + interface() + enhanced(PACKETS[0]) + b"\xff" * 40 + enhanced(PACKETS[1]))
    assert (problems(made), len(made["packets"])) == ([(2, "bad_record")], 2)
    lying = struct.pack("<IIIII", 0, 0, 0, 500, 500) + bytes(60)
    stranger = struct.pack("<IIIII", 9, 0, 0, 4, 4) + bytes(4)
    bad = b"".join(block("<", 6, body) for body in (lying, stranger, b""))
    made = analyse(section() + interface() + bad + enhanced(PACKETS[0]))
    assert [kind for _, kind in problems(made)].count("bad_record") == 3
    assert len(made["packets"]) == 1


def test_a_broken_compression_keeps_what_came_and_a_bomb_stops_at_its_limit():
    made = analyse(gzip.compress(pcap(PACKETS))[:-20])
    assert "bad_compression" in made["file"]["problems"]
    assert 0 < len(made["packets"]) <= len(PACKETS)
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


def test_options_with_lengths_that_cannot_be():
    unknown = b"\xfe\x05\xf9\x89x"
    lengths = (b"\x1e\x00", b"\x1e\x01", b"\x1e\x02", b"\x1e\x03\x20", b"\x1e\x05\x10\x00\x00", b"\x1e\xff\x20")
    for options in (*lengths, multipath(0, 9), multipath(15, 15)):
        wire = Wire()
        c = wire.end("10.0.0.1", 1, "10.0.0.2", 2)
        c(0, C0, 0, SYN, options=mss(1400) + options)
        c(1, C0 + 1, 5, ACK, 100, unknown + options)
        assert [row["payload_bytes"] for row in analyse(pcap(wire.packets))["packets"]] == [0, 100], options


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


def downloads_twice() -> list[Packet]:
    """Two subflows of 60 segments, whose data come by turns."""
    scene = Multipath()
    ends = [scene.open()[1], scene.join(100 * MS)[1]]
    for number in range(120):
        scene.data(ends[number % 2], 200 * MS + number * 30 * MS, number // 2 * 500, number * 500, 500)
        scene.acknowledge(ends[number % 2].other(), 201 * MS + number * 30 * MS, (number // 2 + 1) * 500, number * 500)
    return scene.wire.packets


def without_numbers(made):
    """What does not depend on the order in the file."""
    rows = {name: made[name] for name in ("connections", "subflows", "totals", "bins", "events", "packets")}
    return {name: sorted(({**row, "packet": 0} for row in its), key=str) for name, its in rows.items()}


def test_a_file_that_is_not_in_the_order_of_time_is_read_in_it():
    packets = downloads_twice()
    expected = analyse(pcap(packets))
    by_end = sorted(packets, key=lambda packet: CLIENT2_RAW not in (packet.content[12:16], packet.content[16:20]))
    made = analyse(pcap(by_end))
    assert without_numbers(made)["totals"] == without_numbers(expected)["totals"]
    assert [row["packet"] for row in made["packets"]] != [row["packet"] for row in expected["packets"]]
    assert [kind for _, kind in problems(made)] == ["time_went_back"]
    near = sorted(packets, key=lambda packet: packet.time_ns - 35 * MS * (packet.content[12:16] == CLIENT2_RAW))
    made = analyse(pcapng(near))
    assert near != packets
    assert without_numbers(made)["bins"] == without_numbers(expected)["bins"]
    assert (problems(made), [row["disordered"] for row in made["connections"]]) == ([], [0])


def test_what_comes_too_late_to_be_sorted_is_told_and_marked_and_so_is_a_clock_that_goes_back():
    packets = downloads_twice()
    made = analyse(pcap(packets[1:] + packets[:1]), limits={"together_bytes": 4000})
    assert [kind for _, kind in problems(made)] == ["time_went_back", "out_of_order"]
    assert [row["disordered"] for row in made["connections"]] == [1]
    assert len(made["packets"]) == len(packets)
    times = (5 * S, 5 * S + 1, 0, 5 * S + 2)
    packets = [Packet(EPOCH + at, packet.content, packet.original) for at, packet in zip(times, PACKETS, strict=False)]
    made = analyse(pcap(packets))
    assert problems(made) == [(3, "time_went_back")]
    bins = {(row["subflow"], row["direction"], row["bin_start_utc_ns"]) for row in made["bins"]}
    assert len(bins) == len(made["bins"])
    assert sum(row["packets"] for row in of(made, "bins", subflow=None)) == 4


@pytest.mark.parametrize("link", ["raw", "vlan"])
def test_what_was_captured_twice_counts_once(link):
    """On a bridge and on its port: the second copy of each packet passes 0.4 ms later."""
    packets = [packet.put(4, 0, n) for n, packet in enumerate(plain_download().packets)]
    expected = analyse(pcap(packets))
    again = [Packet(packet.time_ns + 400_000, packet.content, packet.original).put(8, 63) for packet in packets]
    both = framed(sorted(packets + again, key=lambda packet: packet.time_ns), link)
    made = analyse(pcap(both, LINKS[link][0]))
    assert made["file"]["problems"] == {"captured_twice": len(packets)}
    assert without_numbers(made) == without_numbers(expected)


def test_what_the_network_doubles_now_and_then_came_twice():
    packets = [packet.put(4, 0, n) for n, packet in enumerate(plain_download().packets)]
    made = analyse(pcap([*packets[:6], packets[5], *packets[6:]]))
    assert (made["file"]["problems"], len(made["packets"])) == ({}, len(packets) + 1)
    assert one(made, "totals", subflow=0, direction="to_opener")["duplicate_bytes"] == 2000


def test_a_length_beyond_the_wires_is_not_believed():
    packet = Packet(EPOCH, ipv4("10.0.0.1", "10.0.0.2", tcp(1, 2, 3, 4, ACK, bytes(357), b"", 5), total=35_481), 397)
    for link in ("raw", "ethernet"):
        made = analyse(pcap(framed([packet], link), LINKS[link][0]))
        assert made["packets"][0]["payload_bytes"] == 357
        assert made["file"]["problems"] == {"bad_headers": 1}


def sums(packets, damaged, begun=False):
    made = [Packet(packet.time_ns, summed(packet.content, begun=begun), packet.original) for packet in packets]
    return analyse(pcap([packet.put(36, 1, 2) if n in damaged else packet for n, packet in enumerate(made)]))


def test_a_packet_with_a_wrong_checksum_is_left_out_and_those_of_a_capture_that_are_never_right_count():
    expected = analyse(pcap(PACKETS[:5] + PACKETS[6:]))
    made = sums(PACKETS, {5})
    assert problems(made) == [(6, "bad_checksum")]
    assert without_numbers(made) == without_numbers(expected)
    expected = without_numbers(analyse(pcap(PACKETS)))
    made = sums(PACKETS, range(len(PACKETS)))  # addresses that were made anonymous
    assert made["file"]["problems"] == {"bad_checksum": len(PACKETS)}
    assert without_numbers(made)["totals"] == expected["totals"]
    made = sums(
        PACKETS, set(), begun=True
    )  # the sender's network card fills them in behind the capture, which is no fault
    assert (made["file"]["problems"], without_numbers(made)) == ({}, expected)


def test_limits_are_kept_and_named():
    wire = Wire()
    for number in range(20):
        c = wire.end("10.0.0.1", 1000 + number, "10.0.0.2", 2)
        c(number * S, C0, 0, SYN)
        for gap in range(1, 6):
            c(number * S + gap, C0 + gap * 10, 0, ACK, 3, b"\x01\x01\x08\x0a" + struct.pack(">II", gap, 0))
    limits = {
        "flows": 7, "intervals": 2, "segments": 3, "timestamps": 2, "bins": 5, "events": 4, "problems": 3,
        "packets": 6,
    }  # fmt: skip
    made = analyse(pcap(wire.packets), limits=limits)
    assert set(made["file"]["bounded"]) == set(limits)
    assert (len(made["subflows"]), len(made["events"]), len(made["problems"]), len(made["packets"])) == (7, 4, 3, 6)
    assert made["file"]["problems"]["no_room"] > 3
    totals = of(made, "totals", subflow=None, direction="from_opener")
    assert [row["packets"] for row in totals] == [6] * 7


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
    packets = scene.wire.packets
    return [pcap(PACKETS), pcapng(PACKETS), pcap(packets, order=">"), pcapng(packets), gzip.compress(pcap(PACKETS))]


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


def test_any_bytes_of_captures_that_are_read_together_are_taken(tmp_path):
    chance = random.Random(11)
    a, b = by_path(two_subflows().wire.packets)
    paths = [tmp_path / "a", tmp_path / "b"]
    for number in range(200):
        for path, content in zip(paths, (pcap(a), pcapng(b)), strict=True):
            changed = bytearray(content)
            for _ in range(chance.randint(1, 12)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            cut = changed[: chance.randrange(len(changed))] if number % 3 == 0 else changed
            path.write_bytes(gzip.compress(bytes(cut), 1) if number % 5 == 0 else bytes(cut))
        made = core.analyse_together(paths, packets=True)
        told = made["file"]
        assert len(rows(made, "packets")) <= told["tcp_packets"] <= told["packets"]
