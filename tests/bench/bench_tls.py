"""What TLS costs both ends of a download: CPU for a gigabyte, with TLS against without, over the loopback of a namespace.

    ./kit run python tests/bench/bench_tls.py [--mb 500] [--repeats 3] [--json]

Root. Medians of ``--repeats`` rounds, in each of which everything runs once: TCP and Multipath TCP, the collector's
download from the real endpoint. Prints a table, or an object.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces and its endpoint

from lone_endpoint import MEASUREMENT_TLS_PORT, lone_endpoint
from processes import cpu_s
from run_download import Run
from two_paths import SERVER, Space


def endpoint_cpu_s(space: Space) -> float:
    """Of all the endpoint's processes in ``space`` so far."""
    inside = os.stat(f"/proc/{space.pid}/ns/net").st_ino  # noqa: PTH116  a namespace is no path of ours
    total = 0.0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            command = (entry / "cmdline").read_bytes()
            if b"tandem_server" in command and (entry / "ns/net").stat().st_ino == inside:
                total += cpu_s(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended meanwhile
    return total


def measure(space: Space, server: dict[str, Any], kind: str, size: int) -> dict[str, float]:
    """One download; CPU seconds for a gigabyte at both ends, and the handshake."""
    before = endpoint_cpu_s(space)
    parameters = {
        "run": "bench",
        "kind": kind,
        "path": "a",
        "paths": [{"name": "a", "interface": "lo"}],
        "bytes": size,
        "server": server,
    }
    line = Run(parameters, space.enter).end(300)
    if line["failure"] is not None:
        raise SystemExit(str(line["failure"]))
    gigabytes = size / 1e9
    return {
        "gbit_per_s": line["result"]["goodput_bit_per_s"] / 1e9,
        "probe_s_per_gb": line["environment"]["cpu_seconds"] / gigabytes,
        "endpoint_s_per_gb": (endpoint_cpu_s(space) - before) / gigabytes,
        "tls_ms": line["result"]["tls_ms"] or 0.0,
    }


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=500, help="of each download, at most 2000")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    space = Space()
    found: dict[tuple[str, bool], list[dict[str, float]]] = defaultdict(list)
    try:
        space.run(f"ip addr add {SERVER}/32 dev lo; ip link set lo up")
        with tempfile.TemporaryDirectory() as folder, lone_endpoint(space, SERVER, Path(folder)) as plain:
            secure = {**plain, "measurement": f"https://{SERVER}:{MEASUREMENT_TLS_PORT}"}
            for _ in range(args.repeats):
                for kind in ("tcp", "mptcp"):
                    for server in (plain, secure):
                        found[kind, server is secure].append(measure(space, server, kind, args.mb * 1_000_000))
    finally:
        space.close()
    rows = []
    for kind in ("tcp", "mptcp"):
        clear, tls = (
            {key: statistics.median(one[key] for one in found[kind, which]) for key in found[kind, which][0]}
            for which in (False, True)
        )
        ratios = {f"{key}_ratio": round(tls[key] / clear[key], 2) for key in clear if key != "tls_ms"}
        rounded = {name: {k: round(v, 3) for k, v in one.items()} for name, one in (("plain", clear), ("tls", tls))}
        rows.append({"kind": kind, **rounded, **ratios})
    if args.json:
        print(json.dumps(rows))
        return 0
    print(f"{'':8}{'Gbit/s':>16}{'probe, s a GB':>20}{'endpoint, s a GB':>20}{'TLS, ms':>10}")
    for row in rows:
        cells = [
            f"{row['plain'][key]:.2f} → {row['tls'][key]:.2f} (×{row[f'{key}_ratio']})"
            for key in ("gbit_per_s", "probe_s_per_gb", "endpoint_s_per_gb")
        ]
        print(f"{row['kind']:8}" + "".join(f"{cell:>22}" for cell in cells) + f"{row['tls']['tls_ms']:>10.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
