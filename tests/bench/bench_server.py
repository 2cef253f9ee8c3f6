"""What the server does on this machine: lines checked a second, download rates over loopback, the endpoint's CPU share.

    ./kit run python tests/bench/bench_server.py

It starts a whole server in a temporary folder and prints JSON. What the gateway takes: ``bench_gateway.py``.
"""

import json
import random
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "unit/ingest"))

import gateway_batches
from processes import cpu_s, rss_mib, tree
from serve_on_loopback import Server, await_ready, end, lay_out, start

from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem_server.ingest.lines import TimeWindow, sift

LIMITS = "[limits]\nsession_bytes = 10_000_000_000_000\nprobe_bytes_per_day = 100_000_000_000_000\n"


class Bench:
    """A running server and requests to it."""

    def __init__(self, folder):
        ports = lay_out(folder)
        settings = folder / "server.toml"
        settings.write_text(settings.read_text().replace("[limits]\n", LIMITS))
        self.process = start(folder)
        await_ready(self.process, "endpoint")
        self.server = Server(folder, *ports, self.process, (folder / "token").read_text().strip())
        roles = ("database", "gateway", "endpoint")
        self.pids = dict(zip(roles, tree(self.process.pid)[1:4], strict=True))

    def control(self, method, path, body=None):
        return self.server.https(self.server.control_port, method, path, body)[2]

    def download(self, kind, seconds, rate, out):
        """Bits a second of one download, limited to ``rate`` by reading slowly."""
        ask = json.dumps({"run": "run-1", "kind": kind, "path": "a", "seconds": seconds})
        session = self.control("POST", "/v1/sessions", ask)["session"]
        protocol = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        buffer, total = bytearray(1 << 20), 0
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as client:
            client.connect(("127.0.0.1", self.server.measurement_port))
            head = f"GET /v1/download?seconds={seconds} HTTP/1.1\r\nHost: x\r\nX-Tandem-Session: {session}\r\n\r\n"
            client.sendall(head.encode())
            started = time.monotonic()
            while (count := client.recv_into(buffer)) and time.monotonic() - started < seconds:
                total += count
                if rate:
                    time.sleep(max(0.0, total * 8 / rate - (time.monotonic() - started)))
            elapsed = time.monotonic() - started
        self.control("DELETE", f"/v1/sessions/{session}")
        out.append(total * 8 / elapsed)

    def downloads(self, kinds, seconds, rate=None):
        out = []
        threads = [threading.Thread(target=self.download, args=(kind, seconds, rate, out)) for kind in kinds]
        pids = tree(self.pids["endpoint"])
        before, started = sum(map(cpu_s, pids)), time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        share = (sum(map(cpu_s, pids)) - before) / (time.monotonic() - started)
        return {"gbit_per_s": [round(r / 1e9, 3) for r in out], "endpoint_cpu_share": round(share, 3)}

    def resident(self):
        return {name: round(rss_mib(tree(pid))) for name, pid in self.pids.items()}


def checked():
    """Lines a second and core, as the exporter spells them."""
    made, now = gateway_batches.template(random.Random(1), "probe-1", "boot-1", "run-1"), time.time_ns()
    body = made % gateway_batches.numbers(1, now // 1000, now)
    window, rounds = TimeWindow.at(now, 600.0, None), 500
    started = time.process_time()
    for _ in range(rounds):
        sift(body, "probe-1", window)
    return round(rounds * len(body.splitlines()) / (time.process_time() - started))


def main():
    results = {"check_lines_per_s": checked()}
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        try:
            results["idle_rss_mib"] = bench.resident()
            for label, kinds, rate in (
                ("tcp", ["tcp"], None),
                ("mptcp", ["mptcp"], None),
                ("four_at_once", ["mptcp", "tcp", "tcp", "mptcp"], None),
                ("mptcp_100_mbit_per_s", ["mptcp"], 100e6),
                ("four_at_once_25_mbit_per_s", ["mptcp", "tcp", "tcp", "mptcp"], 25e6),
            ):
                results[label] = bench.downloads(kinds, 3, rate)
            results["rss_mib_after"] = bench.resident()
        finally:
            end(bench.process)
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
