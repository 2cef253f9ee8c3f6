"""``tandem-server analyse``: captures → connections as a table, JSON or Parquet."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends

if TYPE_CHECKING:
    from tandem_server.analysis.traces.batch import Analysed
    from tandem_server.analysis.traces.processes import Task

    Pool = Callable[[Sequence[list[str]], Task], Iterator[Analysed]]

BAR = 30


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "analyse",
        help="tell of every TCP and Multipath TCP connection in captures: goodput, RTT, losses, reordering, events",
        description="Read captures (pcap, pcapng, also in gzip or zstd) once and tell of every connection and its subflows: goodput, RTT,"
        " what was sent twice, data-level reordering, handshakes and events. Printed as a table for people or as JSON; with --out also"
        " written as Parquet tables, by bins of time.",
        epilog="Exit status: 0 when every file was analysed, 1 when some could not be (each is named), 2 when the command is wrong,"
        " 3 when this machine lacks something. What could be read of a cut or damaged capture is analysed; what could not is named by"
        " packet number. The keys of --json: docs/reference/captures.md; the Parquet tables:"
        " docs/reference/captures.md.",
    )
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="a capture, or a folder: in it and below every *.pcap and *.pcapng, also with .gz or .zst behind "
        "(what is in xz or bzip2 is named, not read)",
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="read all these captures as one, in the order of time: those that one machine made of its interfaces, one each, so that the"
        " subflows of a connection are found together",
    )
    parser.add_argument("--json", action="store_true", help="print a JSON array with an object for each connection")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write tables there as Parquet; called again, goes on where it was stopped, and analyses only"
        " what is new or changed: what is printed is of that",
    )
    parser.add_argument(
        "--bins", type=_bins, default=100.0, metavar="MS", help="width of a bin in milliseconds (default: 100)"
    )
    parser.add_argument("--packets", action="store_true", help="with --out: a row for each packet, too (large)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=count, metavar="N", help="processes that analyse at once (default: one a processor)"
    )
    where.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="analyse on the workers of the Dask scheduler there (tcp://HOST:8786), on other machines too: captures and DIR are in"
        " folders that all of them share under the same names (needs distributed, here and there). On trust: whoever reaches the scheduler"
        " or a worker runs what they like there, and what comes back is unpickled here; only within a network of your own",
    )
    parser.add_argument(
        "--batch",
        type=count,
        metavar="FILES",
        help="files that a process is given at once at most, and that one part of each table holds (default: 100, or 256 MiB of them)",
    )
    parser.set_defaults(func=_analyse)


def count(told: str) -> int:
    """A whole number from 1."""
    if not told.isdecimal() or int(told) < 1:
        raise argparse.ArgumentTypeError(f"{told!r} is not a whole number from 1")
    return int(told)


def _bins(told: str) -> float:
    try:
        width = float(told)
    except ValueError:
        width = 0.0
    if not 0.001 <= width <= 86_400_000:
        raise argparse.ArgumentTypeError(f"{told!r} is not a width in milliseconds from 0.001 to 86400000")
    return width


def need_native_pass() -> None:
    """EnvironmentLacks where it is not built."""
    try:
        importlib.import_module("tandem_server.tandem_trace_core")
    except ImportError as error:
        raise EnvironmentLacks(
            "the native pass over captures is not built; hint: ./kit setup, or a server's wheel for this processor"
        ) from error


@with_plain_ends
def _analyse(args: Namespace) -> int:
    if args.packets and args.out is None:
        raise ConfigError("--packets are rows of a table; hint: --out DIR")
    need_native_pass()
    found_module = importlib.import_module("tandem_server.analysis.traces.batch")
    found = found_module.find(args.files)
    for folder in found.empty:
        print(f"tandem-server analyse: {folder}: no capture in it (*.pcap, *.pcapng, .gz, .zst)", file=sys.stderr)
    for place, why in found.unread:
        print(f"tandem-server analyse: {place}: not searched: {why}", file=sys.stderr)
    if not found.paths and not found.unread:
        raise ConfigError("nothing to analyse; hint: name captures, or a folder with captures in it")
    if args.together:
        found.paths = [importlib.import_module("tandem_server.analysis.traces.manifest").TOGETHER.join(found.paths)]
    batches = found_module.batches(found.paths, args.batch or found_module.MOST_FILES)
    bin_ns = round(args.bins * 1e6)
    told = _Telling(args.json, sys.stdout)
    with contextlib.ExitStack() as stack:
        on = _workers(args, apart=not found_module.small(batches)) if args.dask is None else on_dask(stack, args.dask)
        if args.out is not None:
            batches = _go_on(stack, args.out, batches, bin_ns, args.packets, len(found.paths))
        results = on(batches, _task(bin_ns, args.packets, args.out))
        bar = stack.enter_context(_bar(sum(map(len, batches)), sys.stderr))
        failed = bool(found.unread)
        told.begin()
        for batch, result in zip(batches, _whole(results, args.out), strict=True):
            told.batch(result)
            failed |= bool(result.failed)
            bar(len(batch))
        told.end()
        if args.out is not None:
            importlib.import_module("tandem_server.analysis.traces.manifest").tidy(args.out)
    return 1 if failed else 0


def _task(bin_ns: int, packets: bool, out: Path | None) -> Task:
    """Absolute: a worker elsewhere has another folder."""
    batch = importlib.import_module("tandem_server.analysis.traces.batch")
    return functools.partial(batch.process_batch, bin_ns=bin_ns, packets=packets, out=out and out.absolute())


def _say(line: str) -> None:
    print(f"tandem-server analyse: {line}", file=sys.stderr)


def _workers(args: Namespace, *, apart: bool) -> Pool:
    processes = importlib.import_module("tandem_server.analysis.traces.processes")
    workers = args.workers or processes.processors()
    return functools.partial(processes.analysed, workers=workers, apart=apart, say=_say)


def on_dask(stack: contextlib.ExitStack, address: str) -> Pool:
    """Batches on a Dask cluster whose workers can all write to where the task does (its ``out``); ConfigError, EnvironmentLacks."""
    try:
        dask_cluster = importlib.import_module("tandem_server.analysis.traces.dask_cluster")
    except ImportError as error:
        if "distributed" not in str(error):
            raise
        raise EnvironmentLacks(str(error)) from error
    try:
        client = stack.enter_context(dask_cluster.cluster(address))
    except dask_cluster.AddressError as error:
        raise ConfigError(str(error)) from error

    def analysed(batches: Sequence[list[str]], task: Task) -> Iterator[Analysed]:
        try:
            dask_cluster.check(client, address, getattr(task, "keywords", {}).get("out"))
            yield from dask_cluster.analysed(client, batches, task, say=_say)
        except dask_cluster.ClusterError as error:
            raise EnvironmentLacks(str(error)) from error

    return analysed


def _go_on(
    stack: contextlib.ExitStack, out: Path, batches: list[list[str]], bin_ns: int, packets: bool, named: int
) -> list[list[str]]:
    manifest = importlib.import_module("tandem_server.analysis.traces.manifest")
    folder = importlib.import_module("tandem_server.analysis.traces.batch")
    try:
        stack.enter_context(manifest.alone(out))
        left: list[list[str]] = folder.go_on(out, batches, bin_ns, packets)
    except manifest.ManifestError as error:
        raise ConfigError(str(error)) from error
    if done := named - sum(map(len, left)):
        print(f"tandem-server analyse: {done} of {named} captures are in {out} already", file=sys.stderr)
    return left


def _whole(results: Iterator[Analysed], out: Path | None) -> Iterator[Analysed]:
    try:
        yield from results
    except OSError as error:  # of what is read, each file's own line has told
        raise EnvironmentLacks(
            f"{error.filename or out}: {error.strerror or error}; hint: make room, or let this user write there; call it again"
        ) from error


class _Telling:
    """What is printed, batch by batch: nothing is kept."""

    def __init__(self, as_json: bool, to: TextIO) -> None:
        self._json, self._to, self._any = as_json, to, False
        in_text = importlib.import_module("tandem_server.analysis.traces.connections")
        self._lines, self._heads = in_text.lines, in_text.HEADS
        self._no_tcp = importlib.import_module("tandem_server.analysis.traces.batch").NO_TCP

    def begin(self) -> None:
        if self._json:
            print("[", end="", file=self._to)

    def batch(self, result: Analysed) -> None:
        for connection in result.connections:
            if self._json:
                told = json.dumps(connection, ensure_ascii=False, allow_nan=False)
                print(",\n" if self._any else "\n", told, sep="", end="", file=self._to)
            else:
                print(*([] if self._any else [self._heads]), self._lines(connection), sep="\n", file=self._to)
            self._any = True
        self._to.flush()
        for problem in result.problems:
            at = "" if problem.packet is None else f", first at packet {problem.packet}"
            told = f"{problem.kind.replace('_', ' ')}, {problem.count} times{at}"
            if problem.kind == self._no_tcp:
                told = f"{problem.count} packets held no readable TCP"
            _say(f"{problem.file}: {told}")
        for path, why in result.failed:
            _say(f"{path}: not analysed: {why}")

    def end(self) -> None:
        if self._json:
            print("\n]" if self._any else "]", file=self._to)


@contextlib.contextmanager
def _bar(files: int, to: TextIO) -> Iterator[Callable[[int], None]]:
    """Counts files on a terminal; elsewhere says nothing."""
    if not to.isatty():
        yield lambda _: None
        return
    done = 0

    def draw(more: int) -> None:
        nonlocal done
        done += more
        full = BAR * done // max(files, 1)
        to.write(f"\r\x1b[K{'█' * full}{'░' * (BAR - full)} {done} of {files} captures")
        to.flush()

    draw(0)
    try:
        yield draw
    finally:
        to.write("\r\x1b[K")
        to.flush()
