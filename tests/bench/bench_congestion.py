"""What LIA, OLIA and BALIA take where one TCP connection shares their bottleneck, what of two links they fill, and whether they leave a
congested path: ``bench_congestion.py [--quick] [--only TABLE] [--json FILE]`` (root; the object as ``./kit test`` builds it). By default
about 50 minutes: a quarter for each of the two shared links, for the disjoint ones and for the congested one.

Three tables, each a ratio within one run with a 95 % interval (geometric mean over the repetitions, Student's t on the logarithms), in
random order. Reno on each subflow by itself is what they are held against.

1. shared: both subflows and one TCP Reno connection over one link that loses at random: bytes of Multipath TCP over bytes of TCP.
2. disjoint: two links of their own: bytes of Multipath TCP over those of two TCP Reno connections, one a link, in the same time.
3. congested: share of the bytes on link b while two TCP Reno connections fill it, over the share before they came.
"""

from __future__ import annotations

import math
import os
import random
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support
import benching
from benching import Column, Row, say, student, table
from endless_flow import A_TOO, A, B, Flow, SubflowLostError, flow

from support.emulated_links import RadioPair, no_link, radio_pair
from support.loaded_controllers import OBJECT, held
from support.two_paths import why_not
from tandem.mptcp_abi import COUPLED
from tandem_server import congestion

Measure = Callable[[RadioPair, str, float], float]
ARMS = ("reno", *COUPLED)
TRIES = 4
JOINED_S = 60.0


def measured(measure: Measure, pair: RadioPair, arm: str, args: Namespace) -> float:
    """Once with both subflows from beginning to end."""
    for _ in range(TRIES):
        try:
            return measure(pair, arm, args.seconds)
        except SubflowLostError:
            say(f"{arm}: a subflow was lost; again")
    raise SystemExit(f"{arm}: {TRIES} connections in a row lost a subflow")


def between(flows: list[Flow], begin_s: float, seconds: float) -> list[dict[str, int]]:
    """Bytes of each, by address, in ``seconds`` after ``begin_s``."""
    time.sleep(begin_s)
    before = [one.acked() for one in flows]
    time.sleep(seconds)
    after = [one.acked() for one in flows]
    if any(b.keys() != a.keys() for b, a in zip(before, after, strict=True)):
        raise SubflowLostError
    return [{k: a[k] - b[k] for k in a} for b, a in zip(before, after, strict=True)]


def shared(pair: RadioPair, arm: str, seconds: float) -> float:
    """Multipath TCP over TCP."""
    with flow(pair, arm, A) as many, flow(pair, "reno", A, multipath=False) as one:
        many.joined(JOINED_S)
        got = between([many, one], 5, seconds)
        return sum(got[0].values()) / sum(got[1].values())


def disjoint(pair: RadioPair, arm: str, seconds: float) -> float:
    """Multipath TCP over what two TCP connections get of the same links."""
    with flow(pair, "reno", A, multipath=False) as a, flow(pair, "reno", B, multipath=False) as b:
        alone = between([a, b], 3, seconds)
    with flow(pair, arm, A) as many:
        many.joined(JOINED_S)
        return sum(between([many], 3, seconds)[0].values()) / sum(sum(one.values()) for one in alone)


def congested(pair: RadioPair, arm: str, seconds: float) -> float:
    """Share of b with cross traffic over the share without."""
    with flow(pair, arm, A) as many:
        many.joined(JOINED_S)
        (before,) = between([many], 5, seconds)
        with flow(pair, "reno", B, multipath=False), flow(pair, "reno", B, multipath=False):
            (after,) = between([many], 6, seconds)
    return share(after) / share(before)


def share(got: dict[str, int]) -> float:
    return got[B] / sum(got.values())


def compared(title: str, pair: RadioPair, measure: Measure, args: Namespace) -> list[Row]:
    """Every controller so many times, in random order; its table."""
    cells = [arm for arm in ARMS for _ in range(args.repetitions)]
    random.Random(args.seed).shuffle(cells)
    found: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for arm in cells:
        found[arm].append(measured(measure, pair, arm, args))
        say(f"{title.partition(':')[0]} {arm} {found[arm][-1]:.3f}")
    rows = []
    for arm, values in found.items():
        mean, low, high = (math.exp(one) for one in student([math.log(v) for v in values]))
        rows.append({"table": title, "arm": arm, "ratio": mean, "low": low, "high": high, "values": values})
    print(f"\n{title}")
    table(COLUMNS, rows)
    return rows


COLUMNS: list[Column] = [
    ("", "", "arm"),
    ("n", "d", lambda row: len(row["values"])),
    ("ratio", ".2f", "ratio"),
    ("95 % from", ".2f", "low"),
    ("to", ".2f", "high"),
]


def main() -> int:
    parser = benching.parser(__doc__, json_file="the tables with every measurement as JSON too")
    parser.add_argument("--quick", action="store_true", help="to see that it works: no figures to go by")
    parser.add_argument("--seed", type=int, default=1, help="of the random order (default 1)")
    parser.add_argument("--repetitions", type=int, default=8, help="of each controller in each table (default 8)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement (default 10)")
    parser.add_argument("--only", choices=("shared", "disjoint", "congested"), help="one of the three tables")
    args = parser.parse_args()
    if args.quick:
        args.repetitions, args.seconds = 2, 3.0
    lack = why_not() or no_link() or congestion.refusal(OBJECT)
    if lack is not None:
        raise SystemExit(lack)
    rows: list[Row] = []
    with ExitStack() as stack:
        stack.enter_context(held())
        print(f"kernel {os.uname().release}, seed {args.seed}, {args.repetitions} repetitions of {args.seconds:g} s")
        if args.only in (None, "shared"):
            # So many losses that each measurement averages over dozens a subflow; three TCP would take more than the link. With few
            # losses windows are twice as wide: at 1 % many are of two or three packets, where a loss waits for a time-out.
            for rate, loss in ((15e6, 0.01), (40e6, 0.0025)):
                with radio_pair({"a": rate, "b": 1e6}, {"a": 20, "b": 40}, 60) as pair:
                    pair.tell("a", f"down loss {loss}")
                    pair.probe.run(f"ip addr add {A_TOO} peer 10.71.1.2 dev tmp5-a; ip mptcp endpoint flush")
                    pair.probe.run(f"ip mptcp endpoint add {A_TOO} dev tmp5-a subflow")
                    pair.server.run(f"ip route add {A_TOO} dev tmp5-as")
                    title = f"shared: {rate / 1e6:g} Mbit/s, 20 ms, {loss:.2%} lost: Multipath TCP / TCP"
                    rows += compared(title, pair, shared, args)
        if args.only in (None, "disjoint"):
            with radio_pair({"a": 8e6, "b": 4e6}, {"a": 30, "b": 50}, 100) as pair:
                title = "disjoint: 8 and 4 Mbit/s, 30 and 50 ms: Multipath TCP / two TCP"
                rows += compared(title, pair, disjoint, args)
        if args.only in (None, "congested"):
            with radio_pair({"a": 8e6, "b": 8e6}, {"a": 40, "b": 40}, 60) as pair:
                title = "congested: 8 Mbit/s each, 40 ms: share of b, two TCP on it / none"
                rows += compared(title, pair, congested, args)
    benching.keep(args.json, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
