"""The endpoint against iperf3 and curl over the same two emulated links, and with many sessions at once.

    ./kit run python tests/bench/bench_endpoint.py [--seconds 10] [--mbit 50 50] [--repeats 3] [--sessions 200]

Root; namespaces of its own. Goodput: the collector's download from the endpoint against ``iperf3 -R``. CPU: the collector's download
process against curl that fetches the same from the endpoint, both with their whole life. TCP over path a, Multipath TCP over both. Medians
of ``--repeats`` rounds, in each of which everything runs once. The sessions are over the server's loopback. Prints a table of figures and
ratios, and what became of the sessions. By default it takes about five minutes.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import selectors
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from benching import Row, cpu_s, say, table, tree

from support.emulated_links import radio_pair
from support.experiment_process import Run, parameters
from support.two_paths import PATHS, SERVER, Space, await_true
from tandem.experiment.control import Session
from tandem.mptcp import sysctls
from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem_server.store import find_influxd

CONFIG = """
[listen]
host = "0.0.0.0"
[store]
binary = "{binary}"
[limits]
session_bytes = 10_000_000_000_000
probe_bytes_per_day = 100_000_000_000_000
sessions_per_probe = 1000
connections = 1000
connections_per_address = 1000
connections_per_probe = 1000
https_strangers = 1000
https_strangers_per_address = 1000
https_connections_per_probe = 1000
new_connections_per_address = 1_000_000
probe_requests_per_minute = 1_000_000
"""
CONTROL, MEASUREMENT, IPERF = 8444, 8480, 5301
PROGRAM = [sys.executable, "-m", "tandem_server"]
RTT_MS = {"a": 40, "b": 60}


def two_links(mbit: Sequence[float], stack: ExitStack) -> tuple[Space, Space]:
    """Probe and server with a link each for paths a and b, a quarter of its rate up, with a second's worth of queue."""
    rates = dict(zip("ab", (rate * 1e6 for rate in mbit), strict=True))
    pair = stack.enter_context(radio_pair(rates, RTT_MS, queue_ms=1000))
    for name, rate in rates.items():
        pair.tell(name, f"up rate {int(rate / 4)}")
    buffers = {"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 131072 33554432"}
    for space in (pair.probe, pair.server):
        space.inside(lambda: sysctls.apply(buffers))
    return pair.probe, pair.server


def serve(space: Space, folder: Path, stack: ExitStack) -> subprocess.Popen[str]:
    (folder / "server.toml").write_text(CONFIG.format(binary=find_influxd()))
    config = ["--config", str(folder / "server.toml")]
    tls = ["tls", "--folder", str(folder / "tls"), "--name", "x", "--address", SERVER, "--address", "127.0.0.1"]
    subprocess.run([*PROGRAM, *tls], check=True)
    subprocess.run([*PROGRAM, "probe", "add", "probe-1", *config, "--token-file", str(folder / "token")], check=True)
    with (folder / "serve.log").open("w") as log:
        process = subprocess.Popen(
            [*space.enter, *PROGRAM, "serve", *config], stdout=subprocess.PIPE, stderr=log, text=True, cwd=folder
        )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith("ready endpoint"):
            return process
    raise SystemExit((folder / "serve.log").read_text())


