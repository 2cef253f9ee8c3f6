"""In the machine, before anything is started: what the kernel does not have is named; on ``v094_tree``, which stands in for v0.94."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.v094_tree import Tree
from tandem_bench.kernel import SEED, inside
from tandem_bench.topology import topology
from tandem_bench.topology.spec import TopologySpec, commuting


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """Root of the machine, where every call of a program succeeds."""
    made = Tree(tmp_path / "root", mptcp_enabled="2", mptcp_path_manager="default", mptcp_scheduler="roundrobin")
    made.write("proc/sys/net/ipv4/tcp_available_congestion_control", "cubic reno lia olia wvegas balia")
    monkeypatch.setattr(inside, "_SYSCTLS", made.root / "proc/sys")
    monkeypatch.setattr(inside, "_NAMED", tmp_path / "netns")
    monkeypatch.setattr(inside, "out_of_tree", lambda: True)
    monkeypatch.setattr(inside, "require", lambda: None)
    without(monkeypatch, "nothing")
    monkeypatch.chdir(tmp_path)
    return made


def without(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    """Calls of ``program`` fail, all others succeed and do nothing."""

    def run(argv: list[str], **more: Any) -> subprocess.CompletedProcess[str]:
        assert argv[0] != program or not more["check"], "nothing is undone that was not made"
        return subprocess.CompletedProcess(argv, int(argv[0] == program), '{"rows": []}', "")

    monkeypatch.setattr(inside.subprocess, "run", run)


def told(*words: str) -> tuple[int, dict[str, Any]]:
    status = inside.main(words)
    return status, json.loads(Path("told.json").read_text())


@pytest.mark.parametrize(
    ("program", "says"), [("test", "CONFIG_TUN"), ("ip", "CONFIG_VETH"), ("nft", "CONFIG_NFT_CHAIN_NAT_IPV4")]
)
@pytest.mark.usefixtures("tree")
def test_a_driver_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, program: str, says: str) -> None:
    without(monkeypatch, program)
    status, said = told("downloads")
    assert (status, said["lacks"]) == (3, True)
    assert says in said["failure"]
    assert said["failure"].endswith("; hint: build it in (=y)")


def test_the_papers_settings_are_made_where_they_hold_for_the_whole_machine(tree: Tree) -> None:
    status, said = told("self-test")
    assert (status, said["failure"], said["ok"]) == (0, None, True)
    for name, value in {
        "mptcp/mptcp_enabled": "1",
        "mptcp/mptcp_path_manager": "fullmesh",
        "mptcp/mptcp_scheduler": "default",
        "ipv4/tcp_congestion_control": "cubic",
        "ipv4/tcp_allowed_congestion_control": "cubic reno lia olia wvegas balia",
    }.items():
        assert (tree.root / "proc/sys/net" / name).read_text() == f"{value}\n"


def test_a_path_manager_that_is_not_built_in_is_named(tree: Tree) -> None:
    place = tree.root / "proc/sys/net/mptcp/mptcp_path_manager"
    place.unlink()
    place.mkdir()  # it cannot be written
    status, said = told("self-test")
    assert (status, said["lacks"]) == (3, True)
    assert said["failure"].startswith("net.mptcp.mptcp_path_manager = fullmesh: ")


@pytest.mark.usefixtures("tree")
def test_a_fault_of_ours_in_there_is_no_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "_self_test", lambda: {}["broken"])
    with pytest.raises(KeyError):
        inside.main(["self-test"])
    said = json.loads(Path("told.json").read_text())
    assert "stderr.log" in said["failure"]


@pytest.mark.usefixtures("tree")
def test_the_machines_random_numbers_begin_with_some_of_the_machine_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[int, bytes]] = []
    monkeypatch.setattr("fcntl.ioctl", lambda _file, number, content: given.append((number, content)))
    assert told("self-test")[0] == 0
    assert given == []
    Path(SEED).write_bytes(b"abcd")
    assert told("self-test")[0] == 0
    assert given == [(0x40085203, b"\x20\0\0\0\x04\0\0\0abcd")]


@pytest.mark.parametrize("old", [True, False])
def test_no_route_chooses_a_controller_where_that_would_go_before_a_sessions(
    monkeypatch: pytest.MonkeyPatch, old: bool
) -> None:
    """Linux 4.14 takes a route's (tcp_ca_openreq_child) before the listener's, which is a session's there."""
    said: list[str] = []
    monkeypatch.setattr(topology, "out_of_tree", lambda: old)
    made = topology.Topology(TopologySpec(commuting(inside.OFFERS)))
    monkeypatch.setattr(made, "_veth", lambda *_: None)
    monkeypatch.setattr(made, "run", lambda _name, _argv, text="": said.append(text))
    made._server()
    assert "route add default via 203.0.113.1" in "".join(said)
    assert ("congctl" in "".join(said)) is not old
