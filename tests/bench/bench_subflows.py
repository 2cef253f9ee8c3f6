"""Four subflows against two, by the size of the download: Chen's question, on links like his Wi-Fi and his LTE.

    ./kit run python tests/bench/bench_subflows.py [--repetitions 20] [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint with two addresses. Path a is the Wi-Fi and the primary one, path b the cellular. By default
the round trips and the Wi-Fi's loss are those of the paper's Table 3 (22 to 39 ms and 1.0 to 2.1 %; 61 ms and less than 0.03 %); rates and
queues are not in the paper. TCP on each path runs beside, for scale. Every repetition holds every arm once, in random order. Prints what
was measured and asserts nothing: scheduler and controller are this kernel's.
"""

from __future__ import annotations

import random
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

from benching import Column, Row, keep, table
from trends import Bench, in_random_order, interval, options, settle

from support.emulated_links import queue_bytes, radio_pair
from support.standalone_endpoint import lone_endpoint
from support.two_paths import SERVER
from tandem.experiment.results import quantile

SECOND = "203.0.113.11"
ARMS = {
    "TCP a": {"kind": "tcp", "path": "a"},
    "TCP b": {"kind": "tcp", "path": "b"},
    "MP-2": {"kind": "mptcp", "path": "a", "subflows": 2},
    "MP-4": {"kind": "mptcp", "path": "a", "subflows": 4},
}
FULL = {"sizes": [8 << 10, 64 << 10, 512 << 10, 4 << 20], "repetitions": 20}
QUICK = {"sizes": [64 << 10], "repetitions": 1}
QUANTILES = (10, 25, 50, 75, 90)


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


def all_runs(made: Bench, args: Namespace) -> list[Row]:
    rows = []
    for repetition, (size, arm) in in_random_order(args, [(size, arm) for size in args.sizes for arm in ARMS]):
        asked = {**ARMS[arm], "bytes": size, "congestion_control": args.congestion_control, "whoami": False}
        line = made.experiment("download", **asked)
        rows.append({"repetition": repetition, "bytes": size, "arm": arm, "measured": measured(line)})
    return rows


def by_arm(rows: Sequence[Row], args: Namespace) -> list[Row]:
    """A row for each size and arm."""
    found = []
    for size in args.sizes:
        for arm in ARMS:
            mine = [r["measured"] for r in rows if (r["bytes"], r["arm"]) == (size, arm)]
            whole = [m for m in mine if m is not None]
            times = [1000 * m["download_s"] for m in whole]
            joins = [m["first_join_ms"] for m in whole if m["first_join_ms"] is not None]
            row = {"bytes": size, "arm": arm, "n": len(whole), "failed": len(mine) - len(whole)}
            row |= {f"p{q}_ms": quantile(times, q / 100) for q in QUANTILES}
            row["reached_mean"] = sum(m["reached"] for m in whole) / len(whole) if whole else None
            row["share_b_median"] = quantile([m["share_b"] for m in whole], 0.5)
            found.append({**row, "first_join_ms_median": quantile(joins, 0.5)})
    return found


ARMS_COLUMNS: list[Column] = [
    ("size", "d", "bytes"),
    ("arm", "", "arm"),
    ("n", "d", "n"),
    *((f"p{q} ms", ".0f", f"p{q}_ms") for q in QUANTILES),
    ("reached", ".2f", "reached_mean"),
    ("share_b", ".3f", "share_b_median"),
    ("join ms", ".0f", "first_join_ms_median"),
    ("failed", "d", "failed"),
]


def compared(rows: Sequence[Row], args: Namespace) -> list[Row]:
    """Four against two, within each repetition: the ratio of the two download times, its median with a 95 % interval (resampled)."""
    chance = random.Random(args.seed)
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
        row: Row = {"bytes": size, "n": len(ratios)}
        row["ratio_median"], row["ratio_low"], row["ratio_high"] = interval(ratios, chance)
        found.append({**row, "four_faster": sum(ratio < 1 for ratio in ratios) / len(ratios)})
    return found


COMPARED_COLUMNS: list[Column] = [
    ("size", "d", "bytes"),
    ("n", "d", "n"),
    ("MP-4 / MP-2", ".3f", "ratio_median"),
    ("95 % from", ".3f", "ratio_low"),
    ("to", ".3f", "ratio_high"),
    ("4 faster", ".2f", "four_faster"),
]


def main() -> int:
    parser = options(__doc__, controller="reno")
    pair_of = {"type": float, "nargs": 2, "metavar": ("A", "B")}
    parser.add_argument("--sizes", type=int, nargs="+", metavar="BYTES", help="(8 KB to 4 MB)")
    parser.add_argument("--rate-mbit", default=[20.0, 12.0], help="down; a quarter of it up (20 12)", **pair_of)
    parser.add_argument("--rtt-ms", default=[24.0, 61.0], help="(24 61)", **pair_of)
    parser.add_argument("--loss", default=[0.016, 0.0], help="share of packets lost down (0.016 0)", **pair_of)
    parser.add_argument("--queue-ms", default=[100.0, 400.0], help="what the queues hold (100 400)", **pair_of)
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    rates = dict(zip("ab", (r * 1e6 for r in args.rate_mbit), strict=True))
    with tempfile.TemporaryDirectory() as folder, radio_pair(rates, dict(zip("ab", args.rtt_ms, strict=True))) as pair:
        for name, loss, queue_ms in zip("ab", args.loss, args.queue_ms, strict=True):
            pair.tell(name, f"down loss {loss}", f"down buffer_bytes {queue_bytes(rates[name], queue_ms)}")
            up = rates[name] / 4
            pair.tell(name, f"up rate {int(up)}", f"up buffer_bytes {queue_bytes(up, queue_ms)}")
        pair.server.run(f"ip addr add {SECOND}/32 dev lo; ip mptcp limits set subflow 8")
        with lone_endpoint(pair.server, SERVER, Path(folder), (SECOND,)) as server:
            made = Bench(pair, server)
            links = f"{args.rate_mbit} Mbit/s, {args.rtt_ms} ms, {args.loss} lost, queues of {args.queue_ms} ms"
            setting = made.setting(args, links)
            rows = all_runs(made, args)
    arms, ratios = by_arm(rows, args), compared(rows, args)
    table(ARMS_COLUMNS, arms)
    table(COMPARED_COLUMNS, ratios)
    keep(args.json, {"setting": setting, "table": [*arms, *ratios], "measured": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