def spent(command: list[str]) -> tuple[str, float, float]:
    """Output, wall s and CPU s of a command."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    wall, after = time.monotonic() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return out, wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def ours(probe: Space, folder: Path, kind: str, seconds: float) -> dict[str, float]:
    server = {"control": f"https://{SERVER}:{CONTROL}", "measurement": f"http://{SERVER}:{MEASUREMENT}"}
    server |= {"token_file": str(folder / "token"), "ca_file": str(folder / "tls/ca.pem")}
    paths = PATHS if kind == "mptcp" else PATHS[:1]
    asked = parameters(server, paths, run=f"bench-{kind}", kind=kind, path="a", seconds=seconds)
    line = Run("download", asked, probe.enter).end(seconds + 60)
    cpu_s, result = line["environment"]["cpu_seconds"], line["result"]
    return {"bit_per_s": result["goodput_bit_per_s"], "cpu_s": cpu_s, "bytes": result["bytes"]}


def iperf(probe: Space, server: Space, before: list[str], seconds: float) -> dict[str, float]:
    command = [*server.enter, *before, "iperf3", "-s", "-1", "-p", str(IPERF)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as listening:
        await_true(lambda: f":{IPERF}" in server.run("ss -Htln"), 5, "iperf3 listening")
        asked = ["iperf3", "-c", SERVER, "-p", str(IPERF), "-B", "10.71.1.1", "-R", "-J", "-t", str(seconds)]
        out, _, cpu = spent([*probe.enter, *before, *asked])
        listening.wait(10)
    received = json.loads(out)["end"]["sum_received"]
    return {"bit_per_s": received["bits_per_second"], "cpu_s": cpu, "bytes": received["bytes"]}


def curl(probe: Space, folder: Path, before: list[str], kind: str, seconds: float) -> dict[str, float]:
    """One download from the endpoint by curl; its session is opened beside it."""

    def ask(*words: Any) -> dict[str, Any]:
        control = Control(folder, SERVER)
        try:
            return control.ask(*words)
        finally:
            control.close()

    body = {"run": "bench-curl", "kind": kind, "path": "a", "seconds": seconds}
    told = probe.inside(lambda: ask("POST", "/v1/sessions", body))
    target = f"/v1/download?seconds={seconds}"
    session = Session(told["session"], bytes.fromhex(told["key"]), "a")
    fetch = ["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", "--interface", "10.71.1.1"]
    head = ["-H", f"X-Tandem-Session: {session.claim(target)}"]
    out, wall, cpu = spent([*probe.enter, *before, *fetch, *head, f"http://{SERVER}:{MEASUREMENT}{target}"])
    probe.inside(lambda: ask("DELETE", f"/v1/sessions/{session.id}"))
    return {"bit_per_s": int(out) * 8 / wall, "cpu_s": cpu, "bytes": int(out)}


class Control:
    """The control channel over one kept connection, for one thread."""

    def __init__(self, folder: Path, host: str = "127.0.0.1") -> None:
        context = ssl.create_default_context(cafile=folder / "tls/ca.pem")
        self._connection = http.client.HTTPSConnection(host, CONTROL, context=context)
        self._login = {"Authorization": f"Bearer {(folder / 'token').read_text().strip()}"}

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        self._connection.request(method, path, None if body is None else json.dumps(body), self._login)
        answer = self._connection.getresponse()
        told: dict[str, Any] = json.loads(answer.read())
        if answer.status not in (200, 201):
            raise SystemExit(f"{method} {path}: {answer.status} {told}")
        return told

    def close(self) -> None:
        self._connection.close()


_SHIM = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/socket.h>
#include <netinet/in.h>
int socket(int family, int type, int protocol) {
    int (*real)(int, int, int) = dlsym(RTLD_NEXT, "socket");
    int stream = (type & 0xf) == SOCK_STREAM && (family == AF_INET || family == AF_INET6);
    return real(family, type, stream && (protocol == 0 || protocol == IPPROTO_TCP) ? 262 : protocol);
}
"""


def as_multipath(folder: Path) -> list[str] | None:
    """What to put before a command, so that a program that knows only TCP opens Multipath TCP sockets; None where there is neither
    ``mptcpize`` nor a C compiler."""
    if shutil.which("mptcpize"):
        return ["mptcpize", "run"]
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    library = folder / "as_multipath.so"
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), "-x", "c", "-", "-ldl"]
    subprocess.run(command, input=_SHIM, text=True, check=True)
    return ["env", f"LD_PRELOAD={library}"]


PROGRAMS = ("ours", "iperf3", "curl")


