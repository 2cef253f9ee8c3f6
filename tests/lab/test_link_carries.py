"""The link between two real namespaces: delay, rate, a played capacity, a true log. What it makes of outages, of loss and of a seed:
firmware/bench/link.

What a busy machine delays is told by the log (``late_us_mean``) and not judged; what passes when, the link reckons in its own time.
"""

from __future__ import annotations

import itertools
import time

import pytest

from support.linked_namespaces import Timeline, TwoEnds, two_ends
from tandem_bench.link import Constant, LinkError, LinkProcess, LinkSpec, Played

pytestmark = pytest.mark.lab

MS, S = 1_000_000, 1_000_000_000
SUMS = ("packets", "bytes", "offered_packets", "offered_bytes", "dropped_packets", "dropped_buffer", "dropped_loss")


def numbers(got):
    return [number for number, *_ in got]


def dark(ends: TwoEnds) -> None:
    ends.link.set("down", "queue", "kept")
    ends.link.set("down", "outage", "on")


def light(ends: TwoEnds) -> None:
    ends.link.set("down", "outage", "off")


def backlogged(ends: TwoEnds):
    """Rows of the log after one that passed packets, which the link began with some waiting: the first with any began in the dark."""
    return [row for before, row in itertools.pairwise(ends.rows()) if before["packets"] and row["queue_bytes"]]


def scheduled_ms(rows):
    """From a packet's arrival to when it was due, by the log's means."""
    return [row["delay_ms"] - row["late_us_mean"] / 1000 for row in rows if row["packets"]]


def test_delay_is_half_the_round_trip_each_way(tmp_path):
    with two_ends(Constant(100e6, 10e6, rtt_ms=80), tmp_path) as ends:
        for set_us, least_ms in ((None, 40), (5000, 5), (None, 40)):
            if set_us is None:
                ends.link.clear("down", "delay_us")
            else:
                ends.link.set("down", "delay_us", set_us)
            seen = len(ends.rows())
            got = ends.datagrams(20, 200, 160_000)
            assert numbers(got) == list(range(20))
            assert min(got_ns - sent_ns for _, sent_ns, got_ns in got) >= least_ms * MS
            # Twenty of them at once take 0.32 ms.
            assert all(least_ms <= ms <= least_ms + 0.4 for ms in scheduled_ms(ends.rows()[seen:]))


def test_rate_is_the_capacity(tmp_path):
    with two_ends(Constant(5e6, 10e6, rtt_ms=10, buffer_down_bytes=2_000_000), tmp_path) as ends:
        dark(ends)
        got = ends.datagrams(600, 1250, 50e6, offered=lambda: light(ends))
        assert numbers(got) == list(range(600))
        rows = backlogged(ends)
    # 2 ms each.
    assert len(rows) >= 10
    assert {row["packets"] for row in rows} == {50}


def test_a_timeline_is_played_by_its_times(tmp_path):
    """One that began before the link did goes on where it is by now."""
    plan = Timeline().tick(0, 8e6).tick(0.3, 2e6).tick(0.6, 100e6)
    now = time.monotonic_ns()
    for name, began_ns, until_s in (("from", now + S, 0.9), ("within", now - 10 * S, 10.3)):
        (tmp_path / name).mkdir()
        with two_ends(Played(plan.write(tmp_path / name / "t.jsonl"), began_ns), tmp_path / name) as ends:
            ends.until(lambda until_s=until_s: any(row["t_s"] >= until_s for row in ends.rows()))
            offered = {round(row["t_s"], 1): row["capacity_bit_per_s"] for row in ends.rows()}
        for t_s, bit_per_s in offered.items():
            if t_s not in (0.3, 0.6):
                assert bit_per_s == (8e6 if t_s < 0.3 else 2e6 if t_s < 0.6 else 100e6), t_s


def test_under_overload_exactly_what_a_delivery_trace_lets_pass_passes(tmp_path):
    """Five opportunities in every 100 ms: 600 kbit/s in bursts. The timeline's rate and outage do not touch it."""
    trace = tmp_path / "bursts.down"
    trace.write_text("5\n10\n10\n20\n100\n")
    timeline = Timeline().tick(0, 1.0, outage=True).write(tmp_path / "t.jsonl")
    with two_ends(Played(timeline, down_trace=trace), tmp_path) as ends:
        ends.link.set("down", "outage", "on")
        got = ends.datagrams(60, 1500, 20e6, offered=lambda: ends.link.clear("down", "outage"))
        assert ends.link.poll() is None
        rows = backlogged(ends)
    assert numbers(got) == list(range(60))
    assert len(rows) >= 9
    assert {row["packets"] for row in rows} == {5}
    assert {row["capacity_bit_per_s"] for row in rows} == {600_000}


def test_the_log_accounts_for_every_packet(tmp_path):
    with two_ends(Constant(4e6, 10e6, rtt_ms=20, buffer_down_bytes=60_000, loss_down=0.05), tmp_path) as ends:
        dark(ends)
        got = ends.datagrams(300, 1000, 20e6, offered=lambda: light(ends))
        ends.link.stop()
        rows = ends.rows()
    total = {key: sum(row[key] for row in rows) for key in SUMS}
    assert len(got) == total["packets"] == 60  # what the buffer takes
    assert (total["bytes"], total["offered_packets"], total["offered_bytes"]) == (60_000, 300, 300_000)
    assert total["dropped_packets"] == 240 == total["dropped_buffer"] + total["dropped_loss"]
    assert min(total["dropped_buffer"], total["dropped_loss"]) > 0
    assert max(row["queue_bytes"] for row in rows) == 60_000
    spans = [b["monotonic_ns"] - a["monotonic_ns"] for a, b in itertools.pairwise(rows[:-1])]
    assert set(spans) == {100 * MS}


def test_what_is_said_on_stdin_is_answered_and_its_devices_go_with_it(tmp_path):
    with two_ends(Constant(4e6, 10e6), tmp_path) as ends:
        with pytest.raises(LinkError, match="is not within 0 to 1"):
            ends.link.set("down", "loss", 1.5)
        assert ends.link.poll() is None
        assert "wwan0" in ends.probe.run(["ls", "/sys/class/net"])
        assert ends.link.stop() == 0
        assert "wwan0" not in ends.probe.run(["ls", "/sys/class/net"])


def test_without_a_namespace_it_says_so(tmp_path):
    spec = LinkSpec(str(tmp_path / "none"), "wwan0", str(tmp_path / "none"), "ran0", Constant(1e6, 1e6))
    with pytest.raises(LinkError, match="none: No such file"):
        LinkProcess(spec).start()
