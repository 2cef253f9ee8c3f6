"""Latency against the real endpoint's reflector over two paths."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.real_endpoint import Measured, measured
from support.two_paths import lab, lab_with

pytestmark = lab_with("nft")


PLAN = {"seconds": 0.5, "interval_ms": 10, "linger_s": 3, "settle_s": 0.2}
"""``linger_s`` is waited only where an answer is missing."""


@pytest.fixture
def timed(tmp_path: Path) -> Iterator[Measured]:
    with lab() as made, measured(made, tmp_path, **PLAN) as timed:
        for name, number in (("a", 1), ("b", 2)):
            made.probe.run(f"ip route add default via 10.71.{number}.2 dev tmp5-{name} metric {number}")
        yield timed


def drop(timed: Measured, *rules: str) -> None:
    """At the server, of the reflector's datagrams: ``rules`` as nftables has them, the port put into them."""
    hooks = "; ".join(f"add chain ip t {h} {{ type filter hook {h} priority 0; }}" for h in ("input", "output"))
    added = "; ".join(f"add rule ip t {rule.format(port=timed.endpoint.measurement_port)} drop" for rule in rules)
    timed.lab.server.run(f"nft 'add table ip t; {hooks}; {added}'")


def stream(found: dict[str, Any], path: str, loaded: bool) -> dict[str, Any]:
    return next(s for s in found["result"]["streams"] if (s["path"], s["loaded"]) == (path, loaded))


def test_each_path_idle_and_loaded(timed):
    idle = timed.run("latency", load="none", linger_s=60)
    loaded = timed.run("latency", load="only")
    assert [len(found["result"]["streams"]) for found in (idle, loaded)] == [2, 2]
    for path in "ab":
        alone, beside = stream(idle, path, False), stream(loaded, path, True)
        assert (alone["sent"], alone["received"], alone["lost_up"], alone["lost_down"]) == (50, 50, 0, 0)
        assert alone["rtt_ms"]["p50"] > 0
        assert alone["up_variation_ms"]["p1"] >= 0
        # Loaded, the link's queue may drop any of them: loss is asserted idle only.
        assert beside["load_goodput_bit_per_s"] > 0
        assert beside["load_error"] is None
    clock = idle["result"]["clock"]
    assert clock["absolute"] is (clock["error_ms"] is not None)
    assert (stream(idle, "a", False)["up_ms"] is None) is not clock["absolute"]
    assert idle["result"]["bytes_by_path"]["a"]["sent"] == 50 * 100


def test_loss_is_told_by_its_direction(timed):
    """A quarter is lost on a's way up, a tenth on b's way down."""
    drop(
        timed,
        "input iifname tmp5-as udp dport {port} numgen inc mod 4 == 3",
        "output oifname tmp5-bs udp sport {port} numgen inc mod 10 == 5",
    )
    found = timed.run("latency", load="none")
    a, b = stream(found, "a", False), stream(found, "b", False)
    assert (a["sent"], a["received"], a["lost_down"]) == (50, 38, 0)
    assert a["lost_up"] == 12  # the last of the fifty was answered
    assert (b["received"], b["lost_up"], b["lost_down"]) == (45, 0, 5)


def test_a_path_that_is_down_is_a_stream_of_nothing(timed):
    timed.lab.probe.run("ip link set tmp5-b down")
    found = timed.run("latency", load="none")
    assert stream(found, "a", False)["received"] == 50
    assert stream(found, "b", False)["received"] == 0
    assert stream(found, "b", False)["error"]


def test_a_reflector_that_is_silent_is_a_failure(timed):
    drop(timed, "input udp dport {port}")
    found = timed.run("latency", status=1, load="none")
    assert found["failure"] == {"reason": "no answer over any path", "retry": True}
    assert stream(found, "a", False)["lost_share"] == 1.0
    assert stream(found, "a", False)["lost_up"] is None
