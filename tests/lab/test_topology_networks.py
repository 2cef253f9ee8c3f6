"""The bench's networks: up, reachable by name and through each operator's NAT, beside each other, and gone afterwards."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from support.two_paths import await_true
from tandem_bench.link import Constant, LinkError, Played
from tandem_bench.requirements import MachineError
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology

pytestmark = pytest.mark.lab

FAST = Constant(50e6, 20e6, rtt_ms=10)
ENDS = Path(__file__).resolve().parents[1] / "support/mptcp_ends.py"
TCP = 6


def two(**more) -> TopologySpec:
    return TopologySpec(commuting({"a": FAST, "b": FAST}), **more)


def steer(topology: Topology) -> None:
    """Each source address leaves by its own interface, as the probe arranges it."""
    for number, access in enumerate(topology.spec.accesses):
        topology.run("probe", ["ip", "rule", "add", "from", str(access.address.ip), "table", str(100 + number)])
        route = ["default", "via", str(access.gateway), "dev", access.interface, "table", str(100 + number)]
        topology.run("probe", ["ip", "route", "add", *route])


def peer_seen(topology: Topology, source: str, server: str = "203.0.113.10") -> str:
    """Receive a little over TCP from ``source``; the address that the server saw."""
    send = topology.command("server", [sys.executable, ENDS, "send", server, "5000", "0.2"])
    with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == "ready\n"
        receive = ["receive", server, "5000", "0.5", str(TCP), source]
        assert json.loads(topology.run("probe", [sys.executable, str(ENDS), *receive]))["bytes"] > 0
        return json.loads(sender.stdout.readline())["peer"]


def marked(mark: str) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            environment = (folder / "environ").read_bytes()
        except OSError:
            continue  # it ended while we looked
        if mark.encode() in environment:
            found.append(int(folder.name))
    return found


def test_both_paths_reach_the_server_by_name_and_through_their_own_nat(tmp_path):
    with Topology(two(servers=2)) as topology:
        assert topology.names == ("probe", "internet", "server", "op-a", "op-b")
        assert topology.run("probe", ["getent", "hosts", "server.tandem.test"]).split()[0] == "203.0.113.10"
        assert topology.run("probe", ["getent", "hosts", "server-2.tandem.test"]).split()[0] == "203.0.113.11"
        with pytest.raises(MachineError):
            topology.run("probe", ["getent", "hosts", "example.org"])
        steer(topology)
        for access in topology.spec.accesses:
            assert peer_seen(topology, str(access.address.ip)) == str(access.public_address)
        assert peer_seen(topology, "10.64.1.2", "203.0.113.11") == "198.51.100.6"
        # A program sees its namespace in /sys, and keeps its folder and its process id.
        script = "import os; print(os.getpid(), os.getcwd(), *sorted(os.listdir('/sys/class/net')))"
        argv = topology.command("probe", [sys.executable, "-c", script], tmp_path)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as program:
            assert program.stdout is not None
            assert program.stdout.read().split() == [str(program.pid), str(tmp_path), "lo", "wwan0", "wwan1"]
        # Names resolve when the first operator is dark.
        topology.links["a"].set("both", "outage", "on")
        assert topology.run("probe", ["getent", "ahostsv4", "server.tandem.test"]).split()[0] == "203.0.113.10"


def test_a_wifi_and_a_wired_path_beside_the_operators():
    accesses = commuting({"a": FAST}, wifi_offer=FAST, wired_offer=FAST)
    with Topology(TopologySpec(accesses)) as topology:
        metrics = [line.split()[-1] for line in topology.run("probe", ["ip", "route", "show", "default"]).splitlines()]
        assert metrics == ["102", "601", "700"]
        steer(topology)
        for access in accesses:
            assert peer_seen(topology, str(access.address.ip)) == str(access.public_address)


def test_links_started_later_begin_when_told():
    with Topology(two(links_later=True)) as topology:
        assert "wwan0" not in topology.run("probe", ["ls", "/sys/class/net"])
        topology.start_links()
        steer(topology)
        assert peer_seen(topology, "10.64.1.2") == "198.51.100.6"


def test_two_benches_side_by_side():
    with Topology(two()) as one, Topology(two()) as other:
        steer(one)
        steer(other)
        one.links["a"].set("both", "outage", "on")
        assert peer_seen(other, "10.64.0.2") == "198.51.100.2"
        assert peer_seen(one, "10.64.1.2") == "198.51.100.6"


def test_nothing_changes_on_the_host_and_nothing_is_left(monkeypatch):
    mark = str(uuid.uuid4())
    monkeypatch.setenv("TANDEM_TEST_MARK", mark)

    def host():
        links = subprocess.run(["ip", "-br", "link"], capture_output=True, text=True, check=True).stdout
        mounts = Path("/proc/self/mountinfo").read_text()
        return links, mounts, Path("/etc/netns").exists(), Path("/run/netns").exists()

    before = host()
    with Topology(two()):
        assert len(marked(mark)) >= 9  # five keepers, two links, two resolvers
        assert host() == before
    await_true(lambda: not marked(mark), 60, "nothing of it is left")
    assert host() == before


def test_a_failure_half_way_takes_everything_down(monkeypatch, tmp_path):
    mark = str(uuid.uuid4())
    monkeypatch.setenv("TANDEM_TEST_MARK", mark)
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"format":"tandem-timeline/1"}\n{"t_s":0}\n')
    with (
        pytest.raises(LinkError, match=r"broken.jsonl:2: rtt_ms is missing"),
        Topology(TopologySpec(commuting({"a": FAST, "b": Played(broken)}))),
    ):
        pytest.fail("it came up")
    await_true(lambda: not marked(mark), 60, "nothing of it is left")


@pytest.mark.parametrize(("source", "status"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137), ("pass", 0)])
def test_the_exit_status_is_passed_on(source, status):
    whole = f"import os, sys\nfrom tandem_bench.topology import private\nprivate.enter()\n{source}\n"
    assert subprocess.run([sys.executable, "-c", whole], check=False, timeout=60).returncode == status


def test_inside_there_is_a_proc_of_its_own_and_mounts_stay_inside(tmp_path):
    source = (
        "import os, subprocess\nfrom tandem_bench.topology import private\nprivate.enter()\n"
        f"subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', {str(tmp_path)!r}], check=True)\n"
        "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()), os.getpid(), os.listdir('/sys/class') and 'sys')"
    )
    told = subprocess.run([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert told.stdout == "[1, 2] 2 sys\n"
    assert str(tmp_path) not in Path("/proc/self/mountinfo").read_text()
