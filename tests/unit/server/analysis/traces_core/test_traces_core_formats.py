"""Every file format, byte order, link type and compression gives the same tables, and so do captures of one path each."""

import gzip
import random
import struct

import pytest

from support.capture_scenes import Multipath, by_path, plain_download
from support.captures import (
    EPOCH,
    LINKS,
    MS,
    Packet,
    S,
    block,
    enhanced,
    framed,
    interface,
    ipv4,
    ipv6,
    pcap,
    pcapng,
    section,
    tcp,
)
from support.native_tables import analyse, core, one, rows

TABLES = ("connections", "subflows", "totals", "bins", "events", "packets", "problems")


def tables(content: bytes) -> dict:
    made = analyse(content)
    return {name: made[name] for name in TABLES}


@pytest.fixture(scope="module")
def expected():
    return tables(pcap(plain_download().packets))


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("address", [("10.0.0.1", "192.0.2.9"), ("2001:db8::1", "2001:db8::2")], ids=["IPv4", "IPv6"])
def test_links(link, address):
    packets = plain_download(*address).packets
    made = analyse(pcap(framed(packets, link), LINKS[link][0]))
    assert made["file"]["link_types"] == [LINKS[link][0]]
    assert {name: made[name] for name in TABLES} == tables(pcap(packets))


@pytest.mark.parametrize("order", "<>")
def test_byte_orders(order, expected):
    packets = plain_download().packets
    assert tables(pcap(packets, order=order)) == expected
    assert tables(pcapng(packets, order=order)) == expected
    # All times of the scene are whole microseconds.
    assert tables(pcap(packets, order=order, nanoseconds=False)) == expected


@pytest.mark.parametrize(("resolution", "per_second"), [(None, 10**6), (6, 10**6), (3, 1000), (0x80 | 20, 1 << 20)])
def test_resolutions_and_offset_of_pcapng(resolution, per_second):
    packet = plain_download().packets[0]
    later = Packet(packet.time_ns + 500 * MS, packet.content, packet.original)
    for offset_s in (None, 1_700_000_000):
        content = section() + interface(resolution=resolution, offset_s=offset_s)
        for one_packet in (packet, later):
            content += enhanced(one_packet, per_second=per_second, offset_s=offset_s or 0)
        assert [row["time_utc_ns"] for row in analyse(content)["packets"]] == [EPOCH, EPOCH + 500 * MS]


def test_sections_and_interfaces_of_different_kinds(expected):
    packets = plain_download().packets
    ethernet = framed(packets, "ethernet")
    half = len(packets) // 2
    content = section("<") + interface(101) + interface(1)
    for number in range(half):
        content += enhanced(packets[number], number=0) if number % 2 else enhanced(ethernet[number], number=1)
    content += block("<", 5, bytes(12)) + section(">") + interface(1, ">")
    content += b"".join(enhanced(packet, ">") for packet in ethernet[half:])
    assert tables(content) == expected


def test_old_and_simple_packets():
    packet = plain_download().packets[0]
    ticks = packet.time_ns
    old = struct.pack("<HHIIII", 0, 0, ticks >> 32, ticks % (1 << 32), len(packet.content), packet.original)
    simple = struct.pack("<I", packet.original) + packet.content
    made = analyse(section() + interface() + block("<", 2, old + packet.content) + block("<", 3, simple))
    assert [row["time_utc_ns"] for row in made["packets"]] == [EPOCH, EPOCH]
    assert one(made, "problems")["kind"] == "no_time"


def test_gzip_and_zstandard(expected):
    plain = pcap(plain_download().packets)
    assert tables(gzip.compress(plain)) == expected
    assert analyse(gzip.compress(plain))["file"]["compression"] == "gzip"
    middle = len(plain) // 2
    assert tables(gzip.compress(plain[:middle]) + gzip.compress(plain[middle:])) == expected
    made = analyse(zstd_raw(plain))
    assert made["file"]["compression"] == "zstd"
    assert {name: made[name] for name in TABLES} == expected
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 3) + b"abc"
    assert tables(skippable + zstd_raw(plain[:middle]) + zstd_raw(plain[middle:])) == expected


