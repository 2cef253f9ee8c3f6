"""What the reproductions of the papers' trends share: options, two links with the real endpoint, one experiment's run, quartiles, tables,
progress. Every figure comes out of an experiment's own result."""

from __future__ import annotations

import argparse
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the tests' support

import benching
from benching import Column, Row, say, table

from support.emulated_links import RadioPair, no_link, played_pair, served_pair
from support.experiment_process import parameters, run
from support.standalone_endpoint import lone_endpoint
from support.two_paths import SERVER, Space, why_not
from tandem.experiment.results import quantile
from tandem.mptcp import sysctls

SERVER_BUFFERS = {"net.ipv4.tcp_wmem": "4096 262144 33554432", "net.ipv4.tcp_rmem": "4096 131072 33554432"}
"""As the server's playbook sets them."""
PROGRESS_S = 5.0
RESAMPLED = 2000
LONGEST_S = 3600.0


Cell = TypeVar("Cell", bound=tuple[Any, ...])


class Spread(NamedTuple):
    """How many, median and quartiles; None without any."""

    n: int
    median: float | None
    q1: float | None
    q3: float | None


def spread(values: Iterable[float | None]) -> Spread:
    there = [v for v in values if v is not None]
    return Spread(len(there), quantile(there, 0.5), quantile(there, 0.25), quantile(there, 0.75))


def options(about: str | None, *, controller: str = "cubic") -> argparse.ArgumentParser:
    """The options that all have. Those of a script's own that default to None are filled by ``settle``."""
    parser = benching.parser(about, json_file="table, setting and every transfer as JSON too")
    parser.add_argument("--quick", action="store_true", help="a short form, to see that it works: no figures to go by")
    parser.add_argument("--seed", type=int, default=1, help="of the random order and all that is drawn (default: 1)")
    parser.add_argument("--repetitions", type=positive, metavar="N", help="of every cell of the table")
    parser.add_argument("--congestion-control", default=controller, metavar="NAME", help="at the sender (%(default)s)")
    return parser


def with_send_buffer(parser: argparse.ArgumentParser) -> None:
    told = "the sender's SO_SNDBUF (default: the kernel tunes it)"
    parser.add_argument("--send-buffer-bytes", type=positive, metavar="N", help=told)


def positive(text: str) -> int:
    """A whole number above 0, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: give 1 or more")
    return number


def settle(args: argparse.Namespace, full: Mapping[str, Any], quick: Mapping[str, Any]) -> None:
    """Fill what was not given from the form that is run; end with one line when this machine or a name cannot do it."""
    for name, value in {**full, **(quick if args.quick else {})}.items():
        if getattr(args, name) is None:
            setattr(args, name, value)
    lack = why_not() or no_link()
    if lack is not None:
        raise SystemExit(lack)
    if args.json is not None and not args.json.resolve().parent.is_dir():
        raise SystemExit(f"{args.json}: its folder does not exist; hint: make it first")


@dataclass
class Bench:
    """Two paths, ``a`` and ``b``, from the probe's namespace to the real endpoint in the server's."""

    pair: RadioPair
    server: dict[str, Any]

    def buffers(self, wanted: Mapping[str, str], *, probe: bool = True) -> None:
        """Set sysctls at the server, and at the probe. A refusal ends the script: nothing would be what it says."""
        for space in (self.pair.server, self.pair.probe) if probe else (self.pair.server,):
            for setting in space.inside(lambda: sysctls.apply(wanted)).values():
                if setting.error is not None:
                    raise SystemExit(f"{setting.name}: {setting.error}")

    def experiment(self, name: str, **own: Any) -> dict[str, Any]:
        """One experiment in the probe's namespace; its last line, and ``first_sample_ns`` of CLOCK_MONOTONIC. A network that fails
        is in it; what trying again cannot mend ends the script with one line; AssertionError with what it said where it told nothing."""
        line = run(self.pair, name, parameters(self.server, run="trend", **own), LONGEST_S)
        samples = (told["monotonic_ns"] for told in line.pop("lines") if told["type"] == "sample")
        line["first_sample_ns"] = next(samples, None)
        if line["failure"] is not None and not line["failure"]["retry"]:
            # A wrong name, say: no other transfer would do better.
            raise SystemExit(f"{name}: {line['failure']['reason']}")
        return line

    def setting(self, args: argparse.Namespace, links: str) -> dict[str, Any]:
        """What was measured with, told as the first lines of the output too."""
        there = self.pair.server.inside(lambda: sysctls.read(("net.mptcp.scheduler", *SERVER_BUFFERS)))
        probe = self.pair.probe.inside(lambda: sysctls.read(("net.mptcp.path_manager", *SERVER_BUFFERS)))
        found = {"kernel": platform.release(), "scheduler": there["net.mptcp.scheduler"]}
        found |= {"path_manager": probe["net.mptcp.path_manager"], "congestion_control": args.congestion_control}
        found |= {"server_tcp_wmem": there["net.ipv4.tcp_wmem"], "probe_tcp_wmem": probe["net.ipv4.tcp_wmem"]}
        found |= {"links": links, "send_buffer_bytes": getattr(args, "send_buffer_bytes", None)}
        found |= {"seed": args.seed, "repetitions": args.repetitions, "quick": args.quick}
        print(
            f"kernel {found['kernel']}, scheduler {found['scheduler']}, path manager {found['path_manager']}, controller "
            f"{found['congestion_control']}\nlinks: {links}\nseed {args.seed}, {args.repetitions} repetitions"
            + (f", send buffer {found['send_buffer_bytes']} B" if found["send_buffer_bytes"] else "")
            + (", quick form: no figures to go by" if args.quick else ""),
            flush=True,
        )
        return found


@contextmanager
def bench(mbit: Mapping[str, float], rtt_ms: Mapping[str, float], queue_ms: float) -> Iterator[Bench]:
    """Links of constant rate and delay, the server with its playbook's buffers."""
    with served_pair(mbit, rtt_ms, queue_ms) as (pair, server):
        made = Bench(pair, server)
        made.buffers(SERVER_BUFFERS, probe=False)
        yield made