def compare(probe: Space, server: Space, folder: Path, args: Namespace) -> list[Row]:
    """A row for TCP and one for Multipath TCP."""
    shim = as_multipath(folder)
    rows: list[Row] = []
    for kind, before in (("tcp", []), ("mptcp", shim)):
        rounds: dict[str, list[dict[str, float]]] = {name: [] for name in PROGRAMS}
        for number in range(args.repeats):
            say(f"{kind}, round {number + 1} of {args.repeats}")
            rounds["ours"].append(ours(probe, folder, kind, args.seconds))
            if before is not None:
                rounds["iperf3"].append(iperf(probe, server, before, args.seconds))
                rounds["curl"].append(curl(probe, folder, before, kind, args.seconds))
        rate = {name: statistics.median(r["bit_per_s"] for r in each) for name, each in rounds.items() if each}
        # Per byte carried: a program that got more has more to do.
        cost = {name: statistics.median(r["cpu_s"] / r["bytes"] for r in each) for name, each in rounds.items() if each}
        row: Row = {"kind": kind}
        row |= {f"{name}_mbit_per_s": round(value / 1e6, 2) for name, value in rate.items()}
        row |= {f"{name}_cpu_s_per_gb": round(value * 1e9, 2) for name, value in cost.items()}
        row["goodput_to_iperf3"] = round(rate["ours"] / rate["iperf3"], 3) if "iperf3" in rate else None
        row["cpu_to_curl"] = round(cost["ours"] / cost["curl"], 2) if "curl" in cost else None
        rows.append(row)
    return rows


# --- many sessions at once against a whole server, over its loopback: all downloads at full rate, then all at 1 Mbit/s


FULL_BYTES = 2_000_000
PACED_BIT_PER_S = 1e6
PACED_S = 10.0
_BLOCK = 65536


class Reader:
    """One client: reads at most ``bit_per_s`` when told."""

    def __init__(self, kind: str, session: Session, query: str, bit_per_s: float | None) -> None:
        protocol = IPPROTO_MPTCP if kind == "mptcp" else socket.IPPROTO_TCP
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
        if bit_per_s is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32_768)
        self.socket.connect(("127.0.0.1", MEASUREMENT))
        target = f"/v1/download?{query}"
        head = f"Host: x\r\nX-Tandem-Session: {session.claim(target)}"
        self.socket.sendall(f"GET {target} HTTP/1.1\r\n{head}\r\n\r\n".encode())
        self.socket.setblocking(False)
        self.bytes, self.started_s, self.ended_s = 0, time.monotonic(), 0.0
        self.first_s: float | None = None
        self._bit_per_s = bit_per_s

    def may_read(self, now_s: float) -> bool:
        return self._bit_per_s is None or self.bytes * 8 < self._bit_per_s * (now_s - self.started_s)


def family(pid: int) -> dict[str, list[int]]:
    """The endpoint's first process and its others, below the process ``pid`` that runs the whole server."""
    for child in tree(pid)[1:]:
        if b"endpoint" in Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0"):
            return {"first": [child], "others": tree(child)[1:]}
    raise SystemExit("no endpoint there")


def fetch(folder: Path, count: int, query: str, bit_per_s: float | None, stop_s: float | None) -> dict[str, Any]:
    """``count`` sessions, half of them Multipath TCP, opened over eight control connections, then all read at once."""
    kinds = ["mptcp" if i % 2 else "tcp" for i in range(count)]
    sessions: dict[int, Session] = {}
    ended: list[dict[str, Any]] = [{}] * count
    name, _, value = query.partition("=")
    asked = {name: float(value) if name == "seconds" else int(value)}

    def over_eight(work: Callable[[Control, int], None]) -> float:
        def some(first: int) -> None:
            control = Control(folder)
            for i in range(first, count, 8):
                work(control, i)
            control.close()

        begun = time.monotonic()
        with ThreadPoolExecutor(8) as eight:
            list(eight.map(some, range(8)))
        return time.monotonic() - begun

    def begin(control: Control, i: int) -> None:
        body = {"run": f"many-{i}", "kind": kinds[i], "path": "a", **asked}
        told = control.ask("POST", "/v1/sessions", body)
        sessions[i] = Session(told["session"], bytes.fromhex(told["key"]), "a")

    def finish(control: Control, i: int) -> None:
        ended[i] = control.ask("DELETE", f"/v1/sessions/{sessions[i].id}")

    opening_s = over_eight(begin)
    begun = time.monotonic()
    readers = [Reader(kind, sessions[i], query, bit_per_s) for i, kind in enumerate(kinds)]
    alive, most = set(readers), 0
    buffer = bytearray(_BLOCK)
    with selectors.DefaultSelector() as selector:
        for reader in readers:
            selector.register(reader.socket, selectors.EVENT_READ, reader)
        while alive:
            now_s = time.monotonic()
            if stop_s is not None:
                # Each by its own clock from its own first byte, as the probe's downloads end. By one clock for all, those whose turn
                # came late on a busy machine would close before the endpoint's time for them is over, and be told as gone.
                for reader in [r for r in alive if r.first_s is not None and now_s - r.first_s > stop_s]:
                    selector.unregister(reader.socket)
                    reader.socket.close()
                    alive.discard(reader)
            idle = True
            for key, _ in selector.select(1.0):
                reader = key.data
                if not reader.may_read(now_s):
                    continue
                idle = False
                count_read = reader.socket.recv_into(buffer)
                reader.bytes += count_read
                reader.first_s = reader.first_s or now_s
                if not count_read:
                    reader.ended_s = time.monotonic()
                    selector.unregister(reader.socket)
                    alive.discard(reader)
            most = max(most, len(alive))
            if idle:
                time.sleep(0.005)
    wall = time.monotonic() - begun
    for reader in readers:
        reader.socket.close()
    closing_s = over_eight(finish)
    connections = [c for one in ended for c in one["connections"]]
    took = [r.ended_s - r.started_s for r in readers if r.ended_s]
    return {
        "opened_a_second": round(count / opening_s, 1),
        "closed_a_second": round(count / closing_s, 1),
        "at_once": most,
        "ended": {end: sum(c["end"] == end for c in connections) for end in {c["end"] for c in connections}},
        "goodput_mbit_per_s": round(sum(r.bytes for r in readers) * 8 / wall / 1e6, 1),
        "bytes": sum(r.bytes for r in readers),
        "wall_s": round(wall, 2),
        "took_s": [round(f(took), 2) for f in (min, statistics.median, max)] if took else None,
    }


