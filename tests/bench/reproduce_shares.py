"""Adarsh's other question: does the traffic leave the path whose RTT grows, and the one whose loss grows?

    ./kit run python tests/bench/reproduce_shares.py [--quick] [--json FILE] [--plot FILE.svg]

Root; namespaces of its own, the real endpoint, ``download`` by Multipath TCP with either path as the primary. Two series, in one random
order: path 2's RTT from 20 ms to 500 ms (both paths lose 0.1 %), and path 2's loss from 0 to 20 % (20 ms, path 1 loses nothing). A share is
of the bytes that TCP received. Paper: 100 repetitions, loss in steps of 0.5 %, gigabit, minSRTT.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Callable

import path2_sweep as sweep
from path2_sweep import MPTCP_1, MPTCP_2, Cell, Condition, Transfer
from trend_pictures import COLOURS, labelled, one_legend, picture, with_quartiles
from trends import bench, finish, options, settle, spread, table

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
    """Of the RTT's series."""
    return Condition(rtt_ms, BOTH_LOSE, BOTH_LOSE)


def lossier(percent: float) -> Condition:
    """Of the loss's series."""
    return Condition(LEAST_RTT_MS, 0.0, percent / 100)


def row(found: list[Transfer], series: str, value: float, condition: Condition, size: int) -> dict[str, object]:
    """A row of the table."""
    told: dict[str, object] = {"series": series, "value": value, "bytes": size}
    for way in (MPTCP_1, MPTCP_2):
        cell = sweep.of(found, condition, size, way)
        told[way.name] = {
            "share_2": sweep.share_2(cell)._asdict(),
            "goodput_mbit_s": sweep.goodput(cell)._asdict(),
            "join_delay_ms": spread(t.join_delay_ms for t in cell).median,
            "unjoined": sum(t.failure is None and t.join_delay_ms is None for t in cell),
            "failed": sweep.failed(cell),
        }
    return told


def printed(rows: list[dict[str, object]]) -> None:
    """The table."""
    columns = [("path 2", ""), ("size", ""), ("n", "d")]
    for way in (MPTCP_1, MPTCP_2):
        columns += [
            (f"{way.name}: % on 2", ".1f"),
            ("q1", ".1f"),
            ("q3", ".1f"),
            ("Mbit/s", ".2f"),
            ("joined after ms", ".0f"),
        ]
    columns += [("never joined", "d"), ("failed", "d")]
    lines = []
    for r in rows:
        cells = [r[way.name] for way in (MPTCP_1, MPTCP_2)]
        there = [c for c in cells if isinstance(c, dict)]
        line: list[object] = [
            f"{r['value']:g} {r['series']}",
            sweep.size(int(str(r["bytes"]))),
            there[0]["share_2"]["n"],
        ]
        for cell in there:
            line += [cell["share_2"][key] for key in ("median", "q1", "q3")]
            line += [cell["goodput_mbit_s"]["median"], cell["join_delay_ms"]]
        lines.append([*line, sum(c["unjoined"] for c in there), sum(c["failed"] for c in there)])
    print("share of path 2, %: median and quartiles")
    table(columns, lines)


def drawn(args: Namespace, found: list[Transfer], foot: str) -> None:
    """RTT on the left, loss on the right; a line a size and primary."""
    series: tuple[tuple[str, list[float], Callable[[float], Condition], str], ...] = (
        ("the RTT of path 2 grows (both lose 0.1 %)", args.rtt_ms, slower, "RTT of path 2, ms"),
        ("the loss of path 2 grows (20 ms)", args.loss_percent, lossier, "loss on path 2, %"),
    )
    with picture(args.plot, "Where Multipath TCP sends", foot, 1, 2) as panels:
        for axis, (title, values, condition, unit) in zip(panels, series, strict=True):
            aside = 0.004 * (max(values) - min(values))
            for number, size in enumerate(args.bytes):
                for way, style in ((MPTCP_1, "-"), (MPTCP_2, ":")):
                    cells = [sweep.share_2(sweep.of(found, condition(v), size, way)) for v in values]
                    name = f"{sweep.size(size)}, primary {sweep.NUMBER[way.path]}"
                    with_quartiles(axis, values, cells, name, COLOURS[number], style, number * aside)
            axis.set_ylim(0, 100)
            labelled(axis, title, unit, "share of path 2, % (median, quartiles)", None)
        one_legend(panels[0])


def main() -> int:
    """See the module."""
    parser = options(__doc__)
    sweep.with_links(parser)
    parser.add_argument("--rtt-ms", type=float, nargs="+", metavar="MS", help="of path 2 in the first series")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    conditions = [("ms", v, slower(v)) for v in args.rtt_ms] + [("% lost", v, lossier(v)) for v in args.loss_percent]
    cells = [Cell(c, size, way) for _, _, c in conditions for size in args.bytes for way in (MPTCP_1, MPTCP_2)]
    both = dict.fromkeys("ab", args.mbit)
    with bench(both, dict.fromkeys("ab", LEAST_RTT_MS), args.queue_ms) as made:
        links = f"{args.mbit:g} Mbit/s each, path 1 {LEAST_RTT_MS:g} ms, queues of {args.queue_ms:g} ms, loss on the way to the probe"
        setting = made.setting(args, links)
        found = sweep.measure(made, cells, args)
    rows = [row(found, series, v, c, size) for series, v, c in conditions for size in args.bytes]
    printed(rows)
    finish(args, setting, rows, found)
    if args.plot is not None:
        foot = f"{links}; {args.congestion_control}, n = {args.repetitions}, kernel {setting['kernel']}"
        drawn(args, found, foot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
