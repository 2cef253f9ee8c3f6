"""Traceroutes through routers that are namespaces: two paths with a router of their own each, then two in common."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from support.experiment_process import parameters, run
from support.two_paths import Lab, Space, lab_with
from tandem.mptcp.paths import Path as ProbePath

pytestmark = lab_with("nft")
NET = "192.88.99"
"""A block that nobody uses any more: routers with private addresses are not compared."""
SERVER = f"{NET}.50"
PATHS = (ProbePath("a", "l0"), ProbePath("b", "l1"))


class Routed(Lab):
    """probe – ra – rc – rd – server and probe – rb – rc – rd – server; links are /30 in 192.88.99.0/24."""

    def __init__(self) -> None:  # not the two-path lab's wiring
        self.kept = []
        self.spaces = {name: Space() for name in ("probe", "ra", "rb", "rc", "rd", "server")}
        self.probe, self.server = self.spaces["probe"], self.spaces["server"]
        for number, (one, other) in enumerate(
            [("probe", "ra"), ("probe", "rb"), ("ra", "rc"), ("rb", "rc"), ("rc", "rd"), ("rd", "server")]
        ):
            ends = (f"{NET}.{4 * number + 1}/30", self.spaces[other], f"l{number}x", f"{NET}.{4 * number + 2}/30")
            self.spaces[one].link(f"l{number}", *ends)
        for name in ("ra", "rb", "rc", "rd"):
            self.spaces[name].run(
                "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_msgs_per_sec=10000"
            )
        self.server.run(f"ip addr add {SERVER}/32 dev lo && ip route add default via {NET}.21")
        self.probe.run(
            f"ip route add default via {NET}.2 dev l0 metric 1 && ip route add default via {NET}.6 dev l1 metric 2"
        )
        self.spaces["ra"].run(f"ip route add default via {NET}.10")
        self.spaces["rb"].run(f"ip route add default via {NET}.14")
        self.spaces["rc"].run(f"ip route add {NET}.0/30 via {NET}.9 && ip route add {NET}.4/30 via {NET}.13")
        self.spaces["rc"].run(f"ip route add default via {NET}.18")
        self.spaces["rd"].run(f"ip route add default via {NET}.17 && ip route add {SERVER}/32 via {NET}.22")

    def close(self) -> None:
        for space in self.spaces.values():
            space.close()


@pytest.fixture
def routed() -> Iterator[Routed]:
    with ExitStack() as stack:
        yield stack.enter_context(closing(Routed()))


def traced(made: Routed, folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "token").write_text("secret")
    folder.chmod(0o755)
    server = {
        "control": f"http://{SERVER}:1",
        "measurement": f"http://{SERVER}:8480",
        "token_file": str(folder / "token"),
    }
    found = run(made, "traceroute", parameters(server, PATHS, **{"probe_timeout_s": 10, **more}))
    assert "result_faults" not in found
    return found


def way(found: dict[str, Any], path: str, protocol: str) -> list[list[str]]:
    one = next(t for t in found["result"]["traces"] if (t["path"], t["protocol"]) == (path, protocol))
    return [[r["address"] for r in hop["routers"]] for hop in one["hops"]]


def test_both_protocols_find_the_routers_and_what_is_common(routed, tmp_path):
    (tmp_path / "as.csv").write_text(
        f"{NET}.0/30,64501\n{NET}.4/30,64502\n{NET}.8/29,64503\n{NET}.16/30,64503\n{SERVER}/32,64504\n"
    )
    found = traced(routed, tmp_path, as_table=str(tmp_path / "as.csv"))
    assert found["status"] == 0
    for protocol in ("udp", "tcp"):
        assert way(found, "a", protocol) == [[f"{NET}.2"], [f"{NET}.10"], [f"{NET}.18"], [SERVER]]
        assert way(found, "b", protocol) == [[f"{NET}.6"], [f"{NET}.14"], [f"{NET}.18"], [SERVER]]
        row = next(d for d in found["result"]["disjointness"] if d["protocol"] == protocol)
        assert row["routers"] == [3, 3]
        assert row["shared"] == [f"{NET}.18"]  # rc answers each path from another interface
        assert row["disjoint_share"] == pytest.approx(1 - 1 / 5)
        assert row["systems"] == [[64501, 64503], [64502, 64503]]
        assert row["systems_shared"] == [64503]
        assert row["systems_disjoint_share"] == pytest.approx(2 / 3)
    assert {t["ended"] for t in found["result"]["traces"]} == {"reached"}
    first = found["result"]["traces"][0]["hops"][0]["routers"][0]
    assert len(first["rtt_ms"]) == 3
    assert first["as"] == 64501


def test_a_silent_router_is_nobody_and_a_refusing_one_ends_it(routed, tmp_path):
    routed.spaces["ra"].run("nft 'add table ip t; add chain ip t o { type filter hook output priority 0; }'")
    routed.spaces["ra"].run("nft 'add rule ip t o icmp type time-exceeded drop'")
    routed.spaces["rb"].run("ip route replace unreachable default && ip route flush cache")
    found = traced(routed, tmp_path, protocol="tcp", tries=1, probe_timeout_s=2)
    assert way(found, "a", "tcp") == [[], [f"{NET}.10"], [f"{NET}.18"], [SERVER]]
    b = next(t for t in found["result"]["traces"] if t["path"] == "b")
    assert b["ended"] == "unreachable"
    assert b["hops"][-1]["routers"][0]["kind"].startswith("unreachable")


def test_a_server_behind_a_wall_ends_in_silence(routed, tmp_path):
    routed.spaces["rd"].run("nft 'add table ip t; add chain ip t f { type filter hook forward priority 0; }'")
    routed.spaces["rd"].run("nft 'add rule ip t f ip protocol udp drop'")
    found = traced(routed, tmp_path, protocol="udp", tries=1, probe_timeout_s=1, silent_hops=3)
    assert found["status"] == 0
    assert way(found, "a", "udp") == [[f"{NET}.2"], [f"{NET}.10"], [f"{NET}.18"], [], [], []]
    assert {t["ended"] for t in found["result"]["traces"]} == {"silent"}


def test_it_needs_no_privilege(routed):
    code = (
        "from tandem.experiment.traceroute import Plan, trace;"
        f"found = [trace('l0', ('{SERVER}', 8480), Plan(p, 10, 1, 10, 3), lambda: False) for p in ('udp', 'tcp')];"
        "print([(t.ended, len(t.hops)) for t in found])"
    )
    out = routed.probe.python(code, 65534, "-all")
    assert out.strip() == "[('reached', 4), ('reached', 4)]"
