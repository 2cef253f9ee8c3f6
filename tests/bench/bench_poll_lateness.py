"""How late polls begin while both links are full, against how late they begin while nothing is measured.

Rehearses a commute (root; takes a minute more; --folder: look at one that was kept with --keep), reads each poll's lateness from its
database, and parts them by whether an MPTCP run was under way, which fills both links. Prints a table or, with --json, an object; ratio:
p99 full over p99 idle.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import benching
import numpy as np
from benching import say

from tandem_server.store import PrivateInflux, find_influxd

LATE_MS = 100.0


def rehearse(seconds: float) -> Path:
    """A kept rehearsal of ``seconds``, which says on stderr how far it is."""
    folder = Path(tempfile.mkdtemp(prefix="poll-lateness-")) / "out"
    command = [sys.executable, "-m", "tandem_bench", "demo", "--duration", str(seconds), "--keep", "--out", str(folder)]
    # 1: a score of detection is below its floor, or something is missing; there are polls all the same.
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode not in (0, 1):
        sys.exit("bench_poll_lateness: the rehearsal failed (above)")
    say(f"kept for --folder: {folder}")
    return folder


def polls(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """When each poll began (CLOCK_MONOTONIC, ns) and how late that was (ms)."""
    with PrivateInflux(find_influxd(), folder / "server" / "influxdb", 0) as private, private.client() as influx:
        rows = [
            (int(begun), float(late))
            for series in influx.query("SELECT monotonic_ns, poll_late_ms FROM radio")
            for _, begun, late in series.rows
        ]
    table = np.array(rows, dtype=np.float64)
    return table[:, 0], table[:, 1]


def within_runs(folder: Path, begun_ns: np.ndarray, kinds: tuple[str, ...]) -> np.ndarray:
    """Which polls began while a run of one of ``kinds`` was under way."""
    inside = np.zeros(len(begun_ns), dtype=bool)
    for file in folder.glob("probe/*/runs/*.json"):
        run = json.loads(file.read_text())
        if run["kind"] in kinds:
            inside |= (begun_ns >= run["started_monotonic_ns"]) & (begun_ns <= run["ended_monotonic_ns"])
    return inside


def figures(late_ms: np.ndarray) -> dict[str, float | int]:
    """Count, percentiles and how many began more than 100 ms late."""
    p50, p99 = np.percentile(late_ms, [50, 99])
    told = {f"{name}_ms": round(float(ms), 3) for name, ms in (("p50", p50), ("p99", p99), ("max", late_ms.max()))}
    return {"polls": len(late_ms), **told, "late": int((late_ms > LATE_MS).sum())}


def main() -> int:
    parser = benching.parser(__doc__)
    parser.add_argument("--seconds", type=float, default=180.0, help="of the commute (default 180)")
    parser.add_argument("--folder", type=Path, help="a rehearsal made with --keep, instead of a new one")
    args = parser.parse_args()
    folder = args.folder or rehearse(args.seconds)
    begun_ns, late_ms = polls(folder)
    full = within_runs(folder, begun_ns, ("mptcp",))
    idle = ~within_runs(folder, begun_ns, ("mptcp", "tcp"))
    if not full.any() or not idle.any():
        sys.exit("no poll fell into an MPTCP run, or none outside of runs: give more --seconds")
    result = {"both_links_full": figures(late_ms[full]), "nothing_measured": figures(late_ms[idle])}
    ratio = round(result["both_links_full"]["p99_ms"] / max(result["nothing_measured"]["p99_ms"], 1e-3), 2)
    if args.json:
        print(json.dumps({**result, "ratio_p99": ratio}))
        return 0
    for name, row in result.items():
        print(f"{name:<18}" + "  ".join(f"{key} {value}" for key, value in row.items()))
    print(f"p99, full over idle: {ratio}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
