"""Multipath TCP, both versions: joins by token, the data level, and what the ends say to each other."""

import random
from collections import Counter
from typing import Any

import pytest

from support import capture_scenes
from support.capture_scenes import C0, CLIENT_KEY, S0, SERVER_KEY, Multipath, two_subflows
from support.captures import (
    ACK,
    EPOCH,
    FIN,
    MS,
    RST,
    SERVER,
    SYN,
    End,
    Wire,
    capable,
    dss,
    first_dsn,
    multipath,
    pcap,
    token,
)
from support.native_tables import analyse, of, one

VERSIONS = pytest.mark.parametrize("version", [0, 1])


@VERSIONS
def test_subflows_are_joined_by_token(version):
    made = analyse(pcap(two_subflows(version).wire.packets))
    connection = one(made, "connections")
    assert (connection["multipath"], connection["version"], connection["subflows"]) == (1, version, 2)
    assert (connection["uncertain"], connection["fallback"], connection["vantage"]) == (0, 0, "opener")
    assert connection["responder_token"] == token(SERVER_KEY, version)
    assert connection["opener_token"] == token(CLIENT_KEY, version)
    first, second = made["subflows"]
    assert (first["joined_by"], second["joined_by"]) == ("first", "token")
    assert (second["connection"], second["number"], second["backup"]) == (0, 1, 1)
    assert (second["opener_address_id"], second["responder_address_id"]) == (2, 3)
    assert second["join_delay_ns"] == 140 * MS + 1000
    assert second["handshake_rtt_ns"] == 40 * MS + 1000
    assert first["join_delay_ns"] is None


@VERSIONS
def test_the_data_level(version):
    made = analyse(pcap(two_subflows(version).wire.packets))
    data = [row for row in made["packets"] if row["payload_bytes"]]
    base = first_dsn(SERVER_KEY, version)
    assert [row["dsn"] - base for row in data] == [0, 3000, 2000, 1000, 500]
    assert [row["goodput_bytes"] for row in data] == [1000, 1000, 1000, 1000, 0]
    assert [row["reorder_queue_bytes"] for row in data] == [0, 1000, 2000, 0, 0]
    assert [row["reinjected_bytes"] for row in data] == [0, 0, 0, 0, 1000]
    both = one(made, "totals", subflow=None, direction="to_opener")
    assert (both["goodput_bytes"], both["payload_bytes"], both["reinjected_bytes"]) == (4000, 5000, 1000)
    assert (both["reorder_queue_max_bytes"], both["acked_bytes"], both["unmapped_bytes"]) == (2000, 4000, 0)
    shares = [one(made, "totals", subflow=n, direction="to_opener")["share"] for n in (0, 1)]
    assert shares == [0.5, 0.5]


def test_the_first_data_of_v1_come_with_mp_capable_and_numbers_of_32_bits_are_expanded():
    scene = Multipath(1)
    c, _ = scene.open()
    c(60 * MS, C0 + 1, S0 + 1, ACK, 300, capable(1, CLIENT_KEY, SERVER_KEY, data_length=300))
    made = analyse(pcap(scene.wire.packets))
    row = made["packets"][-1]
    assert (row["dsn"], row["goodput_bytes"]) == (scene.to_server, 300)
    scene = Multipath(0)
    _, s = scene.open()
    s(100 * MS, S0 + 1, C0 + 1, ACK, 700, dss(dsn=scene.to_client, ssn=1, length=700, wide=False))
    s.other()(101 * MS, C0 + 1, S0 + 701, ACK, 0, dss(ack=scene.to_client + 700, wide=False))
    made = analyse(pcap(scene.wire.packets))
    data, ack = made["packets"][-2:]
    assert (data["dsn"], ack["data_ack"]) == (scene.to_client, scene.to_client + 700)
    assert one(made, "totals", subflow=None, direction="to_opener")["acked_bytes"] == 700


