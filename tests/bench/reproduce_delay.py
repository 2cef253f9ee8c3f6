"""Cordero's other question: is the delay aggregation benefit about 0 for small transfers and positive for large ones?

    ./kit run python tests/bench/reproduce_delay.py [--mode reqresp] [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint, ``delay``: sizes log-uniform in both of the paper's ranges, each moved by TCP over each path
and by Multipath TCP, in a random order, timed at the sender. Paper: bandwidth ratios from 1 to 20 all in one figure, LIA, OLIA and CUBIC,
about 3000 transfers.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from itertools import pairwise
from typing import Any

from benching import Column
from reproduce_bandwidth import with_links
from trends import Bench, Progress, bench, finish, options, settle, spread

from tandem.experiment.results import quantile

FULL = {"sizes": [(100, 10**6), (1000, 10**7)], "repetitions": 60}
"""The paper's two ranges."""
QUICK = {"sizes": [(100, 10**4), (10**5, 10**6)], "repetitions": 1}
EDGES = (0, 1000, 10_000, 50_000, 200_000, 500_000, 10**6, 2 * 10**6, 5 * 10**6, 10**8)
"""200 kB is the border that the paper sees in its figure 8."""
QUANTILES = (10, 25, 50, 75, 90)
ROUNDS_A_RUN = 10


def measure(made: Bench, args: Namespace) -> tuple[list[dict[str, Any]], int]:
    """Every benefit that could be told, and how many transfers failed."""
    runs = [(least, most, n) for n in range(-(-args.repetitions // ROUNDS_A_RUN)) for least, most in args.sizes]
    progress, found, failed = Progress(len(runs), "runs"), [], 0
    for place, (least, most, number) in enumerate(runs):
        rounds = min(ROUNDS_A_RUN, args.repetitions - number * ROUNDS_A_RUN)
        line = made.experiment(
            "delay", mode=args.mode, primary=args.primary, congestion_control=args.congestion_control, min_bytes=least, max_bytes=most,
            repetitions=rounds, seed=args.seed * 1000 + place, send_buffer_bytes=args.send_buffer_bytes,
        )  # fmt: skip
        failed += line["failed_phases"]
        for told in (line["result"] or {}).get("rounds", []):
            found += [{"bytes": told["bytes"], **b} for b in told["benefits"] if b["benefit"] is not None]
        progress.step(f"(last: {rounds} sizes of {least} to {most} B)")
    return found, failed


def summed(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each class of size, and one for each side of the paper's border."""
    rows = []
    for least, below in (*pairwise(EDGES), (0, 200_000), (200_000, EDGES[-1])):
        group = [f for f in found if least <= f["bytes"] < below]
        values = [f["benefit"] for f in group]
        if values:
            row: dict[str, Any] = {"from_bytes": least, "below_bytes": below, "n": len(values)}
            row |= {f"p{p}": quantile(values, p / 100) for p in QUANTILES}
            row["positive"] = sum(v > 0 for v in values) / len(values)
            rows.append({**row, "share": spread(f["most_loaded_share"] for f in group).median})
    return rows


def main() -> int:
    parser = options(__doc__)
    with_links(parser)
    pair = {"nargs": 2, "metavar": ("A", "B")}
    parser.add_argument("--mbit", type=float, default=[20.0, 10.0], help="(default: 20 10)", **pair)
    pair = {"nargs": 2, "metavar": ("LEAST", "MOST"), "action": "append"}
    parser.add_argument("--sizes", type=int, help="a range to draw from, B; may be given again", **pair)
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    rates, rtts = (dict(zip("ab", both, strict=True)) for both in (args.mbit, args.rtt_ms))
    with bench(rates, rtts, args.queue_ms) as made:
        links = (
            f"a {args.mbit[0]:g} Mbit/s and {args.rtt_ms[0]:g} ms, b {args.mbit[1]:g} Mbit/s and {args.rtt_ms[1]:g} ms, queues of "
            f"{args.queue_ms:g} ms; {args.mode}, primary {args.primary}"
        )
        setting = made.setting(args, links)
        found, failed = measure(made, args)
    rows = summed(found)
    columns: list[Column] = [("sizes, B", "", lambda r: f"{r['from_bytes']} to {r['below_bytes']}"), ("n", "d", "n")]
    columns += [(f"p{p}", ".2f", f"p{p}") for p in QUANTILES]
    columns += [("positive", ".2f", "positive"), ("most loaded", ".2f", "share")]
    print(f"delay benefit by size; {failed} transfers failed")
    return finish(args, setting, columns, rows, found)


if __name__ == "__main__":
    sys.exit(main())