def zstd_raw(content: bytes) -> bytes:
    """RFC 8878 with nothing compressed: one frame of one segment, raw blocks."""
    frame = b"\x28\xb5\x2f\xfd" + b"\xa0" + struct.pack("<I", len(content))
    pieces = [content[at : at + 1000] for at in range(0, len(content), 1000)]
    for number, piece in enumerate(pieces):
        frame += struct.pack("<I", len(piece) << 3 | (number == len(pieces) - 1))[:3] + piece
    return frame


def test_a_file_by_its_path(tmp_path, expected):
    # Known by its first bytes: pcapng files come named .pcap.
    path = tmp_path / "named.pcap"
    path.write_bytes(pcapng(plain_download().packets))
    made = core.analyse(path)
    assert made["file"]["format"] == "pcapng"
    assert made["connections"]["rows"] == len(expected["connections"])
    with pytest.raises(FileNotFoundError):
        core.analyse(tmp_path / "absent")


def test_headers_are_enough_extensions_passed_over_and_padding_is_no_payload():
    packets = [packet.cut(72) for packet in plain_download().packets]
    made = analyse(pcap(packets))
    assert one(made, "totals", subflow=0, direction="to_opener")["goodput_bytes"] == 5500
    assert made["problems"] == []
    inner = tcp(1, 2, 100, 0, 16, b"abc", b"", 1)
    hops = bytes([60, 0]) + bytes(6) + bytes([6, 1]) + bytes(14)
    whole = ipv6("2001:db8::1", "2001:db8::2", hops + inner, protocol=0)
    later = ipv4("10.0.0.1", "10.0.0.2", inner, fragment=100)
    udp = ipv4("10.0.0.1", "10.0.0.2", bytes(8), protocol=17)
    huge = ipv4("10.0.0.1", "10.0.0.2", inner + bytes(60), total=0)
    packets = [Packet(EPOCH + n * S, content, len(content)) for n, content in enumerate([whole, later, udp, huge])]
    made = analyse(pcap(packets))
    assert [row["payload_bytes"] for row in made["packets"]] == [3, 63]
    assert (made["file"]["tcp_packets"], made["file"]["other_packets"]) == (2, 2)
    assert [(row["packet"], row["kind"]) for row in made["problems"]] == [(2, "fragment")]
    packet = Packet(EPOCH, ipv4("10.0.0.1", "10.0.0.2", tcp(1, 2, 3, 4, 16, b"", b"", 5)) + bytes(6), 46)
    made = analyse(pcap(framed([packet], "ethernet"), 1))
    assert made["packets"][0]["payload_bytes"] == 0


def whole(made) -> dict:
    return {name: rows(made, name) for name in TABLES}


def test_captures_of_one_path_each_give_what_one_of_all_paths_would(tmp_path):
    """Whole segments of 200 bytes each of 20 kB, shuffled over two subflows and in time; the captures come in any order and format."""
    chance = random.Random(7)
    scene = Multipath(1)
    ends = [scene.open()[1], scene.join(100 * MS)[1]]
    pieces = list(range(100))
    for place in range(0, 100, 5):
        some = pieces[place : place + 5]
        chance.shuffle(some)
        pieces[place : place + 5] = some
    sent = [0, 0]
    for number, piece in enumerate(pieces):
        on = chance.randrange(2)
        scene.data(ends[on], (200 + number) * MS, sent[on], piece * 200, 200)
        sent[on] += 200
    expected = tables(pcap(scene.wire.packets))
    a, b = by_path(scene.wire.packets)
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcapng.gz"]
    paths[0].write_bytes(pcap(a))
    paths[1].write_bytes(gzip.compress(pcapng(b)))
    for order in (paths, paths[::-1]):
        assert whole(core.analyse_together(order, packets=True)) == expected
    assert max(row["reorder_queue_max_bytes"] or 0 for row in expected["bins"] if row["subflow"] is None) >= 400
    made = core.analyse_together(paths[:1], limits={"together_bytes": 400})
    assert (made["file"]["bounded"], made["file"]["first_utc_ns"]) == (["together_bytes"], EPOCH)
    assert 0 < made["file"]["packets"] < len(a)