def test_what_the_ends_tell_each_other():
    scene = Multipath(1)
    c, s = scene.open()
    address = bytes([203, 0, 113, 7])
    s(50 * MS, S0 + 1, C0 + 1, options=multipath(3, 0, b"\x05" + address + b"\x1f\x90" + bytes(8)))
    c(51 * MS, C0 + 1, S0 + 1, options=multipath(3, 1, b"\x05" + address + b"\x1f\x90"))
    c(52 * MS, C0 + 1, S0 + 1, options=multipath(5, 1))
    c(53 * MS, C0 + 1, S0 + 1, options=multipath(5, 0))
    c(54 * MS, C0 + 1, S0 + 1, options=multipath(4, 0, b"\x05\x06"))
    s(55 * MS, S0 + 1, C0 + 1, options=multipath(6, 0, bytes(1) + scene.to_server.to_bytes(8, "big")))
    c(56 * MS, C0 + 1, S0 + 1, RST | ACK, options=multipath(8, 0, b"\x03"))
    made = analyse(pcap(scene.wire.packets))
    said = [(row["kind"], row["value"], row["direction"]) for row in made["events"]][3:]
    mine, other = "from_opener", "to_opener"
    dsn = scene.to_server - (1 << 64) * (scene.to_server >> 63)
    assert said == [
        ("add_addr", 5, other), ("add_addr_echo", 5, mine), ("mp_prio", 1, mine), ("mp_prio", 0, mine), ("remove_addr", 5, mine),
        ("remove_addr", 6, mine), ("mp_fail", dsn, other), ("reset_reason", 3, mine), ("rst", None, mine),
    ]  # fmt: skip
    told = one(made, "events", kind="add_addr")
    where = (told["address"], told["port"], told["time_utc_ns"], told["packet"])
    assert where == ("203.0.113.7", 8080, EPOCH + 50 * MS, 4)
    subflow = one(made, "subflows")
    assert (subflow["backup"], subflow["closed_by"], subflow["reset_reason"]) == (0, "rst", 3)


def test_the_data_level_closes_by_its_fin_or_a_fastclose():
    scene = Multipath(1)
    c, s = scene.open()
    scene.data(s, 100 * MS, 0, 0, 1000)
    s(101 * MS, S0 + 1001, C0 + 1, ACK, 0, dss(dsn=scene.to_client + 1000, ssn=0, length=1, fin=True))
    back = dss(ack=scene.to_client + 1001, dsn=scene.to_server, ssn=0, length=1, fin=True)
    c(102 * MS, C0 + 1, S0 + 1001, ACK, 0, back)
    s(103 * MS, S0 + 1001, C0 + 1, ACK, 0, dss(ack=scene.to_server + 1))
    made = analyse(pcap(scene.wire.packets))
    assert one(made, "connections")["closed_by"] == "data_fin"
    assert [row["direction"] for row in of(made, "events", kind="data_fin")] == ["to_opener", "from_opener"]
    both = one(made, "totals", subflow=None, direction="to_opener")
    assert (both["goodput_bytes"], both["acked_bytes"], both["unseen_bytes"]) == (1000, 1000, 0)
    scene = Multipath(1)
    c, _ = scene.open()
    c(60 * MS, C0 + 1, S0 + 1, RST | ACK, options=multipath(7, 0, bytes(1) + SERVER_KEY.to_bytes(8, "big")))
    made = analyse(pcap(scene.wire.packets))
    assert (one(made, "connections")["closed_by"], one(made, "subflows")["closed_by"]) == ("fastclose", "fastclose")


def test_fallback_in_the_handshake():
    wire = Wire()
    c = wire.end("10.0.0.1", 1, SERVER, 2)
    c(0, C0, 0, SYN, options=capable(1))
    c.other()(MS, S0, C0 + 1, SYN | ACK)
    c(2 * MS, C0 + 1, S0 + 1)
    c.other()(3 * MS, S0 + 1, C0 + 1, ACK, 500)
    made = analyse(pcap(wire.packets))
    assert one(made, "connections")["fallback"] == 1
    assert one(made, "events", kind="fallback_no_option")["packet"] == 2
    assert one(made, "totals", subflow=None, direction="to_opener")["goodput_bytes"] == 500


def test_fallback_to_an_infinite_mapping_and_without_any():
    scene = Multipath(1)
    _, s = scene.open()
    scene.data(s, 100 * MS, 0, 0, 1000)
    s(101 * MS, S0 + 1001, C0 + 1, ACK, 200, dss(dsn=scene.to_client + 1000, ssn=1001, length=0))
    s(102 * MS, S0 + 1201, C0 + 1, ACK, 200)
    made = analyse(pcap(scene.wire.packets))
    assert one(made, "connections")["fallback"] == 1
    assert one(made, "events", kind="fallback_infinite_mapping")["packet"] == 5
    assert one(made, "totals", subflow=None, direction="to_opener")["goodput_bytes"] == 1400
    del scene.wire.packets[3:]
    s(100 * MS, S0 + 1, C0 + 1, ACK, 200)
    assert one(analyse(pcap(scene.wire.packets)), "events", kind="fallback_no_mapping")["packet"] == 4


