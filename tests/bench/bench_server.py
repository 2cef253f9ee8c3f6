"""What the server does on this machine: lines a second through the gateway, download rates, the endpoint's CPU share.

Run it with ``python tests/bench/bench_server.py``; it starts a whole server in a temporary folder and prints JSON. Loopback only.
"""

import gzip
import http.client
import json
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from processes import cpu_s, rss_mib, tree

from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem_server.ingest.lines import TimeWindow, sift
from tandem_server.store import find_influxd

FIELDS = (
    "goodput_bit_per_s=12345678.9,bytes_received=123456789i,bytes_sent=123i,bytes_acked=123i,bytes_retrans=0i,rtt_ms=45.123,"
    "rtt_min_ms=40,rcv_rtt_ms=55.5,cwnd_segments=10i,notsent_bytes=0i,retransmits_segments=0i,rcv_ooo_packets=12i"
)


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def batch(first, lines):
    now = time.time_ns()
    tags = "subflow,boot=b4c1d0d2,end=probe,operator=A,path=a,probe=probe-1,run=run-0123456789ab,subflow=1"
    return "\n".join(f"{tags} {FIELDS},seq={i + 1}i,monotonic_ns={i}i {now + i}" for i in range(first, first + lines))


class Bench:
    """A running server and requests to it."""

    def __init__(self, folder):
        self.folder, self.ports = folder, free_ports(4)
        (folder / "server.toml").write_text(
            f'[listen]\nhost = "127.0.0.1"\ngateway_port = {self.ports[0]}\ncontrol_port = {self.ports[1]}\n'
            f"measurement_port = {self.ports[2]}\n"
            f'[store]\nport = {self.ports[3]}\nbinary = "{find_influxd()}"\n[limits]\nsession_bytes = 10_000_000_000_000\n'
            "probe_bytes_per_day = 100_000_000_000_000\nnew_connections_per_address = 1_000_000\n"
            "probe_requests_per_minute = 1_000_000\nprobe_lines_per_minute = 1_000_000_000\n"
        )
        program = [sys.executable, "-m", "tandem_server"]
        config = ["--config", str(folder / "server.toml")]
        subprocess.run(
            [*program, "tls", "--folder", str(folder / "tls"), "--name", "x", "--address", "127.0.0.1"], check=True
        )
        added = subprocess.run(
            [*program, "probe", "add", "probe-1", *config], check=True, capture_output=True, text=True
        )
        self.token = added.stdout.strip()
        serve = [*program, "serve", *config]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for line in self.process.stdout:
            if line.startswith("ready endpoint"):
                break
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.pids = dict(zip(("database", "gateway", "endpoint"), map(int, children), strict=True))
        influxd = Path(f"/proc/{self.pids['database']}/task/{self.pids['database']}/children").read_text().split()
        self.pids["influxd"] = int(influxd[0])
        self.context = ssl.create_default_context(cafile=folder / "tls/ca.pem")

    def https(self, port):
        return http.client.HTTPSConnection("127.0.0.1", port, context=self.context)

    def control(self, method, path, body=None):
        connection = self.https(self.ports[1])
        connection.request(method, path, body, {"Authorization": f"Bearer {self.token}"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def ingest(self, batches, lines):
        bodies = [gzip.compress(batch(i * lines, lines).encode(), 1) for i in range(batches)]
        connection = self.https(self.ports[0])
        before, started = {n: cpu_s(p) for n, p in self.pids.items()}, time.monotonic()
        for body in bodies:
            headers = {"Authorization": f"Bearer {self.token}", "Content-Encoding": "gzip"}
            connection.request("POST", "/v1/records", body, headers)
            if json.loads(connection.getresponse().read())["accepted"] != lines:
                raise SystemExit("lines were rejected")
        elapsed = time.monotonic() - started
        connection.close()
        used = {n: round((cpu_s(p) - before[n]) / elapsed, 3) for n, p in self.pids.items()}
        return {"lines_per_s": round(batches * lines / elapsed), "cpu_share": used}

    def download(self, kind, seconds, rate, out):
        ask = json.dumps({"run": "run-1", "kind": kind, "path": "a", "seconds": seconds})
        session = self.control("POST", "/v1/sessions", ask)["session"]
        protocol = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        buffer, total = bytearray(1 << 20), 0
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as client:
            client.connect(("127.0.0.1", self.ports[2]))
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

    def stop(self):
        self.process.terminate()
        self.process.stdout.close()
        self.process.wait()


def main():
    body, window = batch(0, 10_000), TimeWindow.at(time.time_ns(), 600.0, None)
    started = time.process_time()
    sift(body, "probe-1", window)
    results = {"check_lines_per_s": round(10_000 / (time.process_time() - started))}
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name))
        try:
            results["idle_rss_mib"] = {n: round(rss_mib([p])) for n, p in bench.pids.items()}
            results["ingest"] = bench.ingest(100, 1000)
            for label, kinds, rate in (
                ("tcp", ["tcp"], None),
                ("mptcp", ["mptcp"], None),
                ("four_at_once", ["mptcp", "tcp", "tcp", "mptcp"], None),
                ("mptcp_100_mbit_per_s", ["mptcp"], 100e6),
                ("four_at_once_25_mbit_per_s", ["mptcp", "tcp", "tcp", "mptcp"], 25e6),
            ):
                results[label] = bench.downloads(kinds, 3, rate)
            results["rss_mib_after"] = {n: round(rss_mib([p])) for n, p in bench.pids.items()}
        finally:
            bench.stop()
    print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
