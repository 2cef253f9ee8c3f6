"""Experiments over a path that has IPv6 alone, through a router: probe – router – server."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path as Folder
from typing import Any

import pytest
from dual_family_paths import why_not6
from names_server import serving

from support.real_endpoint import Measured, measured
from support.two_paths import Lab, Space, lab_with
from tandem.mptcp import sysctls
from tandem.mptcp.paths import Path

pytestmark = lab_with(lack=why_not6())
NET = "2a0e:fff0"
"""Routers and addresses with private addresses are not compared nor pinged; nothing of this leaves the namespaces."""
PROBE, ROUTER, SERVER = f"{NET}:1::2", f"{NET}:1::1", f"{NET}:9::50"


class Routed6(Lab):
    def __init__(self) -> None:  # not the two-path lab's wiring
        self.kept = []
        self.spaces = {name: Space() for name in ("probe", "router", "server")}
        self.probe, self.server = self.spaces["probe"], self.spaces["server"]
        router = self.spaces["router"]
        for space in self.spaces.values():
            space.run(
                "echo 0 >/proc/sys/net/ipv6/conf/all/disable_ipv6; echo 0 >/proc/sys/net/ipv6/conf/default/disable_ipv6"
            )
            space.run("ip link set lo up")
            space.inside(lambda: sysctls.apply({"net.ipv4.tcp_congestion_control": "cubic"}))
        self.probe.link("six0", f"{PROBE}/64", router, "r0", f"{ROUTER}/64")
        self.server.link("s0", f"{NET}:2::2/64", router, "r1", f"{NET}:2::1/64")
        self.probe.run(f"ip route add default via {ROUTER} dev six0")
        router.run("sysctl -qw net.ipv6.conf.all.forwarding=1 net.ipv6.icmp.ratelimit=0")
        router.run(f"ip route add {SERVER}/128 via {NET}:2::2 && ip route add {NET}::/64 via {NET}:2::2")
        self.server.run(f"ip addr add {SERVER}/128 dev lo && ip route add default via {NET}:2::1")
        self.server.run(f"ip route add local {NET}::/64 dev lo")

    def close(self) -> None:
        for space in self.spaces.values():
            space.close()


@pytest.fixture(scope="module")
def six() -> Iterator[Measured]:
    with tempfile.TemporaryDirectory() as name, closing(Routed6()) as made:
        folder = Folder(name)
        folder.chmod(0o755)
        with measured(made, folder, f"[{SERVER}]", (Path("six", "six0"),)) as six:
            yield six


def result_of(six: Measured, name: str, **own: Any) -> dict[str, Any]:
    line = six.run(name, **own)
    assert not line.get("failed_phases")
    assert line["failure"] is None
    result: dict[str, Any] = line["result"]
    return result


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_a_download(six, kind):
    result = result_of(six, "download", kind=kind, path="six", bytes=2_000_000)
    assert (result["bytes"], result["fallback"]) == (2_000_000, False)
    (connection,) = result["sender"]["connections"]
    assert (connection["peer"]["address"], connection["bytes_acked"]) == (PROBE, 2_000_000)
    assert [flow["path"] for flow in connection["subflows"]] == ["six"]
    assert [flow["path"] for flow in result["subflows"]] == ["six"]


def test_an_upload(six):
    """Two ways are compared, so the one interface is given twice."""
    twice = [{"name": name, "interface": "six0"} for name in ("six", "again")]
    result = result_of(six, "delay", mode="oneway", paths=twice, min_bytes=500_000, max_bytes=500_000)
    (told,) = result["rounds"]
    assert len(told["transfers"]) == 4
    for transfer in told["transfers"]:
        assert (transfer["bytes"], transfer["fallback"]) == (500_000, False)
        assert transfer["server_s"] > 0
        assert transfer["agent_s"] > 0


def test_latency_idle_and_loaded(six):
    """Loaded, the link's queue may drop any of them: loss is asserted idle only."""
    plan = {"seconds": 0.5, "settle_s": 0.3}
    (idle,) = result_of(six, "latency", load="none", linger_s=60, **plan)["streams"]
    (loaded,) = result_of(six, "latency", load="only", linger_s=2, **plan)["streams"]
    for stream in (idle, loaded):
        assert (stream["path"], stream["error"]) == ("six", None)
        assert stream["sent"] >= stream["received"] > 0
        assert stream["rtt_ms"]["p50"] > 0
    assert idle["lost_share"] == 0
    assert loaded["load_goodput_bit_per_s"] > 0


def test_the_router_is_found_by_both_protocols(six):
    result = result_of(six, "traceroute", probe_timeout_s=10)
    traces = {trace["protocol"]: trace for trace in result["traces"]}
    assert set(traces) == {"udp", "tcp"}
    for trace in traces.values():
        assert trace["ended"] == "reached"
        assert [[router["address"] for router in hop["routers"]] for hop in trace["hops"]] == [[ROUTER], [SERVER]]


def test_a_verdict(six):
    result = result_of(six, "verdict", join_wait_s=0.5, bytes=100_000, asks=2)
    assert result["paths"]["six"]["primary"]["verdict"] == "native"


def test_names_are_asked_for_and_addresses_pinged(six, tmp_path):
    tmp_path.chmod(0o755)
    (tmp_path / "list.csv").write_text("1,n1.example\n2,n2.example\n3,nx.example\n4,mute1.example\n")
    with serving(six.lab.server.enter, f"{SERVER}+0"):
        files = {"names": str(tmp_path / "list.csv"), "folder": str(tmp_path / "run")}
        times = {"ping_timeout_s": 30, "dns_timeout_s": 2, "dns_tries": 2, "pings": 3}
        result = result_of(six, "reachability", resolvers={"six": [SERVER]}, **files, **times)
    found = result["resolution"]["six"]
    assert (found["names"], found["resolved_aaaa"]) == (4, 2)
    (way,) = result["ways"]
    assert (way["addresses"], way["unresponsive_share"]) == (2, 0)
    assert (way["pings"], way["address_rtt_ms"]["n"]) == (6, 2)
