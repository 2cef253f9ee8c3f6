"""Four subflows against two, by the size of the download: Chen's question, on links like his Wi-Fi and his LTE.

    PYTHONPATH=collector/src:server/src python tests/bench/bench_subflows.py [--repetitions 20] [--json FILE]

Root; namespaces of its own, the real endpoint with two addresses. Path a is the Wi-Fi and the primary one, path b the cellular. By default
the round trips and the Wi-Fi's loss are those of the paper's Table 3 (22 to 39 ms and 1.0 to 2.1 %; 61 ms and less than 0.03 %); rates and
queues are not in the paper. TCP on each path runs beside, for scale. Every repetition holds every arm once, in random order. Prints what
was measured and asserts nothing: scheduler and controller are this kernel's.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces and links

from lone_endpoint import lone_endpoint
from radio_pair import find_link, queue_bytes, radio_pair
from trends import Bench
from two_paths import SERVER

from tandem.experiment.rounds_outcome import quantile

SECOND = "203.0.113.11"
ARMS = {
    "TCP a": {"kind": "tcp", "path": "a"},
    "TCP b": {"kind": "tcp", "path": "b"},
    "MP-2": {"kind": "mptcp", "path": "a", "subflows": 2},
    "MP-4": {"kind": "mptcp", "path": "a", "subflows": 4},
}
QUANTILES = (10, 25, 50, 75, 90)
RESAMPLED = 2000


def measured(line: dict[str, Any]) -> dict[str, Any] | None:
    """What is kept of a download; None of a failed one."""
    result = line["result"]
    if line["failure"] is not None or result is None:
        return None
    joins = [s["join_delay_ms"] for s in result["subflows"] if s["join_delay_ms"] is not None]
    return {
        "download_s": result["duration_s"],
        "reached": result["subflows_reached"],
        "share_b": sum(s["share"] for s in result["subflows"] if s["path"] == "b"),
        "first_join_ms": min(joins, default=None),
        "bytes_retrans": result["bytes_retrans"],
    }


def all_runs(made: Bench, args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each download."""
    chance = random.Random(args.seed)
    cells = [(size, arm) for size in args.sizes for arm in ARMS]
    rows = []
    for repetition in range(args.repetitions):
        chance.shuffle(cells)
        for size, arm in cells:
            asked = {**ARMS[arm], "bytes": size, "congestion_control": args.congestion_control, "whoami": False}
            line = made.experiment("download", **asked)
            rows.append({"repetition": repetition, "bytes": size, "arm": arm, "measured": measured(line)})
        print(f"\rrepetition {repetition + 1} of {args.repetitions}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def table(rows: Sequence[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Printed; a row for each size and arm."""
    print(
        f"{'size':>9} {'arm':>6} {'n':>3} "
        + " ".join(f"{f'p{q} ms':>8}" for q in QUANTILES)
        + "  reached share_b  join ms"
    )
    found = []
    for size in args.sizes:
        for arm in ARMS:
            mine = [r for r in rows if (r["bytes"], r["arm"]) == (size, arm)]
            whole = [r["measured"] for r in mine if r["measured"] is not None]
            if not whole:
                print(f"{size:9d} {arm:>6}   0 all {len(mine)} failed")
                continue
            times = [1000 * m["download_s"] for m in whole]
            joins = [m["first_join_ms"] for m in whole if m["first_join_ms"] is not None]
            row = {
                "bytes": size,
                "arm": arm,
                "n": len(whole),
                "failed": len(mine) - len(whole),
                **{f"p{q}_ms": quantile(times, q / 100) for q in QUANTILES},
                "reached_mean": sum(m["reached"] for m in whole) / len(whole),
                "share_b_median": quantile([m["share_b"] for m in whole], 0.5),
                "first_join_ms_median": quantile(joins, 0.5),
            }
            found.append(row)
            figures = " ".join(f"{row[f'p{q}_ms']:8.0f}" for q in QUANTILES)
            join = "        " if row["first_join_ms_median"] is None else f"{row['first_join_ms_median']:8.0f}"
            print(
                f"{size:9d} {arm:>6} {row['n']:3d} {figures}  {row['reached_mean']:7.2f} {row['share_b_median']:7.3f} {join}"
            )
    return found


def compared(rows: Sequence[dict[str, Any]], args: argparse.Namespace) -> list[dict[str, Any]]:
    """Four against two, within each repetition: the ratio of the two download times, its median with a 95 % interval (resampled)."""
    chance = random.Random(args.seed)
    print(f"{'size':>9} {'n':>3} {'MP-4 / MP-2':>12} {'95 % interval':>16} {'4 faster':>9}")
    found = []
    for size in args.sizes:
        times = {
            (r["repetition"], r["arm"]): r["measured"]["download_s"]
            for r in rows
            if r["bytes"] == size and r["measured"] is not None
        }
        both = [i for i in range(args.repetitions) if (i, "MP-2") in times and (i, "MP-4") in times]
        ratios = [times[i, "MP-4"] / times[i, "MP-2"] for i in both]
        if not ratios:
            continue
        medians = [quantile(chance.choices(ratios, k=len(ratios)), 0.5) or 0.0 for _ in range(RESAMPLED)]
        row = {
            "bytes": size,
            "n": len(ratios),
            "ratio_median": quantile(ratios, 0.5),
            "ratio_low": quantile(medians, 0.025),
            "ratio_high": quantile(medians, 0.975),
            "four_faster": sum(ratio < 1 for ratio in ratios) / len(ratios),
        }
        found.append(row)
        interval = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}"
        print(f"{size:9d} {row['n']:3d} {row['ratio_median']:12.3f} {interval:>16} {row['four_faster']:9.2f}")
    return found


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    pair_of = {"type": float, "nargs": 2, "metavar": ("A", "B")}
    parser.add_argument(
        "--sizes", type=int, nargs="+", default=[8 << 10, 64 << 10, 512 << 10, 4 << 20], metavar="BYTES"
    )
    parser.add_argument("--repetitions", type=int, default=20, help="of each size with each arm (20)")
    parser.add_argument("--rate-mbit", default=[20.0, 12.0], help="down; a quarter of it up (20 12)", **pair_of)
    parser.add_argument("--rtt-ms", default=[24.0, 61.0], help="(24 61)", **pair_of)
    parser.add_argument("--loss", default=[0.016, 0.0], help="share of packets lost down (0.016 0)", **pair_of)
    parser.add_argument("--queue-ms", default=[100.0, 400.0], help="what the queues hold (100 400)", **pair_of)
    parser.add_argument("--congestion-control", default="reno", help="at the sender (reno)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, metavar="FILE", help="every download, and the tables")
    args = parser.parse_args()
    link = find_link()
    if link is None:
        raise SystemExit("no tandem-link; mend: ./kit setup builds it")
    rates = dict(zip("ab", (r * 1e6 for r in args.rate_mbit), strict=True))
    with (
        tempfile.TemporaryDirectory() as folder,
        radio_pair(link, rates, dict(zip("ab", args.rtt_ms, strict=True))) as pair,
    ):
        for name, loss, queue_ms in zip("ab", args.loss, args.queue_ms, strict=True):
            pair.tell(name, f"down loss {loss}", f"down buffer_bytes {queue_bytes(rates[name], queue_ms)}")
            up = rates[name] / 4
            pair.tell(name, f"up rate {int(up)}", f"up buffer_bytes {queue_bytes(up, queue_ms)}")
        pair.server.run(f"ip addr add {SECOND}/32 dev lo; ip mptcp limits set subflow 8")
        with lone_endpoint(pair.server, SERVER, Path(folder), (SECOND,)) as server:
            rows = all_runs(Bench(pair, server), args)
    asked = {k: v for k, v in vars(args).items() if k != "json"}
    told = {"asked": asked, "kernel": os.uname().release, "table": table(rows, args), "compared": compared(rows, args)}
    if args.json is not None:
        args.json.write_text(json.dumps({**told, "downloads": rows}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
