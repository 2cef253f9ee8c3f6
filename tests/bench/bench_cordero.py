"""Cordero's two questions on two emulated links: BW benefit against the bandwidth ratio, delay benefit against the size.

    PYTHONPATH=collector/src:server/src python tests/bench/bench_cordero.py [--mode oneway] [--seconds 10] [--json FILE]

Root; namespaces of its own, the real endpoint. Path b has --base-mbit, path a as many times that as the ratio says. Prints what was
measured and asserts nothing: the kernel's scheduler and controllers are not the paper's.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lab"))  # the lab's namespaces and links

from lone_endpoint import lone_endpoint
from radio_pair import PATHS, RadioPair, find_link, radio_pair
from two_paths import REPOSITORY, SERVER

from tandem.experiment.rounds_outcome import quantile

SMALL_BYTES = 200_000
"""The border that the paper sees in its figure 8."""


def run(pair: RadioPair, server: dict[str, Any], name: str, **own: Any) -> dict[str, Any]:
    """One experiment in the probe's namespace; its last line."""
    given = {"run": "bench", "paths": PATHS, "server": server, "primary": "a", **own}
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY / "collector/src")}
    command = [*pair.probe.enter, sys.executable, "-m", f"tandem.experiment.{name}"]
    done = subprocess.run(
        command, input=json.dumps(given), stdout=subprocess.PIPE, text=True, env=environment, check=False
    )
    line: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if line["type"] != "result" or line["result"] is None:
        raise SystemExit(f"{name}: {done.stdout.splitlines()[-1]}")
    return line


