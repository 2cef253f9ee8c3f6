"""``tandem-server traces list|get|analyse|verify``: what probes sent up, fetched, analysed and verified again by hash."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.cli.analyse import on_dask
from tandem_server.cli.command import (
    Actions,
    ConfigError,
    add_command,
    check_probe,
    hinted,
    whole_from_1,
)
from tandem_server.cli.configuration import load
from tandem_server.cli.log import log_to_stderr
from tandem_server.cli.stores import LONG_STATEMENT_S, TraceStores, open_influx, open_registry
from tandem_server.cli.worker import process_pool, tabling
from tandem_server.durable import whole_file
from tandem_server.registry import Registry, TablesOf, TraceRow, Unfinished
from tandem_server.uploads.store import NotTheFile, copy_out
from tandem_server.utc import utc

_EXAMPLES = """examples:
  tandem-server traces list --run run-0123456789ab
  tandem-server traces get captures/run-0123456789ab-a.pcap --probe probe-1 -o a.pcap
  tandem-server traces analyse --all            tables of all that has none yet, and of what failed before
  tandem-server traces verify --json            every trace read and hashed anew; exit 1 when one is damaged or gone"""
_LIST = (
    "List received traces: when, who made it (the probe, or the server of a run with capture = both), bytes of the file, name, the "
    "place where it is stored (.gz: as gzip); of captures whether "
    "their tables are made: waiting, analysed, or failed and why."
)
_GET = "Fetch one trace out of the store. The file is written only if its SHA-256 is the one that the probe promised."
_VERIFY = "Read traces out of the store and compare length and SHA-256. Exit status 1 when one is damaged or gone."
_ANALYSE = (
    "Make the tables of captures that came and have none yet, as the server does by itself ([traces] analyse): those of "
    "a run are read together once all of them are here, or a day after the newest came. What is broken is marked with its reason "
    "and costs itself only. It may be broken off: called again, it goes on."
)
_STATUS = (
    "Exit status: 0 what was due is analysed, 1 some could not be and are named, 2 usage, 3 no room, no native pass, a bucket "
    "or Dask workers out of reach. --json: analysed, waiting (for others of their runs), failed (probe, name, why)."
)


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "traces",
        help="list, fetch, analyse and verify the captures and files that probes sent up",
        description="Traces: captures and other files of runs that probes sent up. Each was verified against its SHA-256 when it came.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = add_command(actions, "list", _list, "received traces and where they are", _LIST, json="as JSON")
    listing.add_argument("--unfinished", action="store_true", help="those on their way instead, and how far they are")
    getting = add_command(actions, "get", _get, "write one trace to a file, unpacked and verified", _GET)
    getting.add_argument("name", metavar="NAME", help="as `list` shows it, or the file's SHA-256")
    getting.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: NAME's last part, here; - for stdout"
    )
    analysing = add_command(
        actions,
        "analyse",
        _analyse,
        "make the tables of captures that have none yet",
        _ANALYSE,
        json="as JSON",
        epilog=_STATUS,
    )
    analysing.add_argument(
        "--all", action="store_true", help="also what failed before, and what waits for other captures of its run"
    )
    where = analysing.add_mutually_exclusive_group()
    where.add_argument(
        "--workers", type=whole_from_1, metavar="N", help="processes (default: [traces] analyse_workers)"
    )
    where.add_argument(
        "--dask",
        metavar="ADDRESS",
        help="on the workers of the Dask scheduler there, as `tandem-server analyse --dask`: they share the folder of traces",
    )
    verifying = add_command(actions, "verify", _verify, "read and hash every trace anew", _VERIFY, json="as JSON")
    for sub in (listing, getting, analysing, verifying):
        sub.add_argument("--probe", metavar="NAME", help="of this probe only")
    for sub in (listing, getting, verifying):
        sub.add_argument("--run", metavar="ID", help="of this run only")


def _received(args: Namespace, registry: Registry) -> list[TraceRow]:
    check_probe(registry, args.probe)
    return registry.traces.received(args.probe, args.run)


def _list(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = _received(args, registry)
        if args.unfinished:
            return _unfinished(registry, args)
        tables = registry.trace_tables.of(args.probe)
    if args.json:
        print(
            json.dumps([{**_to_dict(row), **_of_tables(tables.get((row.probe, row.name)))} for row in rows], indent=1)
        )
        return 0
    for row in rows:
        own = _of_tables(tables.get((row.probe, row.name)))
        why = "" if own["tables_why"] is None else f": {own['tables_why']}"
        state = "" if own["tables"] is None else f"  {own['tables']}{why}"
        print(
            f"{utc(row.received_utc_ns)}  {row.probe:<16} {_side(row):<6} {row.bytes:>13}  {row.name}  {row.place}{state}"
        )
    return 0


def _of_tables(its: TablesOf | None) -> dict[str, str | None]:
    return {"tables": None if its is None else its.state, "tables_why": None if its is None else its.why}


def _side(row: TraceRow) -> str:
    """Who made it: ``probe``, or ``server`` of its own captures."""
    return "server" if row.name.startswith(SERVER_CAPTURES) else "probe"


def _to_dict(row: TraceRow) -> dict[str, Any]:
    return {
        "probe": row.probe, "side": _side(row), "name": row.name, "run": row.run, "bytes": row.bytes, "sha256": row.sha256,
        "received": utc(row.received_utc_ns), "received_utc_ns": row.received_utc_ns, "place": row.place,
        "encoding": row.encoding, "stored_bytes": row.stored_bytes,
    }  # fmt: skip


def _unfinished(registry: Registry, args: Namespace) -> int:
    rows = [one for one in registry.pending_uploads.unfinished(args.probe) if args.run in (None, one.run)]
    if args.json:
        print(json.dumps([_on_its_way(one) for one in rows], indent=1))
        return 0
    for one in rows:
        share = f"{one.checked_bytes} of {one.stream_bytes}"
        print(f"{utc(one.touched_utc_ns)}  {one.probe:<16} {share:>24}  {one.name}")
    return 0


def _on_its_way(one: Unfinished) -> dict[str, Any]:
    return {
        "probe": one.probe, "name": one.name, "run": one.run, "bytes": one.bytes, "sha256": one.sha256,
        "checked_bytes": one.checked_bytes, "stream_bytes": one.stream_bytes, "failed": one.failed,
        "offered": utc(one.offered_utc_ns), "touched": utc(one.touched_utc_ns),
    }  # fmt: skip


def _the_one(rows: list[TraceRow], name: str) -> TraceRow:
    found = [row for row in rows if row.name == name] or [row for row in rows if row.sha256 == name]
    if not found:
        raise ConfigError(f"no trace {name!r}; hint: tandem-server traces list")
    if len({(row.probe, row.sha256) for row in found}) > 1:
        probes = ", ".join(sorted({row.probe for row in found}))
        raise ConfigError(f"{name!r} is of {probes}; hint: name one with --probe")
    return found[0]


def _get(args: Namespace) -> int:
    config, output = load(args.config), args.output
    with open_registry(config) as registry:
        row = _the_one(_received(args, registry), args.name)
    stores = TraceStores(config)
    if output is not None and str(output) == "-":
        return _to_stdout(stores, row)
    target = output or Path(row.name.rsplit("/", 1)[-1])
    if target.is_dir():
        target = target / row.name.rsplit("/", 1)[-1]
    if target.exists():
        raise ConfigError(f"{target} is there already; hint: name another file with -o, or move it away")
    try:
        with whole_file(target) as file:
            copy_out(stores.at(row.place), row, file.write)
    except NotTheFile as error:
        return _status_of(row, str(error))
    print(target)
    return 0


def _to_stdout(stores: TraceStores, row: TraceRow) -> int:
    """What is damaged is named afterwards: it went out as it was read."""
    damage = _damage(stores, row, sys.stdout.buffer.write)
    sys.stdout.buffer.flush()
    return _status_of(row, damage)


def _status_of(row: TraceRow, damage: str | None) -> int:
    if damage is None:
        return 0
    print(f"tandem-server: {row.place}: {damage}", file=sys.stderr)
    return 1


def _damage(stores: TraceStores, row: TraceRow, write: Callable[[bytes], object] = lambda _: None) -> str | None:
    """What is wrong with the file, which ``write`` gets as it is read; None: nothing."""
    try:
        copy_out(stores.at(row.place), row, write)
    except NotTheFile as error:
        return str(error)
    return None


def _verify(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        rows = _received(args, registry)
    damaged, shown = 0, []
    for row, damage in _verified(TraceStores(config), rows):
        damaged += damage is not None
        if args.json:
            shown.append({**_to_dict(row), "ok": damage is None, "damage": damage})
        elif damage is not None:
            print(f"{row.probe}  {row.name}  {row.place}: {damage}")
    if args.json:
        print(json.dumps(shown, indent=1))
    else:
        print(f"{len(rows)} traces, {damaged} damaged")
    return 1 if damaged else 0


def _verified(stores: TraceStores, rows: list[TraceRow]) -> Iterator[tuple[TraceRow, str | None]]:
    """Each trace with what is wrong with it. A place that several names share is read once."""
    seen: dict[str, str | None] = {}
    for row in rows:
        if row.place not in seen:
            seen[row.place] = _damage(stores, row)
        yield row, seen[row.place]


def _analyse(args: Namespace) -> int:
    from tandem_server.analysis.traces.manifest import ManifestError

    config = load(args.config)
    log_to_stderr()
    with open_registry(config) as registry, contextlib.ExitStack() as stack:
        check_probe(registry, args.probe)
        workers = args.workers or config.traces.analyse_workers
        pool = process_pool(workers) if args.dask is None else on_dask(stack, args.dask)
        own = tabling(config, registry, pool, open_influx(config).patient(LONG_STATEMENT_S))
        with hinted("make room, or see that the store answers; call it again", OSError, ManifestError):
            done = own.turn(time.time_ns(), args.probe, everything=args.all)
    if args.json:
        failed = [{"probe": p, "name": name, "why": why} for p, name, why in done.failed]
        print(json.dumps({"analysed": done.analysed, "waiting": done.waiting, "failed": failed}, indent=1))
    else:
        counts = f"{done.analysed} captures analysed, {len(done.failed)} failed"
        print(f"{counts}, {done.waiting} wait for others of their runs")
    return 1 if done.failed else 0
