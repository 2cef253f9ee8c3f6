"""What Multipath TCP gets of what two links offer together, beside TCP over the first alone: ``bench_aggregation.py [--seconds S]`` (root).

The topology's README has the figures: slow start costs about 0.3 s of capacity, and headers 5 %."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tandem_bench.link.emulator import Constant
from tandem_bench.topology.spec import TopologySpec, commuting
from tandem_bench.topology.topology import Topology

ENDS = Path(__file__).resolve().parents[1] / "lab/mptcp_ends.py"
SERVER = "203.0.113.10"
TCP, MPTCP = 6, 262
DOWN = {"a": 45e6, "b": 35e6}


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


def measure(folder: Path, seconds: float) -> tuple[float, float]:
    """Bit/s of TCP over the first link, and of Multipath TCP over both."""
    offers = {"a": Constant(DOWN["a"], 10e6, rtt_ms=30), "b": Constant(DOWN["b"], 10e6, rtt_ms=40)}
    with Topology(TopologySpec(commuting(offers), log_folder=folder)) as topology:
        for number, access in enumerate(topology.spec.accesses, 1):
            source, table = str(access.address.ip), str(100 + number)
            route = ["default", "via", str(access.gateway), "dev", access.interface, "table", table]
            topology.run("probe", ["ip", "rule", "add", "from", source, "table", table])
            topology.run("probe", ["ip", "route", "add", *route])
            endpoint = [source, "dev", access.interface, "id", str(number), "subflow"]
            topology.run("probe", ["ip", "mptcp", "endpoint", "add", *endpoint])
        single = download(topology, 3, TCP, "10.64.0.2", 5000)
        while not queues_empty(folder):
            time.sleep(0.1)
        both = download(topology, seconds, MPTCP, "-", 5001)
    return single["bytes"] * 8 / 3, both["bytes"] * 8 / seconds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=12.0, help="of Multipath TCP [12]")
    with tempfile.TemporaryDirectory() as folder:
        alone, together = measure(Path(folder), parser.parse_args().seconds)
    offered = sum(DOWN.values())
    print(f"TCP over a: {alone / 1e6:.1f} of {DOWN['a'] / 1e6:.0f} Mbit/s ({alone / DOWN['a']:.2f})")
    print(f"Multipath TCP over both: {together / 1e6:.1f} of {offered / 1e6:.0f} Mbit/s ({together / offered:.2f})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
