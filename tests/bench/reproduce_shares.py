"""Adarsh's other question: does the traffic leave the path whose RTT grows, and the one whose loss grows?

    ./kit run python tests/bench/reproduce_shares.py [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint, ``download`` by Multipath TCP with either path as the primary. Two series, in one random
order: path 2's RTT from 20 ms to 500 ms (both paths lose 0.1 %), and path 2's loss from 0 to 20 % (20 ms, path 1 loses nothing). A share is
of the bytes that TCP received. Paper: 100 repetitions, loss in steps of 0.5 %, gigabit, minSRTT.
"""

from __future__ import annotations

import sys

import path2_sweep as sweep
from benching import Column
from path2_sweep import MPTCP_1, MPTCP_2, Cell, Condition, Transfer
from trends import Row, bench, finish, options, quartiles, settle, spread

KB = 1024
FULL = {
    "bytes": [128 * KB, 512 * KB, 2048 * KB],
    "rtt_ms": [20, *range(50, 501, 50)],
    "loss_percent": [0, 1, 2, 5, 10, 15, 20],
    "repetitions": 4,
}
QUICK = {"bytes": [512 * KB], "rtt_ms": [20, 100], "loss_percent": [0, 10], "repetitions": 1}
BOTH_LOSE = 0.001
LEAST_RTT_MS = 20.0


def slower(rtt_ms: float) -> Condition:
    return Condition(rtt_ms, BOTH_LOSE, BOTH_LOSE)


def lossier(percent: float) -> Condition:
    return Condition(LEAST_RTT_MS, 0.0, percent / 100)


def row(found: list[Transfer], series: str, value: float, condition: Condition, size: int) -> Row:
    told: Row = {"series": series, "value": value, "bytes": size, "unjoined": 0, "failed": 0}
    for way in (MPTCP_1, MPTCP_2):
        cell = sweep.of(found, condition, size, way)
        told[f"share 2, {way.name}"] = sweep.share_2(cell)
        told[f"goodput, {way.name}"] = sweep.goodput(cell).median
        told[f"join, {way.name}"] = spread(t.join_delay_ms for t in cell).median
        told["unjoined"] += sum(t.failure is None and t.join_delay_ms is None for t in cell)
        told["failed"] += sweep.failed(cell)
    return told


def columns() -> list[Column]:
    made: list[Column] = [("path 2", "", lambda r: f"{r['value']:g} {r['series']}")]
    made += [("size", "", lambda r: sweep.size(r["bytes"])), ("n", "d", lambda r: r[f"share 2, {MPTCP_1.name}"].n)]
    for way in (MPTCP_1, MPTCP_2):
        made += quartiles(f"{way.name}: % on 2", ".1f", f"share 2, {way.name}")
        made += [("Mbit/s", ".2f", f"goodput, {way.name}"), ("joined after ms", ".0f", f"join, {way.name}")]
    return [*made, ("never joined", "d", "unjoined"), ("failed", "d", "failed")]


def main() -> int:
    parser = options(__doc__)
    sweep.with_links(parser)
    parser.add_argument("--rtt-ms", type=float, nargs="+", metavar="MS", help="of path 2 in the first series")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    conditions = [("ms", v, slower(v)) for v in args.rtt_ms] + [("% lost", v, lossier(v)) for v in args.loss_percent]
    cells = [Cell(c, size, way) for _, _, c in conditions for size in args.bytes for way in (MPTCP_1, MPTCP_2)]
    with bench(dict.fromkeys("ab", args.mbit), dict.fromkeys("ab", LEAST_RTT_MS), args.queue_ms) as made:
        links = f"{args.mbit:g} Mbit/s each, path 1 {LEAST_RTT_MS:g} ms, queues of {args.queue_ms:g} ms, loss on the way to the probe"
        setting = made.setting(args, links)
        found = sweep.measure(made, cells, args)
    rows = [row(found, series, v, c, size) for series, v, c in conditions for size in args.bytes]
    print("share of path 2, %: median and quartiles")
    return finish(args, setting, columns(), rows, found)


if __name__ == "__main__":
    sys.exit(main())
