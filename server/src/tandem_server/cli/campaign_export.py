"""``tandem-server campaign export``: a campaign out of this server's stores into a campaign folder."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import ServerConfig, load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_store
from tandem_server.cli.trace_stores import Stores as TraceStores
from tandem_server.ledger.book import Book
from tandem_server.ledger.records import RecordCounts
from tandem_server.registry import Registry
from tandem_server.registry.runs import NO_CAMPAIGN
from tandem_server.report.words import visible
from tandem_server.store import QueryError, StoreDown
from tandem_server.store.trace_folder import TABLES
from tandem_server.store.trace_store import TraceStoreDown

if TYPE_CHECKING:
    from tandem_server.export.campaign import Exported

_SAY_EVERY_S = 5.0
_EXAMPLES = """examples:
  tandem-server campaign export mohan-dual-lte --out mohan
  tandem-server campaign export mohan-dual-lte --out june --from 2026-06-01 --to 2026-06-30 --probe kit-01 --probe kit-02
  tandem-server campaign export --no-campaign --out by-itself --tables
  tandem-server report mohan"""


def add(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the action."""
    parser = actions.add_parser(
        "export",
        help="write a campaign's manifests, records and files into a folder that report and load(DIR) read",
        description="Writes what this server has of a campaign into DIR: manifests, results, records as Parquet, and what the ledger"
        " says is missing (docs/reference/campaign-folder.md). The same again adds what arrived since, and goes on where it was broken off."
        " Exit status 0 when the server has everything that was promised, 1 when something is missing (it says what), 2 when NAME,"
        " a probe or a time is wrong.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "campaign",
        nargs="?",
        metavar="ID|NAME",
        help="as push and list print it, or the label of a campaign that was begun by hand",
    )
    what.add_argument(
        "--no-campaign",
        action="store_true",
        help="runs of no campaign, as a kit makes them by itself ([runs]) or a person does (tandem experiment run)",
    )
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="a new folder, or one of the same export"
    )
    parser.add_argument("--probe", action="append", default=[], metavar="P", help="of this probe; default: of all")
    parser.add_argument(
        "--from",
        dest="start",
        metavar="T",
        help="runs that began then or later, records from then on: a day (2026-06-01) or a time in ISO 8601, UTC unless it has an"
        " offset; default: five minutes before the first run",
    )
    parser.add_argument(
        "--to", dest="end", metavar="T", help="up to then, a day with its end; default: five minutes after the last run"
    )
    packets = parser.add_mutually_exclusive_group()
    packets.add_argument(
        "--traces", action="store_true", help="the captures too, and the tables that were made of them"
    )
    packets.add_argument(
        "--tables",
        action="store_true",
        help="the captures' tables alone, a small part of their size: enough for every figure of a report",
    )
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.set_defaults(func=_export)


@with_plain_ends
def _export(args: Namespace) -> int:
    start, end = utc_ns("--from", args.start, last=False), utc_ns("--to", args.end, last=True)
    if start is not None and end is not None and start >= end:
        raise ConfigError(f"--from {args.start} --to {args.end}: nothing is between them; hint: the earlier one first")
    config = load(args.config)
    with open_registry(config) as registry:
        known = [probe.name for probe in registry.probes.all()]
        for name in args.probe:
            if name not in known:
                raise ConfigError(f"--probe {name}: there is no such probe; hint: tandem-server probe list")
        told = _exported(args, config, registry, start, end)
    if args.json:
        print(json.dumps({**asdict(told), "folder": str(told.folder)}, indent=1))
    else:
        for line in _lines(told):
            print(visible(line))
    for line in told.missing:
        print(f"tandem-server campaign export: missing: {visible(line)}", file=sys.stderr)
    return 1 if told.missing else 0


def _exported(
    args: Namespace, config: ServerConfig, registry: Registry, start: int | None, end: int | None
) -> Exported:
    module = importlib.import_module("tandem_server.export.campaign")
    name = NO_CAMPAIGN if args.no_campaign else args.campaign
    asked = module.Asked(name, tuple(dict.fromkeys(args.probe)), start, end, args.traces, args.tables)
    traces = config.traces.folder
    with contextlib.closing(open_store(config)) as series:
        book = Book(registry, RecordCounts(series), config.states, config.store.retention_days, with_files=args.traces)
        stores = module.Stores(
            registry, series, TraceStores(config).at, lambda probe: traces / probe / TABLES, book, progress()
        )
        try:
            made: Exported = module.export(asked, stores, args.out)
        except module.NotToExport as error:
            raise ConfigError(str(error)) from error
        except StoreDown as error:
            raise EnvironmentLacks(f"{error}; hint: start tandem-server serve database, and export again") from error
        except QueryError as error:
            raise EnvironmentLacks(f"{error}; hint: an export needs a store that has InfluxQL") from error
        except TraceStoreDown as error:
            raise EnvironmentLacks(f"{error}; hint: see that the store of traces answers, and export again") from error
    return made


def utc_ns(option: str, told: str | None, *, last: bool) -> int | None:
    """A time of ISO 8601 in UTC ns; of a day its beginning, or with ``last`` the next day's. ConfigError."""
    if told is None:
        return None
    try:
        at = datetime.fromisoformat(told)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        at += timedelta(days=1) if last and len(told) <= len("2026-W01-1") and "T" not in told else timedelta()
        since = at - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{option} {told}: no day and no time in ISO 8601; hint: 2026-06-01 or 2026-06-01T08:00+02:00"
        ) from error
    return (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000


def progress() -> Callable[[str], None]:
    """On a terminal a line that changes, elsewhere one every few seconds."""
    begun = last = time.monotonic()

    def said(what: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= (0.2 if sys.stderr.isatty() else _SAY_EVERY_S):
            last = now
            head, tail = ("\r\x1b[K", "") if sys.stderr.isatty() else ("", "\n")
            print(f"{head}{now - begun:.0f} s: {visible(what)}", end=tail, file=sys.stderr, flush=True)

    return said


def _lines(told: Exported) -> list[str]:
    lines = [str(told.folder)]
    for name, one in told.probes.items():
        states: dict[str, Any] = one["by_state"]
        runs = ", ".join(f"{count} {state}" for state, count in states.items())
        lines.append(
            f"  {name}: {one['runs']} runs ({runs}); of their records {one['records_arrived']} of {one['records_promised']} arrived;"
            f" {one['records_here']} records of the time in the folder"
        )
    now = told.written
    packets = f", {now['tables']} parts of tables" if now["tables"] else ""
    lines.append(
        f"  new: {now['manifests']} manifests, {now['files']} files{packets}, {now['records']} files of records"
    )
    return lines
