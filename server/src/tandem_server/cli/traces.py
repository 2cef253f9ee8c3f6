"""``tandem-server traces list|get|analyse|verify``: what probes sent up, fetched, analysed and verified again by hash."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.schema.trace import SERVER_CAPTURES
from tandem_server.cli import traces_analyse
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry
from tandem_server.cli.trace_stores import Stores
from tandem_server.registry import Registry, TablesOf, TraceRow, Unfinished
from tandem_server.uploads.store import NotTheFile, TraceStore, TraceStoreDown, content_of, file_parts

_EXAMPLES = """examples:
  tandem-server traces list --run run-0123456789ab
  tandem-server traces get captures/run-0123456789ab-a.pcap --probe probe-1 -o a.pcap
  tandem-server traces analyse --all            tables of all that has none yet, and of what failed before
  tandem-server traces verify --json            every trace read and hashed anew; exit 1 when one is damaged or gone"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "traces",
        help="list, fetch, analyse and verify the captures and files that probes sent up",
        description="Traces: captures and other files of runs that probes sent up. Each was verified against its SHA-256 when it came.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="received traces and where they are", description=_LIST)
    listing.add_argument("--unfinished", action="store_true", help="those on their way instead, and how far they are")
    getting = actions.add_parser("get", help="write one trace to a file, unpacked and verified", description=_GET)
    getting.add_argument("name", metavar="NAME", help="as `list` shows it, or the file's SHA-256")
    getting.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: NAME's last part, here; - for stdout"
    )
    traces_analyse.add_action(actions)
    verifying = actions.add_parser("verify", help="read and hash every trace anew", description=_VERIFY)
    for sub in (listing, getting, verifying):
        add_config(sub)
        sub.add_argument("--probe", metavar="NAME", help="of this probe only")
        sub.add_argument("--run", metavar="ID", help="of this run only")
        sub.set_defaults(func=_traces)
    for sub in (listing, verifying):
        sub.add_argument("--json", action="store_true", help="as JSON")


_LIST = (
    "List received traces: when, who made it (the probe, or the server of a run with capture = both), bytes of the file, name, the "
    "place where it is stored (.gz: as gzip); of captures whether "
    "their tables are made: waiting, analysed, or failed and why."
)
_GET = "Fetch one trace out of the store. The file is written only if its SHA-256 is the one that the probe promised."
_VERIFY = "Read traces out of the store and compare length and SHA-256. Exit status 1 when one is damaged or gone."


