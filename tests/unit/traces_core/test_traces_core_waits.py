"""How long packets wait at the data level, against waits worked out by hand and a model that keeps a set of bytes."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import scenes
from captures import ACK, MS, End, dss, pcap
from reading import analyse
from scenes import C0, S0, Multipath, two_subflows

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


def test_a_wait_is_milliseconds_begun():
    made, (first, second) = scene()
    made.data(second, 200 * MS, 0, 100, LENGTH)
    made.data(first, 201 * MS + 1, 0, 0, LENGTH)
    made.data(second, 202 * MS, 100, 300, LENGTH)
    made.data(first, 202 * MS, 100, 200, LENGTH)
    assert waits(analyse(pcap(made.wire.packets))) == {(0, 0): 2, (1, 2): 1, (1, 1): 1}


def test_a_hole_that_is_not_seen_to_fill_leaves_the_wait_unknown():
    made, (first, second) = scene()
    made.data(first, 200 * MS, 0, 0, LENGTH)
    made.data(second, 201 * MS, 0, 200, LENGTH)
    made.acknowledge(second.other(), 205 * MS, 100, 300)  # the receiver has what the capture missed
    made.data(first, 206 * MS, 200, 300, LENGTH)
    made.data(second, 207 * MS, 100, 500, LENGTH)  # and here it ends
    assert waits(analyse(pcap(made.wire.packets))) == {(0, 0): 2, (1, None): 2}


def test_at_the_sender_there_are_none():
    made = Multipath()
    _, s = made.open()
    up = s.other()
    for at in (1, 0):
        mapped = dss(ack=made.to_client, dsn=made.to_server + at * LENGTH, ssn=1 + at * LENGTH, length=LENGTH)
        up((200 - at) * MS, C0 + 1 + at * LENGTH, S0 + 1, ACK, LENGTH, mapped)
    assert analyse(pcap(made.wire.packets))["waits"] == []


def test_what_has_no_room_is_unknown_and_told():
    made, (first, second) = scene()
    for n in range(3):
        made.data(second, (200 + n) * MS, n * LENGTH, (n + 1) * LENGTH, LENGTH)
    made.data(first, 210 * MS, 0, 0, LENGTH)
    told = analyse(pcap(made.wire.packets), limits={"waiting": 2})
    assert waits(told) == {(0, 0): 1, (1, 10): 1, (1, 9): 1, (1, None): 1}
    assert told["file"]["bounded"] == ["waiting"]


@pytest.mark.parametrize("wide", [True, False], ids=["64 bits", "32 bits"])
@pytest.mark.parametrize("seed", range(20))
def test_equals_a_plain_set_of_bytes(seed, wide, monkeypatch):
    """Any order, copies on either subflow, holes that never fill; data numbers go over the edge of 32 bits."""
    monkeypatch.setattr(scenes, "SERVER_KEY", EDGE_KEY)
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
        for waiting in [one for one in held if one[2] < following]:
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