def many_sessions(server: Space, folder: Path, supervisor: int, count: int) -> dict[str, Any]:
    """Figures of both rounds, with the endpoint's CPU shares (1 is one core)."""
    figures = {}
    paced = (f"seconds={PACED_S}", PACED_BIT_PER_S, PACED_S)
    for label, asked in (("full_rate", (f"bytes={FULL_BYTES}", None, None)), ("paced", paced)):
        say(f"{count} sessions, {label}")
        pids = family(supervisor)
        before = {what: sum(map(cpu_s, each)) for what, each in pids.items()}
        begun = time.monotonic()
        figure = server.inside(lambda asked=asked: fetch(folder, count, *asked))
        spent = time.monotonic() - begun
        used = {what: sum(map(cpu_s, each)) - before[what] for what, each in pids.items()}
        figures[label] = figure | {"cpu_share": {what: round(cpu / spent, 3) for what, cpu in used.items()}}
    return figures


def figure_of(name: str) -> Callable[[Row], Any]:
    """Where nothing plays Multipath TCP for a program it has none."""
    return lambda row: row.get(name)


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="of each transfer (default 10)")
    parser.add_argument("--mbit", type=float, nargs=2, default=[50.0, 50.0], help="capacity of the two links, Mbit/s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; 0: only the sessions (default 3)")
    parser.add_argument("--sessions", type=int, default=200, help="at once; 0: none (default 200)")
    args = parser.parse_args()
    if missing := [name for name in ("iperf3", "curl") if shutil.which(name) is None]:
        parser.error(f"{', '.join(missing)}: not installed; hint: apt install {' '.join(missing)}")
    with ExitStack() as stack:
        probe, server = two_links(args.mbit, stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        process = serve(server, folder, stack)
        rows = compare(probe, server, folder, args) if args.repeats else []
        many = many_sessions(server, folder, process.pid, args.sessions) if args.sessions else {}
    if args.json:
        print(json.dumps({"cores": len(os.sched_getaffinity(0)), "rows": rows, "sessions": many}))
        return 0
    of = [("", "", "kind")]
    for what in ("mbit_per_s", "cpu_s_per_gb"):
        heading = "Mbit/s" if what == "mbit_per_s" else "CPU s/GB"
        of += [(f"{name} {heading}", "", figure_of(f"{name}_{what}")) for name in PROGRAMS]
    of += [("goodput/iperf3", "", "goodput_to_iperf3"), ("CPU/curl", "", "cpu_to_curl")]
    table(of, rows)
    for label, figure in many.items():
        print(f"sessions, {label}: " + ", ".join(f"{name} {value}" for name, value in figure.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
