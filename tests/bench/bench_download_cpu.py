"""What a download and its captures cost: CPU of the experiment, of tcpdump and of our writer, over two emulated radio links.

    PYTHONPATH=collector/src python tests/bench/bench_download_cpu.py --link PATH/TO/tandem-link [--seconds 10] [--mbit 50 50]

Root; namespaces of its own. Prints one JSON object a variant: MPTCP and TCP, with and without pauses between reads, and captures.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces and its endpoint

from download_server import Behaviour, Endpoint
from processes import cpu_s
from run_download import Run
from two_paths import SERVER, Space, await_true

from tandem.capture import Budget, Capture, stop_all
from tandem.mptcp import sysctls
from tandem.mptcp.paths import Path as ProbePath
from tandem.mptcp.paths import Paths

RTT_MS = {"a": 40, "b": 60}


def link(binary: str, probe: Space, server: Space, name: str, number: int, mbit: float) -> subprocess.Popen[str]:
    """One link of ``mbit`` Mbit/s down, a quarter of it up, with a second's worth of buffer."""
    rate = str(int(mbit * 1e6))
    ends = ["--a-netns", f"/proc/{probe.pid}/ns/net", "--a-name", f"tmp5-{name}"]
    ends += ["--b-netns", f"/proc/{server.pid}/ns/net", "--b-name", f"tmp5-{name}s"]
    capacity = ["--down-bit-per-s", rate, "--up-bit-per-s", str(int(mbit * 1e6 / 4)), "--rtt-ms", str(RTT_MS[name])]
    command = [binary, *ends, *capacity, "--buffer-down-bytes", str(int(mbit * 1e6 / 8))]
    made = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert made.stdout is not None
    assert made.stdout.readline().startswith("ready")
    probe.run(f"ip addr add 10.71.{number}.1 peer 10.71.{number}.2 dev tmp5-{name}; ip link set tmp5-{name} up")
    server.run(f"ip addr add 10.71.{number}.2 peer 10.71.{number}.1 dev tmp5-{name}s; ip link set tmp5-{name}s up")
    return made


def two_links(stack: ExitStack, binary: str, mbit: Sequence[float]) -> tuple[Space, Space]:
    """Probe and server with a link each for paths a and b, both up; taken down with ``stack``."""
    probe, server = Space(), Space()
    stack.callback(server.close)
    stack.callback(probe.close)
    server.run(f"ip addr add {SERVER}/32 dev lo")
    for number, (name, rate) in enumerate(zip("ab", mbit, strict=True), start=1):
        made = link(binary, probe, server, name, number, rate)
        stack.callback(made.communicate)
        stack.callback(made.terminate)
    paths = Paths([ProbePath(n, f"tmp5-{n}") for n in "ab"])
    probe.inside(paths.apply)
    await_true(lambda: probe.inside(paths.check) is not None and len(paths.addresses) == 2, 5, "both paths up")
    buffers = {"net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 131072 33554432"}
    for space in (probe, server):
        space.inside(lambda: sysctls.apply(buffers))
    return probe, server


def run(
    probe: Space, endpoint: Endpoint, kind: str, seconds: float, folder: Path, *, pause: bool, capture: bool
) -> dict[str, object]:
    """One download; its figures."""
    parameters = {
        "run": "bench",
        "kind": kind,
        "path": "a",
        "paths": [{"name": n, "interface": f"tmp5-{n}"} for n in "ab"],
        "seconds": seconds,
        "read_pause_s": 0.004 if pause else 0.0,
        "server": {
            "control": f"http://{SERVER}:{endpoint.control_port}",
            "measurement": f"http://{SERVER}:{endpoint.measurement_port}",
            "token_file": str(folder / "token"),
        },
    }
    captures = [Capture(f"tmp5-{n}", folder / f"{n}.pcap", 128, Budget(10**9)) for n in "ab"] if capture else []
    probe.inside(lambda: [c.start() for c in captures])
    own = time.process_time()
    begun = time.monotonic()
    line = Run(parameters, probe.enter).end(seconds + 60)
    wall = time.monotonic() - begun
    dumps = sum(cpu_s(c._process.pid) for c in captures if c._process is not None)
    packets = [r.packets for r in stop_all(captures)] if captures else []
    result = line["result"]
    return {
        "kind": kind,
        "pause": pause,
        "goodput_mbit_per_s": round(result["goodput_bit_per_s"] / 1e6, 1),
        "shares": {s["path"]: round(s["share"], 2) for s in result["subflows"]},
        "receiver_rtt_ms": {s["path"]: s["rtt_ms_median"] for s in result["subflows"]},
        "join_delay_ms": [s["join_delay_ms"] for s in result["subflows"]],
        "experiment_cpu_seconds": round(line["environment"]["cpu_seconds"], 2),
        "experiment_cpu_share": round(line["environment"]["cpu_seconds"] / wall, 3),
        "tcpdump_cpu_share": round(dumps / wall, 3) if captures else None,
        "writer_cpu_share": round((time.process_time() - own) / wall, 3) if captures else None,
        "packets": packets or None,
        "receive_buffer_bytes": line["environment"]["receive_buffer_bytes"],
        "samples": line["samples"],
    }


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--link", required=True, help="the binary tandem-link")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--mbit", type=float, nargs=2, default=[50.0, 50.0], help="capacity of the two links, Mbit/s")
    args = parser.parse_args()
    with ExitStack() as stack:
        probe, server = two_links(stack, args.link, args.mbit)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (folder / "token").write_text("bench")
        endpoint = server.inside(lambda: Endpoint(Behaviour()))
        stack.callback(endpoint.close)
        for kind in ("mptcp", "tcp"):
            print(json.dumps(run(probe, endpoint, kind, args.seconds, folder, pause=True, capture=False)), flush=True)
        print(json.dumps(run(probe, endpoint, "mptcp", args.seconds, folder, pause=False, capture=False)), flush=True)
        print(json.dumps(run(probe, endpoint, "mptcp", args.seconds, folder, pause=True, capture=True)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