@pytest.mark.parametrize("wide", [True, False])
def test_without_handshakes_they_may_be_one(wide):
    scene = Multipath(1)
    _, s1 = scene.open()
    _, s2 = scene.join(50 * MS)
    scene.wire.packets.clear()
    for number in range(6):
        s, relative = ((s1, s2)[number % 2], number // 2 * 1000)
        mapped = dss(dsn=scene.to_client + number * 1000, ssn=relative + 1, length=1000, wide=wide)
        s((100 + number) * MS, S0 + 1 + relative, C0 + 1, ACK, 1000, mapped)
    made = analyse(pcap(scene.wire.packets))
    connection = one(made, "connections")
    assert (connection["uncertain"], connection["subflows"], connection["version"]) == (1, 2, None)
    assert (connection["opener_known"], connection["handshake_seen"]) == (0, 0)
    assert [row["joined_by"] for row in made["subflows"]] == ["none", "likeness"]
    assert one(made, "events", kind="likeness")["value"] == 0
    assert one(made, "totals", subflow=None, direction="to_opener")["goodput_bytes"] == 6000


def test_joins_to_a_connection_that_was_open_before_and_from_the_server():
    scene = Multipath(1)
    _, s1 = scene.open()
    scene.wire.packets.clear()
    scene.data(s1, 100 * MS, 0, 0, 1000)
    _, s2 = scene.join(200 * MS)
    scene.data(s2, 300 * MS, 0, 1000, 1000)
    made = analyse(pcap(scene.wire.packets))
    assert (one(made, "connections")["uncertain"], one(made, "connections")["subflows"]) == (1, 2)
    assert one(made, "connections")["responder_token"] == token(SERVER_KEY, 1)
    scene = Multipath(1)
    scene.open()
    s = scene.wire.end(SERVER, 9000, "10.0.1.1", 9001)
    s(100 * MS, S0, 0, SYN, options=multipath(1, 0, b"\x02" + token(CLIENT_KEY, 1).to_bytes(4, "big") + bytes(4)))
    made = analyse(pcap(scene.wire.packets))
    second = made["subflows"][1]
    assert (second["connection"], second["opened_by_responder"], second["opener_address"]) == (0, 1, "10.0.1.1")
    assert one(made, "events", kind="join_syn")["direction"] == "to_opener"


def test_strangers_and_ports_used_again_stay_apart():
    wire = Wire()
    for number in (1, 2):
        s = wire.end(SERVER, 443, "10.0.0.1", 40_000 + number)
        s(number * MS, 5000, 1, ACK, 100, dss(dsn=number << 40, ssn=1, length=100))
    made = analyse(pcap(wire.packets))
    assert len(made["connections"]) == 2
    assert not any(row["uncertain"] for row in made["connections"])
    wire = Wire()
    for start, isn in ((0, 100), (500 * MS, 90_000)):
        c = wire.end("10.0.0.1", 1, SERVER, 2)
        c(start, isn, 0, SYN)
        c.other()(start + MS, 7, isn + 1, SYN | ACK)
        c(start + 2 * MS, isn + 1, 8, FIN | ACK)
        c.other()(start + 3 * MS, 8, isn + 2, FIN | ACK)
    made = analyse(pcap(wire.packets))
    assert [row["closed_by"] for row in made["connections"]] == ["fin", "fin"]
    assert [row["start_utc_ns"] - EPOCH for row in made["connections"]] == [0, 500 * MS]


def test_captures_that_begin_inside_a_mapping_or_never_have_it():
    scene = Multipath(1)
    _, s = scene.open()
    scene.wire.packets.clear()
    first = dss(dsn=scene.to_client, ssn=1, length=3000)
    second = dss(dsn=scene.to_client + 3000, ssn=3001, length=3000)
    for relative, mapping in ((1000, first), (2000, first), (3000, second), (4000, second)):
        s((100 + relative // 1000) * MS, S0 + 1 + relative, C0 + 1, ACK, 1000, mapping)
    made = analyse(pcap(scene.wire.packets))
    # The second packet ends the mapping, the third begins one: where the first began is known from there on, also of what came before.
    assert [row["dsn"] - scene.to_client for row in made["packets"]] == [1000, 2000, 3000, 4000]
    total = one(made, "totals", subflow=0, direction="to_opener")
    assert (total["goodput_bytes"], total["unmapped_bytes"]) == (4000, 0)
    # Each mapping on its first packet; the capture begins with the second one of them.
    scene = Multipath(0)
    _, s = scene.open()
    scene.wire.packets.clear()
    for number in range(1, 12):
        mapped = dss(dsn=scene.to_client + number * 1000, ssn=number * 1000 + 1, length=2000)
        mapped = mapped if number % 2 == 0 else dss(ack=scene.to_server)
        s((100 + number) * MS, S0 + 1 + number * 1000, C0 + 1, ACK, 1000, mapped)
    made = analyse(pcap(scene.wire.packets))
    total = one(made, "totals", subflow=None, direction="to_opener")
    assert (total["goodput_bytes"], total["unmapped_bytes"], total["unseen_bytes"]) == (10_000, 1000, 0)
    scene = Multipath(0)
    _, s = scene.open()
    s(200 * MS, S0 + 1001, C0 + 1, ACK, 1000, dss(ack=scene.to_server))
    s(201 * MS, S0 + 2001, C0 + 1, ACK, 1000, dss(ack=scene.to_server))
    made = analyse(pcap(scene.wire.packets), limits={"unmapped": 1})
    assert one(made, "totals", subflow=None, direction="to_opener")["unmapped_bytes"] == 2000
    assert one(made, "connections")["fallback"] == 0
    assert made["file"]["bounded"] == ["unmapped"]


def late_mapping(version, lost):
    """The mapping of three segments is on the first of them, as version 0 sends it. What is ``lost`` on the way does not come to the
    receiver; it is sent again on the same subflow, and its bytes on the other."""
    scene = Multipath(version)
    _, s1 = scene.open()
    _, s2 = scene.join(100 * MS)
    bare = dss(ack=scene.to_server)
    mapping = dss(ack=scene.to_server, dsn=scene.to_client, ssn=1, length=3000)
    if not lost:
        s1(200 * MS, S0 + 1, C0 + 1, ACK, 1000, mapping)
    s1(201 * MS, S0 + 1001, C0 + 1, ACK, 1000, bare)
    s1(202 * MS, S0 + 2001, C0 + 1, ACK, 1000, bare)
    scene.data(s2, 300 * MS, 0, 0, 2000)
    s1(350 * MS, S0 + 1, C0 + 1, ACK, 1000, mapping)
    s1.other()(351 * MS, C0 + 1, S0 + 3001, ACK, 0, dss(ack=scene.to_client + 3000))
    return analyse(pcap(scene.wire.packets))


@VERSIONS
def test_a_mapping_that_comes_late_counts_as_at_the_other_end(version):
    sent, came = (late_mapping(version, lost) for lost in (False, True))
    same = {
        "goodput_bytes": 3000, "reinjected_bytes": 2000, "unmapped_bytes": 0, "unseen_bytes": 0, "acked_bytes": 3000,
    }  # fmt: skip
    for made in (sent, came):
        total = one(made, "totals", subflow=None, direction="to_opener")
        assert {name: total[name] for name in same} == same
    rows = [row for row in came["packets"] if row["payload_bytes"]]
    assert [row["dsn"] - first_dsn(SERVER_KEY, version) for row in rows] == [1000, 2000, 0, 0]
    (early, *_) = of(came, "bins", subflow=0, direction="to_opener", bin_start_utc_ns=EPOCH + 200 * MS)
    assert (early["payload_bytes"], early["goodput_bytes"], early["reinjected_bytes"]) == (2000, 1000, 1000)


@pytest.mark.parametrize("wide", [True, False])
def test_acknowledgements_of_one_way_tell_which_subflows_are_one(wide):
    """What the client says, without its handshakes: DATA_ACKs alone, of two connections with two subflows each."""
    wire = Wire()
    for number in range(40):
        connection, path = number % 2, number // 2 % 2
        c = wire.end(("10.0.0.1", "10.0.1.1")[path], 40_000 + number % 4, SERVER, 443)
        acked = dss(ack=(7 << 40, 99 << 30)[connection] + number * 1000, wide=wide)
        c(number * MS, C0, S0 + number * 500, options=acked)
    made = analyse(pcap(wire.packets))
    told = [(row["multipath"], row["subflows"], row["uncertain"]) for row in made["connections"]]
    assert told == [(1, 2, 1), (1, 2, 1)]


LENGTH = 100
EDGE_KEY = 252_322
"""Its first data sequence number is 1445 below the edge of 32 bits."""
Waits = Counter[tuple[int, int | None]]


def waits(made: dict[str, Any]) -> Waits:
    assert {row["direction"] for row in made["waits"]} <= {"to_opener"}
    return Counter({(row["subflow"], row["wait_ms"]): row["packets"] for row in made["waits"]})


def scene(version: int = 1) -> tuple[Multipath, list[End]]:
    made = Multipath(version)
    return made, [made.open()[1], made.join(100 * MS)[1]]


@pytest.mark.parametrize("version", [0, 1])
def test_who_came_too_early_waits_until_the_gap_is_filled(version):
    # 3000 waits from 201 to 203 ms, 2000 from 202; what came again on the other subflow counts once.
    assert waits(analyse(pcap(two_subflows(version).wire.packets))) == {(0, 0): 2, (1, 1): 1, (1, 2): 1}


def test_waits_that_are_unknown_at_the_sender_without_room_or_behind_a_hole():
    made = Multipath()
    _, s = made.open()
    up = s.other()
    for at in (1, 0):
        mapped = dss(ack=made.to_client, dsn=made.to_server + at * LENGTH, ssn=1 + at * LENGTH, length=LENGTH)
        up((200 - at) * MS, C0 + 1 + at * LENGTH, S0 + 1, ACK, LENGTH, mapped)
    assert analyse(pcap(made.wire.packets))["waits"] == []
    made, (first, second) = scene()
    for n in range(3):
        made.data(second, (200 + n) * MS, n * LENGTH, (n + 1) * LENGTH, LENGTH)
    made.data(first, 210 * MS, 0, 0, LENGTH)
    told = analyse(pcap(made.wire.packets), limits={"waiting": 2})
    assert waits(told) == {(0, 0): 1, (1, 10): 1, (1, 9): 1, (1, None): 1}
    assert told["file"]["bounded"] == ["waiting"]
    made, (first, second) = scene()
    made.data(first, 200 * MS, 0, 0, LENGTH)
    made.data(second, 201 * MS, 0, 200, LENGTH)
    made.acknowledge(second.other(), 205 * MS, 100, 300)  # the receiver has what the capture missed
    made.data(first, 206 * MS, 200, 300, LENGTH)
    made.data(second, 207 * MS, 100, 500, LENGTH)  # and here it ends
    assert waits(analyse(pcap(made.wire.packets))) == {(0, 0): 2, (1, None): 2}


@pytest.mark.parametrize("seed", range(6))
def test_equals_a_plain_set_of_bytes(seed, monkeypatch):
    """Any order, copies on either subflow, holes that never fill; data numbers go over the edge of 32 bits, in the half of the runs with
    no more bits than those."""
    wide = seed % 2 == 0
    monkeypatch.setattr(capture_scenes, "SERVER_KEY", EDGE_KEY)
    chance = random.Random(seed)
    made, ends = scene()
    start = made.to_client
    assert start % 2**32 + 20 * LENGTH > 2**32
    parts = [(chance.randrange(60), chance.randrange(1, 4)) for _ in range(80)]
    parts = [(0, 1), *sorted(parts, key=lambda part: part[0] + chance.randrange(12))]
    at, sent = 200 * MS, [0, 0]
    came: list[tuple[int, int, range]] = []
    for place, count in parts:
        at += chance.randrange(1, 4 * MS)
        number, size = chance.randrange(2), count * LENGTH
        mapped = dss(ack=made.to_server, dsn=start + place * LENGTH, ssn=sent[number] + 1, length=size, wide=wide)
        ends[number](at, S0 + 1 + sent[number], C0 + 1, ACK, size, mapped)
        sent[number] += size
        came.append((at, number, range(place, place + count)))
    expected: Waits = Counter()
    seen: set[int] = set()
    held: list[tuple[int, int, int]] = []
    for now, number, places in came:
        fresh = set(places) - seen
        seen |= fresh
        following = next(n for n in range(1000) if n not in seen)
        for waiting in [kept for kept in held if kept[2] < following]:
            held.remove(waiting)
            expected[waiting[1], -(-(now - waiting[0]) // MS)] += 1
        if not fresh:
            continue
        last = max(n for n in places if n in fresh)
        if last < following:
            expected[number, 0] += 1
        else:
            held.append((now, number, last))
    expected.update((number, None) for _, number, _ in held)
    assert waits(analyse(pcap(made.wire.packets))) == expected
