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

import argparse
import json
import math
import os
import random
import socket
import statistics
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support
from support.emulated_links import RadioPair, no_link, radio_pair
from support.loaded_controllers import OBJECT, held
from support.two_paths import SERVER, why_not
from tandem.mptcp_abi import COUPLED
from tandem.mptcp_abi.reader import Reader
from tandem_server import congestion

ARMS = ("reno", *COUPLED)
A, A_TOO, B = "10.71.1.1", "10.71.1.3", "10.71.2.1"
TCP, MPTCP = 6, 262
TRIES = 4
# two-sided 95 %, by degrees of freedom
STUDENT = {
    1: 12.7,
    2: 4.30,
    3: 3.18,
    4: 2.78,
    5: 2.57,
    6: 2.45,
    7: 2.36,
    8: 2.31,
    9: 2.26,
    11: 2.20,
    14: 2.14,
    19: 2.09,
}


class Flow:
    """The server sends as fast as it may to one connection from ``source``."""

    def __init__(self, pair: RadioPair, controller: str, protocol: int, source: str) -> None:
        def listen() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
            made.bind((SERVER, 0))
            made.listen()
            return made

        def connect() -> socket.socket:
            made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol)
            made.bind((source, 0))
            made.connect(self._listener.getsockname())
            return made

        self._listener = pair.server.inside(listen)  # kept: it takes the joins too
        self._client = pair.probe.inside(connect)
        self._server, _ = self._listener.accept()
        self._server.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
        self._reader = Reader(self._server)
        self._threads = [threading.Thread(target=self._send), threading.Thread(target=self._receive)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        block = bytes(1 << 16)
        try:
            while True:
                self._server.sendall(block)
        except OSError:
            return

    def _receive(self) -> None:
        try:
            while self._client.recv(1 << 18):
                pass
        except OSError:
            return

    def acked(self) -> dict[str, int]:
        """Bytes by the probe's address."""
        flows = self._reader.read().subflows
        return {flow.remote.host: flow.tcp.bytes_acked or 0 for flow in flows if flow.remote is not None}

    def close(self) -> None:
        """Its queue is thrown away with it."""
        for end in (self._server, self._client):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        for end in (self._server, self._client, self._listener):
            end.close()


@contextmanager
def flow(pair: RadioPair, controller: str, protocol: int, source: str) -> Iterator[Flow]:
    made = Flow(pair, controller, protocol, source)
    try:
        yield made
    finally:
        made.close()


class SubflowLostError(Exception):
    """A lossy link takes one now and then, and nobody brings it back here."""


def measured(
    measure: Callable[[RadioPair, str, float], float], pair: RadioPair, arm: str, args: argparse.Namespace
) -> float:
    """Once with both subflows from beginning to end."""
    for _ in range(TRIES):
        try:
            return measure(pair, arm, args.seconds)
        except SubflowLostError:
            print(f"{arm}: a subflow was lost; again", file=sys.stderr, flush=True)
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


def joined(one: Flow) -> None:
    """Wait until both subflows carry."""
    until_s = time.monotonic() + 60
    while sum(got > 0 for got in one.acked().values()) < 2:
        if time.monotonic() > until_s:
            raise SubflowLostError
        time.sleep(0.05)


def shared(pair: RadioPair, arm: str, seconds: float) -> float:
    """Multipath TCP over TCP."""
    with flow(pair, arm, MPTCP, A) as many, flow(pair, "reno", TCP, A) as one:
        joined(many)
        got = between([many, one], 5, seconds)
        return sum(got[0].values()) / sum(got[1].values())


def disjoint(pair: RadioPair, arm: str, seconds: float) -> float:
    """Multipath TCP over what two TCP connections get of the same links."""
    with flow(pair, "reno", TCP, A) as a, flow(pair, "reno", TCP, B) as b:
        alone = between([a, b], 3, seconds)
    with flow(pair, arm, MPTCP, A) as many:
        joined(many)
        return sum(between([many], 3, seconds)[0].values()) / sum(sum(one.values()) for one in alone)


def congested(pair: RadioPair, arm: str, seconds: float) -> float:
    """Share of b with cross traffic over the share without."""
    with flow(pair, arm, MPTCP, A) as many:
        joined(many)
        (before,) = between([many], 5, seconds)
        with flow(pair, "reno", TCP, B), flow(pair, "reno", TCP, B):
            (after,) = between([many], 6, seconds)
    return share(after) / share(before)


def share(got: dict[str, int]) -> float:
    return got[B] / sum(got.values())


def interval(values: list[float]) -> tuple[float, float, float]:
    """Geometric mean and its 95 % interval."""
    logs = [math.log(v) for v in values]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return math.exp(middle), 0.0, math.inf
    freedom = max(k for k in STUDENT if k <= len(logs) - 1)
    half = STUDENT[freedom] * statistics.stdev(logs) / math.sqrt(len(logs))
    return math.exp(middle), math.exp(middle - half), math.exp(middle + half)


def table(
    title: str, pair: RadioPair, measure: Callable[[RadioPair, str, float], float], args: argparse.Namespace
) -> list[dict[str, Any]]:
    cells = [arm for arm in ARMS for _ in range(args.repetitions)]
    random.Random(args.seed).shuffle(cells)
    found: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for arm in cells:
        found[arm].append(measured(measure, pair, arm, args))
        print(f"{title.partition(':')[0]} {arm} {found[arm][-1]:.3f}", file=sys.stderr, flush=True)
    print(f"\n{title}\n{'':>6} {'n':>3} {'ratio':>7}   95 % interval")
    rows = []
    for arm, values in found.items():
        mean, low, high = interval(values)
        print(f"{arm:>6} {len(values):3d} {mean:7.2f}   {low:.2f} to {high:.2f}", flush=True)
        rows.append({"table": title, "arm": arm, "ratio": mean, "low": low, "high": high, "values": values})
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="to see that it works: no figures to go by")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the tables with every measurement as JSON too")
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
    rows: list[dict[str, Any]] = []
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
                    rows += table(title, pair, shared, args)
        if args.only in (None, "disjoint"):
            with radio_pair({"a": 8e6, "b": 4e6}, {"a": 30, "b": 50}, 100) as pair:
                rows += table("disjoint: 8 and 4 Mbit/s, 30 and 50 ms: Multipath TCP / two TCP", pair, disjoint, args)
        if args.only in (None, "congested"):
            with radio_pair({"a": 8e6, "b": 8e6}, {"a": 40, "b": 40}, 60) as pair:
                title = "congested: 8 Mbit/s each, 40 ms: share of b, two TCP on it / none"
                rows += table(title, pair, congested, args)
    if args.json is not None:
        args.json.write_text(json.dumps(rows, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
