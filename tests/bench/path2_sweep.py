"""Adarsh's grid: downloads of several sizes while path 2's delay or loss grows, by TCP over one path and by Multipath TCP with either as
its primary, all in one random order (Adarsh et al., §IV.B). Path 1 is the bench's ``a``, path 2 its ``b``."""

from __future__ import annotations

import random
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from trends import Bench, Progress, Spread, spread, with_send_buffer

NUMBER = {"a": 1, "b": 2}


class Condition(NamedTuple):
    """What path 2 is like, and with it both: ``rtt_ms`` of path 2; loss of what the probe receives, 0 to 1, by path."""

    rtt_ms: float
    loss_1: float
    loss_2: float


class Way(NamedTuple):
    """``path``: the only one of TCP, the primary of Multipath TCP."""

    kind: str
    path: str

    @property
    def name(self) -> str:
        """As tables and pictures say it."""
        return f"TCP over {NUMBER[self.path]}" if self.kind == "tcp" else f"MPTCP from {NUMBER[self.path]}"


TCP_1, TCP_2, MPTCP_1, MPTCP_2 = Way("tcp", "a"), Way("tcp", "b"), Way("mptcp", "a"), Way("mptcp", "b")


class Cell(NamedTuple):
    """What is measured several times."""

    condition: Condition
    bytes: int
    way: Way


@dataclass
class Transfer:
    """One of them: the experiment's own figures. ``goodput_mbit_s``: from the SYN to the last byte. ``share_2``: of the bytes that
    TCP received. ``failure``: its words, the figures None then."""

    cell: Cell
    repetition: int
    goodput_mbit_s: float | None = None
    duration_s: float | None = None
    connect_ms: float | None = None
    share_2: float | None = None
    join_delay_ms: float | None = None
    fallback: bool | None = None
    failure: str | None = None


def with_links(parser: ArgumentParser) -> None:
    """The options that both of its scripts have."""
    parser.add_argument("--bytes", type=int, nargs="+", metavar="N", help="sizes (default: 128 KB to 2 MB, or to 8 MB)")
    queue = "what a link's queue holds (default: %(default)s)"
    lost = "on path 2, of what the probe receives"
    parser.add_argument("--loss-percent", type=float, nargs="+", metavar="P", help=lost)
    parser.add_argument("--mbit", type=float, default=100.0, help="of each path (100; the paper: 1000)")
    parser.add_argument("--queue-ms", type=float, default=100.0, help=queue)
    with_send_buffer(parser)


def measure(bench: Bench, cells: Sequence[Cell], args: Namespace) -> list[Transfer]:
    """Every cell so many times. Ctrl-C ends it early: what is left out is told as failed."""
    order = [Transfer(cell, n) for cell in cells for n in range(args.repetitions)]
    random.Random(f"tandem path 2 {args.seed}").shuffle(order)
    progress = Progress(len(order), "transfers")
    try:
        for one in order:
            _measure(bench, one, args)
            told, count, way = one.cell
            progress.step(f"(last: {way.name}, {size(count)}, {told.rtt_ms:g} ms, {told.loss_2:.1%} lost)")
    except KeyboardInterrupt:  # in a random order what there is is no worse than all of it, but less
        print(f"stopped after {progress.done} of {len(order)} transfers; the table has those", file=sys.stderr)
        for one in order[progress.done :]:
            one.failure = "not measured"
    return order


def _measure(bench: Bench, one: Transfer, args: Namespace) -> None:
    condition, way = one.cell.condition, one.cell.way
    bench.pair.tell("a", f"down loss {condition.loss_1}")
    bench.pair.tell("b", f"both delay_us {condition.rtt_ms * 500}", f"down loss {condition.loss_2}")
    asked = {"kind": way.kind, "path": way.path, "bytes": one.cell.bytes, "control_timeout_s": 4, "deadline_s": 90}
    asked |= {"congestion_control": args.congestion_control, "send_buffer_bytes": args.send_buffer_bytes}
    line = bench.experiment("download", **asked, whoami=False)  # nothing is translated between here and there
    result = line["result"]
    if line["failure"] is not None or result is None:
        one.failure = "no result" if line["failure"] is None else line["failure"]["reason"]
        return
    one.goodput_mbit_s = result["goodput_bit_per_s"] / 1e6
    one.duration_s, one.connect_ms, one.fallback = result["duration_s"], result["connect_ms"], result["fallback"]
    one.share_2 = sum(s["share"] for s in result["subflows"] if s["path"] == "b")
    one.join_delay_ms = next((s["join_delay_ms"] for s in result["subflows"] if s["join_delay_ms"] is not None), None)


def of(found: Iterable[Transfer], condition: Condition, size_bytes: int, way: Way) -> list[Transfer]:
    """A cell's transfers, by repetition, failed ones among them."""
    return sorted((t for t in found if t.cell == Cell(condition, size_bytes, way)), key=lambda t: t.repetition)


def goodput(found: Iterable[Transfer]) -> Spread:
    """Mbit/s."""
    return spread(t.goodput_mbit_s for t in found)


def share_2(found: Iterable[Transfer]) -> Spread:
    """Per cent over path 2."""
    return spread(None if t.share_2 is None else t.share_2 * 100 for t in found)


def failed(found: Iterable[Transfer]) -> int:
    return sum(t.failure is not None for t in found)


def size(count: int) -> str:
    """As the paper writes it; K is 1024."""
    return f"{count >> 20} MB" if count >= 1 << 20 else f"{count >> 10} KB"
