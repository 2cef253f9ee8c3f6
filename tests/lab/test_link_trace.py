"""A packet-delivery trace through the real link: what passes is what the trace lets pass."""

from __future__ import annotations

import time

import pytest
from two_ends import Timeline, two_ends

from tandem_bench.link.emulator import LinkError, Played

pytestmark = pytest.mark.lab
MS, S = 1_000_000, 1_000_000_000


def test_under_overload_exactly_the_trace_passes(tmp_path):
    # Five opportunities in every 100 ms: 600 kbit/s in bursts.
    trace = tmp_path / "bursts.down"
    trace.write_text("5\n10\n10\n20\n100\n")
    timeline = Timeline().tick(0, 1.0).tick(1.0, 1.0, outage=True).tick(2.0, 1.0).write(tmp_path / "t.jsonl")
    epoch = time.monotonic_ns() + S
    with two_ends(Played(timeline, epoch, down_trace=trace), tmp_path) as ends:
        got = ends.datagrams(200, 1500, 20e6, start_ns=epoch)  # all at once: four seconds' worth
        assert ends.link.poll() is None
    assert [number for number, *_ in got] == list(range(200))
    rows = [row for row in ends.rows() if 0.2 < row["t_s"] <= 3.8]
    # Five opportunities a round, one of them at its end; also in the second in which the timeline has an outage.
    assert {row["packets"] for row in rows} == {5}
    assert {row["capacity_bit_per_s"] for row in rows} == {600_000}
    since = [(got_ns - epoch - 10 * MS) / MS % 100 for _, _, got_ns in got[5:]]  # 10 ms of propagation
    strayed = [ms for ms in since if min((ms - at) % 100 for at in (5, 10, 20, 100)) > 4]
    assert len(strayed) < 20  # so many may be late on a busy machine; by design none lies between opportunities


def test_a_bad_trace_is_one_line(tmp_path):
    trace = tmp_path / "bad.down"
    trace.write_text("5\n4\n")
    timeline = Timeline().tick(0, 1e6).write(tmp_path / "t.jsonl")
    with (
        pytest.raises(LinkError, match=r"bad.down:2: 4 comes after a later time; mend: sort"),
        two_ends(Played(timeline, down_trace=trace), tmp_path),
    ):
        pass
