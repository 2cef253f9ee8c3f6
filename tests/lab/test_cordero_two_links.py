"""``bandwidth`` and ``delay`` over two emulated links against the real endpoint: never more than the links allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.emulated_links import RadioPair, no_link, served_pair
from support.experiment_process import parameters, run
from support.two_paths import lab_with

pytestmark = lab_with(lack=no_link())
MBIT = {"a": 16.0, "b": 4.0}
RTT_MS = {"a": 20.0, "b": 60.0}


@pytest.fixture(scope="module")
def rig() -> Iterator[tuple[RadioPair, dict[str, Any]]]:
    with served_pair(MBIT, RTT_MS) as made:
        yield made


def measure(rig: tuple[RadioPair, dict[str, Any]], name: str, **own: Any) -> dict[str, Any]:
    """Run it in the probe's namespace; its last line."""
    pair, server = rig
    line = run(pair, name, parameters(server, **own))
    assert (line["said"], line["failure"], line["failed_phases"], line["status"]) == ("", None, 0, 0)
    assert "result_faults" not in line
    return line


@pytest.mark.parametrize("mode", ["oneway", "reqresp"])
def test_delay_is_no_less_than_the_links_allow(rig, mode):
    for size in (1000, 500_000):
        line = measure(rig, "delay", mode=mode, min_bytes=size, max_bytes=size, seed=4)
        (told,) = line["result"]["rounds"]
        by_name = {t["name"]: t for t in told["transfers"]}
        for name, mbit in MBIT.items():
            transfer = by_name[f"tcp {name}"]
            least_s = 0.95 * (size * 8 / (mbit * 1e6) + RTT_MS[name] / 2000)
            assert transfer["agent_s"] > least_s
            if mode == "oneway":
                assert transfer["agent_s"] > 0.95 * RTT_MS[name] / 1000  # to the acknowledgement
            else:
                assert transfer["server_s"] > least_s
            assert transfer["connect_ms"] >= 0.95 * RTT_MS[name]
        for benefit in told["benefits"]:
            assert -1 <= benefit["benefit"] <= 1
            assert benefit["benefit"] == benefit[line["result"]["timed_at"]]["benefit"]
            assert 0.5 <= benefit["most_loaded_share"] <= 1
        assert size == 1000 or all(b["most_loaded_share"] < 1 for b in told["benefits"])


@pytest.mark.parametrize("mode", ["oneway", "reqresp"])
def test_buffers_are_set_at_both_ends_and_hold_the_goodput_down(rig, mode):
    """8 kB received ahead at most: a window's worth a round trip, far below what the link carries."""
    line = measure(
        rig, "bandwidth", mode=mode, seconds=1.5, primary="a", receive_buffer_bytes=8192, send_buffer_bytes=100_000
    )
    (told,) = line["result"]["rounds"]
    assert line["environment"]["receive_buffer_asked_bytes"] == 8192
    for phase in told["phases"]:
        for connection in phase["connections"]:
            assert (connection["receive_buffer_bytes"], connection["send_buffer_bytes"]) == (16384, 200_000)
    assert told["c_i_bit_per_s"]["a"] < 1.1 * 16384 * 8 / (RTT_MS["a"] / 1000)