@with_plain_ends
def _traces(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        if args.probe is not None and all(probe.name != args.probe for probe in registry.probes.all()):
            raise ConfigError(f"no probe {args.probe!r}; hint: tandem-server probe list")
        if args.action == "list" and args.unfinished:
            return _unfinished(registry, args)
        rows = registry.traces.received(args.probe, args.run)
        tables = registry.trace_tables.of(args.probe)
    try:
        if args.action == "list":
            return _list(rows, tables, args.json)
        stores = Stores(config)
        if args.action == "get":
            return _get(stores, _the_one(rows, args.name), args.output)
        return _verify(stores, rows, args.json)
    except TraceStoreDown as error:
        raise EnvironmentLacks(f"{error}; hint: see that the store answers") from error


def _list(rows: list[TraceRow], tables: dict[tuple[str, str], TablesOf], as_json: bool) -> int:
    if as_json:
        print(json.dumps([{**_told(row), **_of_tables(tables.get((row.probe, row.name)))} for row in rows], indent=1))
        return 0
    for row in rows:
        own = _of_tables(tables.get((row.probe, row.name)))
        why = "" if own["tables_why"] is None else f": {own['tables_why']}"
        state = "" if own["tables"] is None else f"  {own['tables']}{why}"
        print(
            f"{_time(row.received_utc_ns)}  {row.probe:<16} {_side(row):<6} {row.bytes:>13}  {row.name}  {row.place}{state}"
        )
    return 0


def _of_tables(its: TablesOf | None) -> dict[str, str | None]:
    return {"tables": None if its is None else its.state, "tables_why": None if its is None else its.why}


def _side(row: TraceRow) -> str:
    """Who made it: ``probe``, or ``server`` of its own captures."""
    return "server" if row.name.startswith(SERVER_CAPTURES) else "probe"


def _told(row: TraceRow) -> dict[str, Any]:
    return {
        "probe": row.probe, "side": _side(row), "name": row.name, "run": row.run, "bytes": row.bytes, "sha256": row.sha256,
        "received": _time(row.received_utc_ns), "received_utc_ns": row.received_utc_ns, "place": row.place,
        "encoding": row.encoding, "stored_bytes": row.stored_bytes,
    }  # fmt: skip


def _unfinished(registry: Registry, args: Namespace) -> int:
    rows = [one for one in registry.pending_uploads.unfinished(args.probe) if args.run in (None, one.run)]
    if args.json:
        print(json.dumps([_on_its_way(one) for one in rows], indent=1))
        return 0
    for one in rows:
        share = f"{one.checked_bytes} of {one.stream_bytes}"
        print(f"{_time(one.touched_utc_ns)}  {one.probe:<16} {share:>24}  {one.name}")
    return 0


def _on_its_way(one: Unfinished) -> dict[str, Any]:
    return {
        "probe": one.probe, "name": one.name, "run": one.run, "bytes": one.bytes, "sha256": one.sha256,
        "checked_bytes": one.checked_bytes, "stream_bytes": one.stream_bytes, "failed": one.failed,
        "offered": _time(one.offered_utc_ns), "touched": _time(one.touched_utc_ns),
    }  # fmt: skip


def _the_one(rows: list[TraceRow], name: str) -> TraceRow:
    found = [row for row in rows if row.name == name] or [row for row in rows if row.sha256 == name]
    if not found:
        raise ConfigError(f"no trace {name!r}; hint: tandem-server traces list")
    if len({(row.probe, row.sha256) for row in found}) > 1:
        probes = ", ".join(sorted({row.probe for row in found}))
        raise ConfigError(f"{name!r} is of {probes}; hint: name one with --probe")
    return found[0]


def _get(stores: Stores, row: TraceRow, output: Path | None) -> int:
    if output is not None and str(output) == "-":
        return _to_stdout(stores, row)
    target = output or Path(row.name.rsplit("/", 1)[-1])
    if target.is_dir():
        target = target / row.name.rsplit("/", 1)[-1]
    if target.exists():
        raise ConfigError(f"{target} is there already; hint: name another file with -o, or move it away")
    fresh = target.with_name(target.name + ".tmp")
    try:
        with fresh.open("wb") as file:
            damage = _copied(stores, row, file.write)
            file.flush()
            os.fsync(file.fileno())
        if damage is None:
            fresh.rename(target)
    finally:
        fresh.unlink(missing_ok=True)
    return _said(row, damage) or _told_where(target)


def _told_where(target: Path) -> int:
    print(target)
    return 0


def _to_stdout(stores: Stores, row: TraceRow) -> int:
    """What is damaged is said afterwards: it went out as it was read."""
    damage = _copied(stores, row, sys.stdout.buffer.write)
    sys.stdout.buffer.flush()
    return _said(row, damage)


def _said(row: TraceRow, damage: str | None) -> int:
    if damage is None:
        return 0
    print(f"tandem-server: {row.place}: {damage}", file=sys.stderr)
    return 1


def _copied(stores: Stores, row: TraceRow, write: Any) -> str | None:  # noqa: ANN401  a file's write
    """The file written out; what is wrong with it, None when it is whole."""
    whole = hashlib.sha256()
    try:
        with stores.at(row.place).open(row.place) as stored:
            for part in file_parts(stored, row.encoding):
                whole.update(part)
                write(part)
    except (FileNotFoundError, NotTheFile) as error:
        return _damage(error)
    return None if whole.hexdigest() == row.sha256 else "the SHA-256 is another than was promised"


def _verify(stores: Stores, rows: list[TraceRow], as_json: bool) -> int:
    damaged, told = 0, []
    for row, damage in _verified(stores, rows):
        damaged += damage is not None
        if as_json:
            told.append({**_told(row), "ok": damage is None, "damage": damage})
        elif damage is not None:
            print(f"{row.probe}  {row.name}  {row.place}: {damage}")
    if as_json:
        print(json.dumps(told, indent=1))
    else:
        print(f"{len(rows)} traces, {damaged} damaged")
    return 1 if damaged else 0


def _verified(stores: Stores, rows: list[TraceRow]) -> Iterator[tuple[TraceRow, str | None]]:
    """Each trace with what is wrong with it. A place that several names share is read once."""
    seen: dict[str, str | None] = {}
    for row in rows:
        if row.place not in seen:
            seen[row.place] = _checked(stores.at(row.place), row)
        yield row, seen[row.place]


def _checked(store: TraceStore, row: TraceRow) -> str | None:
    try:
        with store.open(row.place) as stored:
            length, sha256 = content_of(stored, row.encoding)
    except (FileNotFoundError, NotTheFile) as error:
        return _damage(error)
    if length != row.bytes:
        return f"{length} bytes instead of {row.bytes}"
    return None if sha256 == row.sha256 else "the SHA-256 is another than was promised"


def _damage(error: Exception) -> str:
    return "it is gone" if isinstance(error, FileNotFoundError) else str(error)


def _time(utc_ns: int) -> str:
    return datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat(timespec="seconds")
