"""The link between two real namespaces: delay, rate, outage, loss, a falling capacity, a true log."""

from __future__ import annotations

import itertools
import math
import statistics
import time

import pytest
from two_ends import Timeline, two_ends

from tandem_bench.link.emulator import Constant, LinkError, LinkProcess, LinkSpec, Played

pytestmark = pytest.mark.lab

MS, S = 1_000_000, 1_000_000_000


def soon() -> int:
    """An epoch late enough for the ends to have started."""
    return time.monotonic_ns() + S


def delays_ms(got):
    return [(got_ns - sent_ns) / MS for _, sent_ns, got_ns in got]


def test_delay_is_half_the_round_trip_each_way(tmp_path):
    with two_ends(Constant(100e6, 10e6, rtt_ms=80), tmp_path) as ends:
        got = ends.datagrams(60, 200, 160_000)
        assert len(got) == 60
        assert min(delays_ms(got)) >= 40
        assert statistics.median(delays_ms(got)) < 43
        ends.link.set("down", "delay_us", 5000)
        assert 5 <= statistics.median(delays_ms(ends.datagrams(60, 200, 160_000))) < 8
        ends.link.clear("down", "delay_us")
        assert statistics.median(delays_ms(ends.datagrams(60, 200, 160_000))) >= 40


def test_rate_is_the_capacity(tmp_path):
    with two_ends(Constant(5e6, 10e6, rtt_ms=10, buffer_down_bytes=2_000_000), tmp_path) as ends:
        got = ends.datagrams(600, 1250, 50e6)
        assert len(got) == 600
        assert [number for number, *_ in got] == list(range(600))
        rate = 599 * 1250 * 8e9 / (got[-1][2] - got[0][2])
        assert rate == pytest.approx(5e6, rel=0.03)


@pytest.mark.parametrize("queue", ["kept", "dropped"])
def test_outage(tmp_path, queue):
    epoch = soon()
    plan = Timeline().tick(0, 20e6).tick(0.5, 20e6, outage=True, queue=queue).tick(1.0, 20e6)
    with two_ends(Played(plan.write(tmp_path / "t.jsonl"), epoch), tmp_path) as ends:
        got = ends.datagrams(150, 250, 200_000, start_ns=epoch)  # one every 10 ms for 1.5 s
    came = {number: got_ns for number, _, got_ns in got}
    sent_in_outage = range(53, 97)  # the edges are left out: a sender may be late by a few ms
    if queue == "kept":
        assert len(came) == 150
        assert all(came[number] >= epoch + S for number in sent_in_outage)
    else:
        assert not [number for number in sent_in_outage if number in came]
        assert sum(row["dropped_outage"] for row in ends.rows()) == 150 - len(came)
        assert max(delays_ms(got)) < 100
    assert {*range(45), *range(103, 150)} <= came.keys()


def test_loss_is_its_share_and_the_same_with_the_same_seed(tmp_path):
    lost = []
    for run in ("one", "two"):
        (tmp_path / run).mkdir()
        with two_ends(Constant(50e6, 10e6, rtt_ms=2, loss_down=0.2), tmp_path / run) as ends:
            came = {number for number, *_ in ends.datagrams(2000, 300, 5e6)}
        lost.append(set(range(2000)) - came)
        assert sum(row["dropped_loss"] for row in ends.rows()) == len(lost[-1])
    assert abs(len(lost[0]) - 400) < 5 * math.sqrt(2000 * 0.2 * 0.8)
    assert lost[0] == lost[1]


def test_a_falling_capacity_makes_the_queue_and_the_delay_grow(tmp_path):
    epoch = soon()
    plan = Timeline().tick(0, 8e6).tick(1.0, 2e6).tick(2.0, 100e6)
    with two_ends(Played(plan.write(tmp_path / "t.jsonl"), epoch), tmp_path) as ends:
        got = ends.datagrams(1000, 1500, 6e6, start_ns=epoch)  # two seconds
    assert len(got) == 1000
    queue = {round(row["t_s"], 1): row["queue_bytes"] for row in ends.rows()}
    assert max(queue[0.5], queue[0.8]) < 60_000
    assert queue[2.0] == pytest.approx(500_000, rel=0.15)  # 4 Mbit/s too much for one second
    assert queue[1.3] < queue[1.6] < queue[1.9]
    assert max(delays_ms(got)) > 300


def test_the_log_accounts_for_every_packet(tmp_path):
    with two_ends(Constant(4e6, 10e6, rtt_ms=20, buffer_down_bytes=60_000, loss_down=0.05), tmp_path) as ends:
        got = ends.datagrams(1500, 1000, 12e6)
    rows = ends.rows()
    total = {
        key: sum(row[key] for row in rows) for key in rows[0] if key.endswith(("bytes", "packets", "buffer", "loss"))
    }
    assert total["offered_packets"] == 1500
    assert total["packets"] == len(got)
    assert total["bytes"] == len(got) * 1000
    assert total["offered_bytes"] == 1_500_000
    assert total["dropped_packets"] == 1500 - len(got) == total["dropped_buffer"] + total["dropped_loss"]
    assert total["dropped_buffer"] > 0
    assert total["dropped_loss"] > 0
    assert max(row["queue_bytes"] for row in rows) <= 60_000
    spans = [b["monotonic_ns"] - a["monotonic_ns"] for a, b in itertools.pairwise(rows[:-1])]
    assert set(spans) == {100 * MS}


def test_what_is_said_on_stdin_is_answered(tmp_path):
    with two_ends(Constant(4e6, 10e6), tmp_path) as ends:
        with pytest.raises(LinkError, match="is not within 0 to 1"):
            ends.link.set("down", "loss", 1.5)
        ends.link.set("both", "outage", "on")
        assert ends.datagrams(5, 100, 1e5, idle_s=0.2) == []
        ends.link.set("both", "outage", "off")
        assert ends.link.poll() is None
        assert ends.link.stop() == 0


def test_without_a_namespace_it_says_so(tmp_path):
    spec = LinkSpec(str(tmp_path / "none"), "wwan0", str(tmp_path / "none"), "ran0", Constant(1e6, 1e6))
    with pytest.raises(LinkError, match="none: No such file"):
        LinkProcess(spec).start()


def test_its_devices_go_with_it(tmp_path):
    with two_ends(Constant(4e6, 10e6), tmp_path) as ends:
        assert "wwan0" in ends.probe.run(["ls", "/sys/class/net"])
        ends.link.stop()
        assert "wwan0" not in ends.probe.run(["ls", "/sys/class/net"])