def bandwidth(pair: RadioPair, server: dict[str, Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each ratio."""
    print(
        f"bandwidth, {args.mode}, {args.seconds:g} s a transfer, {args.repetitions} rounds a ratio, primary a; Mbit/s"
    )
    named = ("C_a", "C_b", "C_total", "MPTCP", "TDI", "benefit", "min", "max", "share", "k/(k+1)")
    print(f"{'ratio':>6}" + "".join(f"{name:>9}" for name in named))
    rows = []
    for ratio in args.ratios:
        pair.offer({"a": ratio * args.base_mbit * 1e6, "b": args.base_mbit * 1e6})
        line = run(
            pair,
            server,
            "bandwidth",
            mode=args.mode,
            seconds=args.seconds,
            repetitions=args.repetitions,
            seed=args.seed,
        )
        whole = [r for r in line["result"]["rounds"] if r["tdi"] is not None and r["benefits"]]
        told = [r for r in whole if r["benefits"][0]["benefit_raw"] is not None]
        if not told:
            print(f"{ratio:6g} {line['failure']}")
            continue

        def middle(values: list[float | None]) -> float:
            return quantile([v for v in values if v is not None], 0.5) or 0.0

        benefits = [r["benefits"][0]["benefit_raw"] for r in told]
        row = {
            "ratio": ratio,
            "c_a": middle([r["c_i_bit_per_s"]["a"] / 1e6 for r in told]),
            "c_b": middle([r["c_i_bit_per_s"]["b"] / 1e6 for r in told]),
            "c_total": middle([r["c_total_bit_per_s"] / 1e6 for r in told]),
            "mptcp": middle([r["benefits"][0]["goodput_bit_per_s"] / 1e6 for r in told]),
            "tdi": middle([r["tdi"] for r in told]),
            "benefit_raw": middle(benefits),
            "benefits_raw": benefits,
            "share": middle([r["benefits"][0]["most_loaded_share"] for r in told]),
            "failed_phases": line["failed_phases"],
        }
        rows.append(row)
        figures = [row[name] for name in ("c_a", "c_b", "c_total", "mptcp", "tdi", "benefit_raw")]
        figures += [min(benefits), max(benefits), row["share"], ratio / (1 + ratio)]
        print(f"{ratio:6g}" + "".join(f"{figure:9.3f}" for figure in figures), flush=True)
    return rows


def delay(pair: RadioPair, server: dict[str, Any], args: argparse.Namespace) -> list[dict[str, Any]]:
    """The paper's classes of size, of both its ranges."""
    pair.offer({"a": args.delay_ratio * args.delay_base_mbit * 1e6, "b": args.delay_base_mbit * 1e6})
    found: list[dict[str, Any]] = []
    for least, most in ((100, 10**6), (1000, 10**7)):
        line = run(
            pair, server, "delay", mode=args.mode, min_bytes=least, max_bytes=most, repetitions=args.sizes, seed=args.seed
        )  # fmt: skip
        for told in line["result"]["rounds"]:
            found += [{"bytes": told["bytes"], **b} for b in told["benefits"] if b["benefit"] is not None]
        print(f"delay, {args.mode}, {least} to {most} B: {line['failed_phases']} transfers failed", flush=True)
    print(f"delay, {args.mode}, ratio {args.delay_ratio:g} over {args.delay_base_mbit:g} Mbit/s, timed at the sender")
    print(f"{'sizes':>22} {'n':>4} {'p10':>6} {'p25':>6} {'p50':>6} {'p75':>6} {'p90':>6} {'positive':>9} {'share':>6}")
    edges = sorted({0, 1000, 10_000, 50_000, SMALL_BYTES, 500_000, 10**6, 2 * 10**6, 5 * 10**6, 10**9})
    groups = [*pairwise(edges), (0, SMALL_BYTES), (SMALL_BYTES, 10**9)]
    rows = []
    for least, below in groups:
        group = [f for f in found if least <= f["bytes"] < below]
        if not group:
            continue
        values = [f["benefit"] for f in group]
        row = {
            "from_bytes": least,
            "below_bytes": below,
            "n": len(group),
            **{f"p{p}": quantile(values, p / 100) for p in (10, 25, 50, 75, 90)},
            "positive": sum(v > 0 for v in values) / len(values),
            "share": quantile([f["most_loaded_share"] for f in group if f["most_loaded_share"] is not None], 0.5),
        }
        rows.append(row)
        quantiles = " ".join(f"{row[f'p{p}']:6.2f}" for p in (10, 25, 50, 75, 90))
        print(f"{f'{least} to {below}':>22} {row['n']:4d} {quantiles} {row['positive']:9.2f} {row['share']:6.3f}")
    return rows


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=("oneway", "reqresp"), default="oneway", help="the paper's ratios: oneway")
    parser.add_argument("--ratios", type=float, nargs="+", default=[1, 2, 5, 10, 20])
    parser.add_argument("--base-mbit", type=float, default=1.0, help="path b in the bandwidth part; the paper: 1")
    parser.add_argument("--rtt-ms", type=float, nargs=2, default=[20.0, 60.0], metavar=("A", "B"))
    parser.add_argument("--queue-ms", type=float, default=200.0, help="what a link's queue holds")
    parser.add_argument("--seconds", type=float, default=10.0, help="the paper: 60")
    parser.add_argument("--repetitions", type=int, default=3, help="rounds a ratio")
    parser.add_argument("--sizes", type=int, default=60, help="sizes drawn in each of the paper's two ranges")
    parser.add_argument("--delay-ratio", type=float, default=2.0)
    parser.add_argument("--delay-base-mbit", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=("bandwidth", "delay"))
    parser.add_argument("--json", type=Path, help="the tables as JSON too")
    args = parser.parse_args()
    link = find_link()
    if link is None:
        raise SystemExit("no tandem-link; mend: ./kit setup builds it")
    told: dict[str, Any] = {}
    rates = {"a": 1e6, "b": 1e6}
    with (
        tempfile.TemporaryDirectory() as folder,
        radio_pair(link, rates, dict(zip("ab", args.rtt_ms, strict=True)), args.queue_ms) as pair,
        lone_endpoint(pair.server, SERVER, Path(folder)) as server,
    ):
        if args.only != "delay":
            told["bandwidth"] = bandwidth(pair, server, args)
        if args.only != "bandwidth":
            told["delay"] = delay(pair, server, args)
    if args.json is not None:
        args.json.write_text(json.dumps(told, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
