"""The kit's promise: Multipath TCP over two links gets what both offer."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tandem_bench.link.emulator import Constant
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology

pytestmark = pytest.mark.lab

ENDS = Path(__file__).with_name("mptcp_ends.py")
SERVER = "203.0.113.10"
TCP, MPTCP = 6, 262
DOWN = {"a": 45e6, "b": 35e6}
SECONDS = 12  # slow start costs about 0.3 s of capacity, and headers 5 %: the README of the topology has the figures


def download(topology: Topology, seconds: float, protocol: int, source: str, port: int) -> dict:
    send = topology.command("server", [sys.executable, ENDS, "send", SERVER, str(port), str(seconds + 1)])
    with subprocess.Popen(send, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == "ready\n"
        receive = [sys.executable, str(ENDS), "receive", SERVER, str(port), str(seconds), str(protocol), source]
        got = json.loads(topology.run("probe", receive))
        sender.stdout.read()
    return got


def queues_empty(folder: Path) -> bool:
    """Whether the last row of each link's log has nothing waiting: what a run left behind would hold up the next."""
    last = {(file, row["direction"]): row for file in folder.glob("link-*.jsonl") for row in rows(file)}
    return all(row["queue_bytes"] == 0 for row in last.values())


def rows(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines(keepends=True) if line.endswith("\n")]


def test_two_links_together(tmp_path):
    offers = {"a": Constant(DOWN["a"], 10e6, rtt_ms=30), "b": Constant(DOWN["b"], 10e6, rtt_ms=40)}
    with Topology(TopologySpec(commuting(offers), log_folder=tmp_path)) as topology:
        for number, access in enumerate(topology.spec.accesses, 1):
            source, table = str(access.address.ip), str(100 + number)
            route = ["default", "via", str(access.gateway), "dev", access.interface, "table", table]
            topology.run("probe", ["ip", "rule", "add", "from", source, "table", table])
            topology.run("probe", ["ip", "route", "add", *route])
            endpoint = [source, "dev", access.interface, "id", str(number), "subflow"]
            topology.run("probe", ["ip", "mptcp", "endpoint", "add", *endpoint])
        single = download(topology, 3, TCP, "10.64.0.2", 5000)
        until = time.monotonic() + 10
        while not queues_empty(tmp_path):
            assert time.monotonic() < until
            time.sleep(0.1)
        both = download(topology, SECONDS, MPTCP, "-", 5001)
    alone = single["bytes"] * 8 / 3
    together = both["bytes"] * 8 / SECONDS
    print(
        f"TCP over a {alone / 1e6:.1f} Mbit/s, Multipath TCP over both {together / 1e6:.1f} of {sum(DOWN.values()) / 1e6:.0f}"
    )
    assert both["subflows"] == 2
    assert alone <= DOWN["a"]
    assert together <= sum(DOWN.values())
    assert together >= 0.90 * sum(DOWN.values())
