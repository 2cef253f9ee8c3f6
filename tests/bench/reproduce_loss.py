"""Adarsh's question: with losses on path 2 only, does single-path TCP beat Multipath TCP for 128 KB and 512 KB, and not for large sizes?

    ./kit run python tests/bench/reproduce_loss.py [--quick] [--json FILE] [--plot FILE.svg]

Root; namespaces of its own, the real endpoint, ``download``. Both paths have the same rate and 20 ms; path 2 loses. Goodput is from the SYN
to the last byte. The paper does not say over which path its single-path TCP ran: both are measured (over path 2 only up to 512 KB: at a
loss of 20 % larger ones take minutes). Paper: 100 repetitions, steps of 0.5 %, gigabit, minSRTT.
"""

from __future__ import annotations

import sys
from argparse import Namespace

import path2_sweep as sweep
from path2_sweep import MPTCP_1, MPTCP_2, TCP_1, TCP_2, Cell, Condition, Transfer, Way
from trend_pictures import COLOURS, labelled, one_legend, picture, with_quartiles
from trends import bench, finish, options, settle, spread, table

KB = 1024
FULL = {"bytes": [128 * KB, 512 * KB, 2048 * KB, 8192 * KB], "loss_percent": [0, 1, 2, 5, 10, 20], "repetitions": 5}
QUICK = {"bytes": [128 * KB], "loss_percent": [0, 10], "repetitions": 1}
LARGEST_OVER_2 = 512 * KB


def ways(size: int) -> tuple[Way, ...]:
    """What is compared at this size."""
    return (TCP_1, MPTCP_1, MPTCP_2, *((TCP_2,) if size <= LARGEST_OVER_2 else ()))


def row(found: list[Transfer], size: int, loss_percent: float, rtt_ms: float) -> dict[str, object]:
    """A row of the table. ``tcp_1_ahead``: in which part of the repetitions TCP over path 1 was the faster one."""
    condition = Condition(rtt_ms, 0.0, loss_percent / 100)
    by_way = {way: sweep.of(found, condition, size, way) for way in ways(size)}
    told: dict[str, object] = {"bytes": size, "loss_percent": loss_percent}
    for way, transfers in by_way.items():
        told[way.name] = {**sweep.goodput(transfers)._asdict(), "failed": sweep.failed(transfers)}
    for way in (MPTCP_1, MPTCP_2):
        pairs = [
            (t.goodput_mbit_s, m.goodput_mbit_s) for t, m in zip(by_way[TCP_1], by_way[way], strict=True)
            if t.goodput_mbit_s is not None and m.goodput_mbit_s is not None
        ]  # fmt: skip
        told[f"{way.name} over TCP"] = spread(m / t for t, m in pairs).median
        told[f"TCP ahead of {way.name}"] = sum(t > m for t, m in pairs) / len(pairs) if pairs else None
        told[f"share 2, {way.name}"] = sweep.share_2(by_way[way]).median
    return told


def printed(rows: list[dict[str, object]]) -> None:
    """The table."""
    names = [way.name for way in (TCP_1, TCP_2, MPTCP_1, MPTCP_2)]
    columns = [("size", ""), ("loss %", "g"), ("n", "d")]
    for name in names:
        columns += [(name, ".2f"), ("q1", ".2f"), ("q3", ".2f")]
    columns += [("M1/T1", ".2f"), ("T1>M1", ".2f"), ("M2/T1", ".2f"), ("T1>M2", ".2f")]
    columns += [("path 2 %, M1", ".0f"), ("M2", ".0f"), ("failed", "d")]
    lines = []
    for r in rows:
        cells = [r.get(name) for name in names]
        found = [c if isinstance(c, dict) else {} for c in cells]
        line: list[object] = [sweep.size(int(str(r["bytes"]))), r["loss_percent"], found[0].get("n")]
        for cell in found:
            line += [cell.get(key) for key in ("median", "q1", "q3")]
        for way in (MPTCP_1, MPTCP_2):
            line += [r[f"{way.name} over TCP"], r[f"TCP ahead of {way.name}"]]
        line += [r[f"share 2, {way.name}"] for way in (MPTCP_1, MPTCP_2)]
        lines.append([*line, sum(cell.get("failed", 0) for cell in found)])
    print(
        "goodput from SYN to last byte, Mbit/s: median and quartiles; T1>M1: part of the repetitions in which TCP was the faster"
    )
    table(columns, lines)


def drawn(args: Namespace, found: list[Transfer], foot: str) -> None:
    """A panel a size."""
    with picture(args.plot, "Downloads while path 2 loses packets", foot, -(-len(args.bytes) // 2), 2) as panels:
        for axis, size in zip(panels, args.bytes, strict=False):
            for number, way in enumerate(ways(size)):
                cells = [
                    sweep.of(found, Condition(args.rtt_ms, 0.0, loss / 100), size, way) for loss in args.loss_percent
                ]
                style = "--" if way.kind == "tcp" else "-"
                with_quartiles(
                    axis, args.loss_percent, [sweep.goodput(c) for c in cells], way.name, COLOURS[number], style, number * 0.1
                )  # fmt: skip
            axis.set_ylim(bottom=0)
            labelled(axis, sweep.size(size), "loss on path 2, %", "goodput, Mbit/s (median, quartiles)", None)
        one_legend(panels[0])
        for axis in panels[len(args.bytes) :]:
            axis.set_axis_off()


def main() -> int:
    """See the module."""
    parser = options(__doc__)
    sweep.with_links(parser)
    parser.add_argument("--rtt-ms", type=float, default=20.0, help="of each path (default: %(default)s, the paper's)")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    cells = [
        Cell(Condition(args.rtt_ms, 0.0, loss / 100), size, way)
        for size in args.bytes for loss in args.loss_percent for way in ways(size)
    ]  # fmt: skip
    both = dict.fromkeys("ab", args.mbit)
    with bench(both, dict.fromkeys("ab", args.rtt_ms), args.queue_ms) as made:
        links = f"{args.mbit:g} Mbit/s and {args.rtt_ms:g} ms each, queues of {args.queue_ms:g} ms, path 2 loses on the way to the probe"
        setting = made.setting(args, links)
        found = sweep.measure(made, cells, args)
    rows = [row(found, size, loss, args.rtt_ms) for size in args.bytes for loss in args.loss_percent]
    printed(rows)
    finish(args, setting, rows, found)
    if args.plot is not None:
        foot = f"{links}; {args.congestion_control}, n = {args.repetitions}, kernel {setting['kernel']}"
        drawn(args, found, foot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
