"""Captures of one path each, read as one: what one capture of all paths would have given."""

import gzip
import random

from support.capture_scenes import Multipath, by_path, plain_download, two_subflows
from support.captures import EPOCH, Packet, framed, pcap, pcapng
from support.native_tables import core, rows

TABLES = ("connections", "subflows", "totals", "bins", "events", "packets", "problems")


def tables(made) -> dict:
    return {name: rows(made, name) for name in TABLES}


def whole(packets: list[Packet], path) -> dict:
    path.write_bytes(pcap(packets))
    return tables(core.analyse(path, packets=True))


def test_any_division_of_a_long_transfer(tmp_path):
    """Whole segments of 200 bytes each of 20 kB, shuffled over two subflows and in time; the captures come in any order and format."""
    chance = random.Random(7)
    scene = Multipath(1)
    ends = [scene.open()[1], scene.join(100_000_000)[1]]
    pieces = list(range(100))
    for place in range(0, 100, 5):
        some = pieces[place : place + 5]
        chance.shuffle(some)
        pieces[place : place + 5] = some
    sent = [0, 0]
    for number, piece in enumerate(pieces):
        on = chance.randrange(2)
        scene.data(ends[on], 200_000_000 + number * 1_000_000, sent[on], piece * 200, 200)
        sent[on] += 200
    expected = whole(scene.wire.packets, tmp_path / "both.pcap")
    a, b = by_path(scene.wire.packets)
    paths = [tmp_path / "a.pcap", tmp_path / "b.pcapng.gz"]
    paths[0].write_bytes(pcap(a))
    paths[1].write_bytes(gzip.compress(pcapng(b)))
    for order in (paths, paths[::-1]):
        assert tables(core.analyse_together(order, packets=True)) == expected
    assert max(row["reorder_queue_max_bytes"] or 0 for row in expected["bins"] if row["subflow"] is None) >= 400


def test_long_frames_count_by_their_headers(tmp_path):
    """Of a frame the headers are kept; goodput is by what they say."""
    packets = [
        Packet(p.time_ns, p.content + bytes(900), p.original + 900)
        for p in framed(plain_download().packets, "ethernet")
    ]
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(packets, 1))
    assert tables(core.analyse_together([path], packets=True)) == tables(core.analyse(path, packets=True))


def test_no_room_is_named(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(pcap(plain_download().packets))
    made = core.analyse_together([path], limits={"together_bytes": 400})
    assert made["file"]["bounded"] == ["together_bytes"]
    assert 0 < made["file"]["packets"] < 17
    assert made["file"]["first_utc_ns"] == EPOCH


def test_any_bytes_are_taken(tmp_path):
    chance = random.Random(11)
    a, b = by_path(two_subflows().wire.packets)
    paths = [tmp_path / "a", tmp_path / "b"]
    for number in range(400):
        for path, content in zip(paths, (pcap(a), pcapng(b)), strict=True):
            changed = bytearray(content)
            for _ in range(chance.randint(1, 12)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            cut = changed[: chance.randrange(len(changed))] if number % 3 == 0 else changed
            path.write_bytes(gzip.compress(bytes(cut), 1) if number % 5 == 0 else bytes(cut))
        made = core.analyse_together(paths, packets=True)
        told = made["file"]
        assert len(rows(made, "packets")) <= told["tcp_packets"] <= told["packets"]