@contextmanager
def played_bench(timelines: Mapping[str, Path], lead_s: float) -> Iterator[tuple[Bench, int]]:
    """Links that play timelines, the server with its playbook's buffers; the instant from which on they play (CLOCK_MONOTONIC ns),
    ``lead_s`` after all else was ready."""
    with tempfile.TemporaryDirectory() as folder:

        def serve(space: Space) -> AbstractContextManager[dict[str, Any]]:
            return lone_endpoint(space, SERVER, Path(folder))

        with played_pair(timelines, lead_s, serve) as (pair, server, epoch_ns):
            made = Bench(pair, server)
            made.buffers(SERVER_BUFFERS, probe=False)
            yield made, epoch_ns


def interval(values: Sequence[float], chance: random.Random) -> tuple[float | None, float | None, float | None]:
    """Their median, and from where to where it is in 95 % (resampled); None of none."""
    medians = [quantile(chance.choices(values, k=len(values)), 0.5) or 0.0 for _ in range(RESAMPLED if values else 0)]
    return quantile(values, 0.5), quantile(medians, 0.025), quantile(medians, 0.975)


@dataclass
class Progress:
    """Lines on stderr, one every few seconds: how far, how long, how long still."""

    of: int
    what: str
    begun_s: float = field(default_factory=time.monotonic)
    done: int = 0
    told_s: float = 0.0

    def step(self, now_doing: str = "") -> None:
        self.done += 1
        now = time.monotonic()
        if now - self.told_s < PROGRESS_S and self.done < self.of:
            return
        self.told_s, gone = now, now - self.begun_s
        left = gone / self.done * (self.of - self.done)
        say(f"{self.done}/{self.of} {self.what}, {gone:.0f} s, about {left:.0f} s left {now_doing}")


def in_random_order(args: argparse.Namespace, cells: Sequence[Cell]) -> Iterator[tuple[int, Cell]]:
    """Every cell once in each repetition, and the repetition's number; says how far it is."""
    chance, order = random.Random(args.seed), list(cells)
    progress = Progress(args.repetitions * len(order), "downloads")
    for repetition in range(args.repetitions):
        chance.shuffle(order)
        for cell in order:
            yield repetition, cell
            progress.step(f"(last: {', '.join(map(str, cell))})")


def quartiles(heading: str, form: str, of: str | Callable[[Row], Spread]) -> list[Column]:
    """Columns for a ``Spread`` of a row: median and quartiles."""

    def part(name: str) -> Callable[[Row], Any]:
        return lambda row: getattr(row[of] if isinstance(of, str) else of(row), name)

    return [(heading, form, part("median")), ("q1", form, part("q1")), ("q3", form, part("q3"))]


def finish(
    args: argparse.Namespace, setting: dict[str, Any], columns: Sequence[Column], rows: list[Row], measured: Any
) -> int:
    """Print the table, and write the JSON, when asked for."""
    table(columns, rows)
    benching.keep(args.json, {"setting": setting, "table": rows, "measured": measured}, _plain)
    return 0


def _plain(value: object) -> Any:
    if isinstance(value, Path):
        return str(value)
    return asdict(value)  # type: ignore[call-overload]  # whatever else is no plain value is a dataclass, or the TypeError it deserves
