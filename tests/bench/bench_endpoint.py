"""The endpoint against iperf3 and curl over the same two emulated links, and with many sessions at once.

    ./kit run python tests/bench/bench_endpoint.py [--seconds 10] [--mbit 50 50] [--repeats 3] [--sessions 200]

Root; namespaces of its own. Goodput: the collector's download from the endpoint against ``iperf3 -R``. CPU: the collector's download
process against curl that fetches the same from the endpoint, both with their whole life. TCP over path a, Multipath TCP over both. Medians
of ``--repeats`` rounds, in each of which everything runs once. The sessions are over the server's loopback. Prints a table and an object.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

from as_multipath import as_multipath
from many_sessions import many_sessions

from support.emulated_links import radio_pair
from support.experiment_process import Run, parameters
from support.two_paths import PATHS, SERVER, Space, await_true
from tandem.experiment.control import Session
from tandem.mptcp import sysctls
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
    server = {
        "control": f"https://{SERVER}:{CONTROL}",
        "measurement": f"http://{SERVER}:{MEASUREMENT}",
        "token_file": str(folder / "token"),
        "ca_file": str(folder / "tls/ca.pem"),
    }
    paths = PATHS if kind == "mptcp" else PATHS[:1]
    line = Run(
        "download", parameters(server, paths, run=f"bench-{kind}", kind=kind, path="a", seconds=seconds), probe.enter
    ).end(seconds + 60)
    result = line["result"]
    return {
        "bit_per_s": result["goodput_bit_per_s"],
        "cpu_s": line["environment"]["cpu_seconds"],
        "bytes": result["bytes"],
    }


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
    """One download from the endpoint by curl; the session is opened by curl too, and is not counted."""
    session = control(probe, folder, "POST", "", {"run": "bench-curl", "kind": kind, "path": "a", "seconds": seconds})
    target = f"/v1/download?seconds={seconds}"
    claim = Session(session["session"], bytes.fromhex(session["key"]), "a").claim(target)
    url = f"http://{SERVER}:{MEASUREMENT}{target}"
    fetch = ["curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", "--interface", "10.71.1.1"]
    out, wall, cpu = spent([*probe.enter, *before, *fetch, "-H", f"X-Tandem-Session: {claim}", url])
    control(probe, folder, "DELETE", f"/{session['session']}", None)
    return {"bit_per_s": int(out) * 8 / wall, "cpu_s": cpu, "bytes": int(out)}


def control(probe: Space, folder: Path, method: str, path: str, body: object) -> dict[str, str]:
    login = f"Authorization: Bearer {(folder / 'token').read_text().strip()}"
    command = [*probe.enter, "curl", "-sS", "--cacert", str(folder / "tls/ca.pem"), "-X", method, "-H", login]
    asked = [] if body is None else ["-d", json.dumps(body)]
    out = subprocess.run(
        [*command, *asked, f"https://{SERVER}:{CONTROL}/v1/sessions{path}"], check=True, capture_output=True, text=True
    )
    answer: dict[str, str] = json.loads(out.stdout)
    return answer


def compare(probe: Space, server: Space, folder: Path, args: argparse.Namespace) -> list[dict[str, object]]:
    """A row for TCP and one for Multipath TCP."""
    shim = as_multipath(folder)
    rows = []
    for kind, before in (("tcp", []), ("mptcp", shim)):
        rounds: dict[str, list[dict[str, float]]] = {"ours": [], "iperf3": [], "curl": []}
        for _ in range(args.repeats):
            rounds["ours"].append(ours(probe, folder, kind, args.seconds))
            if before is not None:
                rounds["iperf3"].append(iperf(probe, server, before, args.seconds))
                rounds["curl"].append(curl(probe, folder, before, kind, args.seconds))
        rate = {name: statistics.median(r["bit_per_s"] for r in each) for name, each in rounds.items() if each}
        # Per byte carried: a program that got more has more to do.
        cost = {name: statistics.median(r["cpu_s"] / r["bytes"] for r in each) for name, each in rounds.items() if each}
        rows.append(
            {
                "kind": kind,
                **{f"{name}_mbit_per_s": round(value / 1e6, 2) for name, value in rate.items()},
                **{f"{name}_cpu_s_per_gb": round(value * 1e9, 2) for name, value in cost.items()},
                "goodput_to_iperf3": round(rate["ours"] / rate["iperf3"], 3) if "iperf3" in rate else None,
                "cpu_to_curl": round(cost["ours"] / cost["curl"], 2) if "curl" in cost else None,
            }
        )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--mbit", type=float, nargs=2, default=[50.0, 50.0], help="capacity of the two links, Mbit/s")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=200)
    args = parser.parse_args()
    if missing := [name for name in ("iperf3", "curl") if shutil.which(name) is None]:
        parser.error(f"{', '.join(missing)}: not installed; hint: apt install {' '.join(missing)}")
    with ExitStack() as stack:
        probe, server = two_links(args.mbit, stack)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        process = serve(server, folder, stack)
        rows = compare(probe, server, folder, args) if args.repeats else []
        print(f"{'':8}{'goodput, Mbit/s':^30}{'CPU, s a GB':^30}{'ratios':^30}")
        print(f"{'':8}" + "".join(f"{n:>10}" for n in ("ours", "iperf3", "curl") * 2) + "   goodput/iperf3   CPU/curl")
        for row in rows:
            cells = [
                row.get(f"{n}_{what}", "-")
                for what in ("mbit_per_s", "cpu_s_per_gb")
                for n in ("ours", "iperf3", "curl")
            ]
            print(
                f"{row['kind']:8}"
                + "".join(f"{cell!s:>10}" for cell in cells)
                + f"{row['goodput_to_iperf3']!s:>17}{row['cpu_to_curl']!s:>11}"
            )
        many = many_sessions(server, folder, process.pid, args.sessions) if args.sessions else {}
        print(json.dumps({"cores": len(os.sched_getaffinity(0)), "rows": rows, "sessions": many}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
