"""``verdict``, ``latency`` and ``traceroute`` by the running collector, over the bench's operators with their NATs."""

from __future__ import annotations

import pytest
from kit_on_rig import KitOnRig

pytestmark = [pytest.mark.lab, pytest.mark.slow]


def test_both_operators_carry_multipath_tcp_in_both_roles(kit: KitOnRig) -> None:
    (run,) = kit.measured("--set", "bytes=100000", "--paths", "a,b", name="verdict")
    assert run["failure"] is None
    for path in "ab":
        found = run["result"]["paths"][path]
        assert (found["primary"]["verdict"], found["join"]["verdict"]) == ("native", "native")
        assert found["tcp"]["something_between"] is not True


def test_latency_through_the_nats(kit: KitOnRig) -> None:
    setting = [word for pair in ("seconds=3", "load=none") for word in ("--set", pair)]
    (run,) = kit.measured(*setting, "--paths", "a,b", name="latency")
    assert run["failure"] is None
    assert {s["path"] for s in run["result"]["streams"]} == {"a", "b"}
    for stream in run["result"]["streams"]:
        assert stream["received"] > 0
        assert stream["rtt_ms"]["p50"] > 10  # the emulated links' own


def test_the_operators_ways_to_the_server(kit: KitOnRig) -> None:
    setting = [word for pair in ("protocol=tcp", "tries=3") for word in ("--set", pair)]
    (run,) = kit.measured(*setting, "--paths", "a,b", name="traceroute")
    assert run["failure"] is None
    assert {t["ended"] for t in run["result"]["traces"]} == {"reached"}
    assert all(len(t["hops"]) > 1 for t in run["result"]["traces"])
