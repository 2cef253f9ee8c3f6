"""A packet-delivery trace through the real link: what passes is what the trace lets pass."""

from __future__ import annotations

from itertools import pairwise

import pytest
from two_ends import Timeline, two_ends

from tandem_bench.link.emulator import LinkError, Played

pytestmark = pytest.mark.lab


def test_under_overload_exactly_the_trace_passes(tmp_path):
    # Five opportunities in every 100 ms: 600 kbit/s in bursts. The timeline's rate and outage do not touch it.
    trace = tmp_path / "bursts.down"
    trace.write_text("5\n10\n10\n20\n100\n")
    timeline = Timeline().tick(0, 1.0, outage=True).write(tmp_path / "t.jsonl")
    with two_ends(Played(timeline, down_trace=trace), tmp_path) as ends:
        ends.link.set("down", "outage", "on")
        got = ends.datagrams(60, 1500, 20e6, offered=lambda: ends.link.clear("down", "outage"))
        assert ends.link.poll() is None
        backlogged = [row for before, row in pairwise(ends.rows()) if before["packets"] and row["queue_bytes"]]
    assert [number for number, *_ in got] == list(range(60))
    assert len(backlogged) >= 9
    assert {row["packets"] for row in backlogged} == {5}
    assert {row["capacity_bit_per_s"] for row in backlogged} == {600_000}


def test_a_bad_trace_is_one_line(tmp_path):
    trace = tmp_path / "bad.down"
    trace.write_text("5\n4\n")
    timeline = Timeline().tick(0, 1e6).write(tmp_path / "t.jsonl")
    with (
        pytest.raises(LinkError, match=r"bad.down:2: 4 comes after a later time; mend: sort"),
        two_ends(Played(timeline, down_trace=trace), tmp_path),
    ):
        pass
