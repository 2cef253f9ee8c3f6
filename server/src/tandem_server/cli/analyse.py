"""``tandem-server analyse``: captures → connections as a table, JSON or Parquet."""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from tandem_server.cli.command import (
    Actions,
    ConfigError,
    EnvironmentLacks,
    add_command,
    need_native_pass,
    whole_from_1,
    within,
)

if TYPE_CHECKING:
    from tandem_server.analysis.traces.batch import Analysed
    from tandem_server.analysis.traces.processes import Task

    Pool = Callable[[Sequence[list[str]], Task], Iterator[Analysed]]

BAR = 30


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "analyse",
        _analyse,
        "report on every TCP and Multipath TCP connection in captures: goodput, RTT, losses, reordering, events",
        "Read captures (pcap, pcapng, also in gzip or zstd) once and report on every connection and its subflows: goodput, RTT,"
        " what was sent twice, data-level reordering, handshakes and events. Printed as a table for people or as JSON; with --out also"
        " written as Parquet tables, by bins of time.",
        json="print a JSON array with an object for each connection",
        config=False,
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
        " subflows of a connection are found together; in a folder those are that lie in captures/ under the name of one run or pair",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="write tables there as Parquet; called again, goes on where it was stopped, and analyses only"
        " what is new or changed: what is printed is of that",
    )
    parser.add_argument(
        "--bins",
        type=within(0.001, 86_400_000, "a width in milliseconds from 0.001 to 86400000"),
        default=100.0,
        metavar="MS",
        help="width of a bin in milliseconds (default: 100)",
    )
    parser.add_argument("--packets", action="store_true", help="with --out: a row for each packet, too (large)")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=whole_from_1, metavar="N", help="processes that analyse at once (default: one a processor)"
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
        type=whole_from_1,
        metavar="FILES",
        help="files that a process is given at once at most, and that one part of each table holds (default: 100, or 256 MiB of them)",
    )


def _analyse(args: Namespace) -> int:
    if args.packets and args.out is None:
        raise ConfigError("--packets are rows of a table; hint: --out DIR")
    need_native_pass()
    from tandem_server.analysis.traces import batch, manifest, processes

    found = batch.find(args.files)
    for folder in found.empty:
        _say(f"{folder}: no capture in it (*.pcap, *.pcapng, .gz, .zst)")
    for place, why in found.unread:
        _say(f"{place}: not searched: {why}")
    if not found.paths and not found.unread:
        raise ConfigError("nothing to analyse; hint: name captures, or a folder with captures in it")
    if args.together:
        found.paths = [manifest.TOGETHER.join(found.paths)]
    batches = batch.batches(found.paths, args.batch or batch.MOST_FILES)
    bin_ns, out = round(args.bins * 1e6), args.out
    # Absolute: a worker elsewhere has another folder.
    task = functools.partial(batch.process_batch, bin_ns=bin_ns, packets=args.packets, out=out and out.absolute())
    printing, failed = _Printing(args.json, sys.stdout), bool(found.unread)
    with contextlib.ExitStack() as stack:
        pool: Pool = (
            functools.partial(
                processes.analysed,
                workers=args.workers or processes.processors(),
                apart=not batch.small(batches),
                say=_say,
            )
            if args.dask is None
            else on_dask(stack, args.dask)
        )
        if out is not None:
            stack.enter_context(manifest.alone(out))
            batches = batch.go_on(out, batches, bin_ns, args.packets)
            if done := len(found.paths) - sum(map(len, batches)):
                _say(f"{done} of {len(found.paths)} captures are in {out} already")
        results = pool(batches, task)
        bar = stack.enter_context(_bar(sum(map(len, batches)), sys.stderr))
        printing.begin()
        for some, result in zip(batches, _whole(results, out), strict=True):
            printing.batch(result)
            failed |= bool(result.failed)
            bar(len(some))
        printing.end()
        if out is not None:
            manifest.tidy(out)
    return 1 if failed else 0


def _say(line: str) -> None:
    print(f"tandem-server analyse: {line}", file=sys.stderr)


def on_dask(stack: contextlib.ExitStack, address: str) -> Pool:
    """Batches on a Dask cluster whose workers can all write to where the task does (its ``out``). AddressError, ClusterError."""
    try:
        from tandem_server.analysis.traces import dask_cluster
    except ImportError as error:
        if "distributed" not in str(error):
            raise
        raise EnvironmentLacks(str(error)) from error
    client = stack.enter_context(dask_cluster.cluster(address))

    def analysed(batches: Sequence[list[str]], task: Task) -> Iterator[Analysed]:
        dask_cluster.check(client, address, getattr(task, "keywords", {}).get("out"))
        yield from dask_cluster.analysed(client, batches, task, say=_say)

    return analysed


def _whole(results: Iterator[Analysed], out: Path | None) -> Iterator[Analysed]:
    try:
        yield from results
    except OSError as error:  # of what is read, each file has a line of its own
        raise EnvironmentLacks(
            f"{error.filename or out}: {error.strerror or error}; hint: make room, or let this user write there; call it again"
        ) from error


class _Printing:
    """What is printed, batch by batch: nothing is kept."""

    def __init__(self, as_json: bool, to: TextIO) -> None:
        from tandem_server.analysis.traces.batch import NO_TCP
        from tandem_server.analysis.traces.connections import HEADS, lines

        self._json, self._to, self._any = as_json, to, False
        self._lines, self._heads, self._no_tcp = lines, HEADS, NO_TCP

    def begin(self) -> None:
        if self._json:
            print("[", end="", file=self._to)

    def batch(self, result: Analysed) -> None:
        for connection in result.connections:
            if self._json:
                shown = json.dumps(connection, ensure_ascii=False, allow_nan=False)
                print(",\n" if self._any else "\n", shown, sep="", end="", file=self._to)
            else:
                print(*([] if self._any else [self._heads]), self._lines(connection), sep="\n", file=self._to)
            self._any = True
        self._to.flush()
        for problem in result.problems:
            at = "" if problem.packet is None else f", first at packet {problem.packet}"
            what = f"{problem.kind.replace('_', ' ')}, {problem.count} times{at}"
            if problem.kind == self._no_tcp:
                what = f"{problem.count} packets held no readable TCP"
            _say(f"{problem.file}: {what}")
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
