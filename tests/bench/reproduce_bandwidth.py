"""Cordero's question: does the bandwidth aggregation benefit fall as the ratio of the two paths' bandwidths grows from 1 to 20?

    ./kit run python tests/bench/reproduce_bandwidth.py [--mode reqresp] [--quick] [--json FILE]

Root; namespaces of its own, the real endpoint, ``bandwidth``: TCP over each path, over both at once, Multipath TCP. Path b has --base-mbit,
path a as many times that as the ratio says. Why it falls here: ``explain_bandwidth.py``. Paper: 60 s a transfer, about 190 rounds a ratio
(1 to 15 and 20), LIA, OLIA and CUBIC.
"""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser, Namespace
from typing import Any

from benching import Column
from trends import Bench, Progress, bench, finish, options, quartiles, settle, spread, with_send_buffer

FULL = {"ratios": [1, 2, 5, 10, 20], "base_mbit": 1.0, "seconds": 6.0, "repetitions": 3}
QUICK = {"ratios": [1, 4], "base_mbit": 4.0, "seconds": 0.5, "repetitions": 1}
GOODPUTS = ("c_a", "c_b", "c_total", "mptcp")


def with_links(parser: ArgumentParser) -> None:
    """What the paper's two parts have in common."""
    queue = "what a link's queue holds, at least 30 kB (default: %(default)s)"
    both = {"nargs": 2, "metavar": ("A", "B")}
    parser.add_argument(
        "--mode", choices=("oneway", "reqresp"), default="oneway", help="upload, the paper's, or download"
    )
    parser.add_argument("--rtt-ms", type=float, default=[20.0, 60.0], help="(default: 20 60)", **both)
    parser.add_argument("--queue-ms", type=float, default=200.0, help=queue)
    parser.add_argument("--primary", choices=("a", "b"), default="a", help="of Multipath TCP (default: %(default)s)")
    with_send_buffer(parser)


def one_round(made: Bench, args: Namespace, number: int, **own: Any) -> dict[str, Any]:
    """Every step once, in an order of its own; a row of figures, ``failure`` instead of those that are not there."""
    given = {"mode": args.mode, "seconds": args.seconds, "primary": args.primary}
    given |= {"congestion_control": args.congestion_control, "send_buffer_bytes": args.send_buffer_bytes}
    line = made.experiment("bandwidth", **{**given, **own}, repetitions=1, seed=args.seed * 1000 + number)
    told: dict[str, Any] = dict.fromkeys((*GOODPUTS, "tdi", "benefit_raw", "share"))
    told["failure"] = None if line["first_failed"] is None else line["first_failed"]["reason"]
    for found in (line["result"] or {}).get("rounds", []):
        c, (benefit,) = found["c_i_bit_per_s"], found["benefits"] or [{}]
        rates = (c.get("a"), c.get("b"), found["c_total_bit_per_s"], benefit.get("goodput_bit_per_s"))
        told |= {name: None if rate is None else rate / 1e6 for name, rate in zip(GOODPUTS, rates, strict=True)}
        told |= {"tdi": found["tdi"], "benefit_raw": benefit.get("benefit_raw")}
        told["share"] = benefit.get("most_loaded_share")
    return told


def measure(made: Bench, args: Namespace) -> list[dict[str, Any]]:
    """Every ratio so many times, in a random order."""
    order = [ratio for ratio in args.ratios for _ in range(args.repetitions)]
    random.Random(f"tandem bandwidth {args.seed}").shuffle(order)
    progress, found = Progress(len(order), "rounds"), []
    for number, ratio in enumerate(order):
        made.pair.offer({"a": ratio * args.base_mbit * 1e6, "b": args.base_mbit * 1e6})
        found.append({"ratio": ratio, **one_round(made, args, number)})
        progress.step(f"(last: ratio {ratio:g})")
    return found


def summed(found: list[dict[str, Any]], key: str, values: list[Any]) -> list[dict[str, Any]]:
    """A row of medians for each of ``values`` of ``key``."""
    rows = []
    for value in values:
        group = [f for f in found if f[key] == value]
        row = {key: value, "failed": sum(f["failure"] is not None for f in group)}
        row |= {name: spread(f[name] for f in group).median for name in (*GOODPUTS, "tdi", "share")}
        rows.append({**row, "benefit_raw": spread(f["benefit_raw"] for f in group)})
    return rows


def columns_of(key: str, form: str, *middle: Column) -> list[Column]:
    """Of ``summed``'s rows."""
    first: list[Column] = [(key, form, key), ("n", "d", lambda r: r["benefit_raw"].n)]
    return [*first, *middle, *quartiles("benefit", ".2f", "benefit_raw"), ("most loaded", ".2f", "share")]


def main() -> int:
    parser = options(__doc__)
    with_links(parser)
    parser.add_argument("--ratios", type=float, nargs="+", metavar="K", help="(default: 1 2 5 10 20)")
    parser.add_argument("--base-mbit", type=float, help="path b (default: 1, the paper's)")
    parser.add_argument("--seconds", type=float, help="of each transfer (default: 6; the paper: 60)")
    args = parser.parse_args()
    settle(args, FULL, QUICK)
    both, rtts = {"a": args.base_mbit, "b": args.base_mbit}, dict(zip("ab", args.rtt_ms, strict=True))
    with bench(both, rtts, args.queue_ms) as made:
        links = (
            f"b {args.base_mbit:g} Mbit/s and {args.rtt_ms[1]:g} ms, a that times the ratio and {args.rtt_ms[0]:g} ms, queues of "
            f"{args.queue_ms:g} ms (at least 30 kB); {args.mode}, {args.seconds:g} s a transfer, primary {args.primary}"
        )
        setting = made.setting(args, links)
        found = measure(made, args)
    rows = summed(found, "ratio", args.ratios)
    headings = zip(("C_a", "C_b", "C_total", "MPTCP", "TDI"), (*GOODPUTS, "tdi"), strict=True)
    columns = columns_of("ratio", "g", *((heading, ".2f", name) for heading, name in headings))
    columns += [("k/(k+1)", ".2f", lambda r: r["ratio"] / (1 + r["ratio"])), ("failed", "d", "failed")]
    print("goodputs in Mbit/s, medians; benefit: median and quartiles, not limited to -1 to 1")
    return finish(args, setting, columns, rows, found)


if __name__ == "__main__":
    sys.exit(main())
