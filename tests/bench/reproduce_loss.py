"""Adarsh's question: with losses on path 2 only, does single-path TCP beat Multipath TCP for 128 KB and 512 KB, and not for large sizes?

    ./kit run python tests/bench/reproduce_loss.py [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint, ``download``. Both paths have the same rate and 20 ms; path 2 loses. Goodput is from the SYN
to the last byte. The paper does not say over which path its single-path TCP ran: both are measured (over path 2 only up to 512 KB: at a
loss of 20 % larger ones take minutes). Paper: 100 repetitions, steps of 0.5 %, gigabit, minSRTT.
"""

from __future__ import annotations

import sys

import path2_sweep as sweep
from benching import Column
from path2_sweep import MPTCP_1, MPTCP_2, TCP_1, TCP_2, Cell, Condition, Transfer, Way
from trends import Row, bench, finish, options, quartiles, settle, spread

KB = 1024
FULL = {"bytes": [128 * KB, 512 * KB, 2048 * KB, 8192 * KB], "loss_percent": [0, 1, 2, 5, 10, 20], "repetitions": 5}
QUICK = {"bytes": [128 * KB], "loss_percent": [0, 10], "repetitions": 1}
LARGEST_OVER_2 = 512 * KB
WAYS = (TCP_1, TCP_2, MPTCP_1, MPTCP_2)


def ways(size: int) -> tuple[Way, ...]:
    """What is compared at this size."""
    return (TCP_1, MPTCP_1, MPTCP_2, *((TCP_2,) if size <= LARGEST_OVER_2 else ()))


def row(found: list[Transfer], size: int, loss_percent: float, rtt_ms: float) -> Row:
    """A row of the table. ``tcp_1_ahead``: in which part of the repetitions TCP over path 1 was the faster one."""
    condition = Condition(rtt_ms, 0.0, loss_percent / 100)
    by_way = {way: sweep.of(found, condition, size, way) for way in ways(size)}
    told: Row = {"bytes": size, "loss_percent": loss_percent, "failed": sum(map(sweep.failed, by_way.values()))}
    for way in WAYS:
        told[way.name] = sweep.goodput(by_way.get(way, []))
    for way in (MPTCP_1, MPTCP_2):
        pairs = [
            (t.goodput_mbit_s, m.goodput_mbit_s) for t, m in zip(by_way[TCP_1], by_way[way], strict=True)
            if t.goodput_mbit_s is not None and m.goodput_mbit_s is not None
        ]  # fmt: skip
        told[f"{way.name} over TCP"] = spread(m / t for t, m in pairs).median
        told[f"TCP ahead of {way.name}"] = sum(t > m for t, m in pairs) / len(pairs) if pairs else None
        told[f"share 2, {way.name}"] = sweep.share_2(by_way[way]).median
    return told


def columns() -> list[Column]:
    made: list[Column] = [("size", "", lambda r: sweep.size(r["bytes"])), ("loss %", "g", "loss_percent")]
    made.append(("n", "d", lambda r: r[TCP_1.name].n))
    for way in WAYS:
        made += quartiles(way.name, ".2f", way.name)
    for number, way in enumerate((MPTCP_1, MPTCP_2), 1):
        made += [(f"M{number}/T1", ".2f", f"{way.name} over TCP"), (f"T1>M{number}", ".2f", f"TCP ahead of {way.name}")]
    made += [("path 2 %, M1", ".0f", f"share 2, {MPTCP_1.name}"), ("M2", ".0f", f"share 2, {MPTCP_2.name}")]
    return [*made, ("failed", "d", "failed")]


def main() -> int:
    parser = options(__doc__)
    sweep.with_links(parser)
    parser.add_argument("--rtt-ms", type=float, default=20.0, help="of each path (default: %(default)s, the paper's)")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    cells = [
        Cell(Condition(args.rtt_ms, 0.0, loss / 100), size, way)
        for size in args.bytes for loss in args.loss_percent for way in ways(size)
    ]  # fmt: skip
    with bench(dict.fromkeys("ab", args.mbit), dict.fromkeys("ab", args.rtt_ms), args.queue_ms) as made:
        links = f"{args.mbit:g} Mbit/s and {args.rtt_ms:g} ms each, queues of {args.queue_ms:g} ms, path 2 loses on the way to the probe"
        setting = made.setting(args, links)
        found = sweep.measure(made, cells, args)
    rows = [row(found, size, loss, args.rtt_ms) for size in args.bytes for loss in args.loss_percent]
    print("goodput from SYN to last byte, Mbit/s; T1>M1: part of the repetitions in which TCP was the faster")
    return finish(args, setting, columns(), rows, found)


if __name__ == "__main__":
    sys.exit(main())
