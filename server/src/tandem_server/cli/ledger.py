"""``tandem-server ledger``: for every run what was promised and what arrived, and every probe's record account."""

from __future__ import annotations

import argparse
import contextlib
import json
from argparse import Namespace

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_store
from tandem_server.ledger.as_json import as_json
from tandem_server.ledger.book import Book
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.table import lines
from tandem_server.report.words import visible
from tandem_server.store import QueryError, StoreDown


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "ledger",
        help="what was promised and what arrived: runs, files, records; what is missing and why",
        description="For every run what its manifest promised and what arrived, records and files; runs that opened a session and never"
        " came; for every probe its state, and of each of its spools how many records were made, arrived, were rejected, were dropped,"
        " wait, and are unexplained. What was found complete is not counted again. Exit status 1 when something is missing, else 0.",
    )
    add_config(parser)
    parser.add_argument("--probe", metavar="P", help="of this probe only")
    parser.add_argument(
        "--incomplete", action="store_true", help="only what lacks something; the totals stay those of all"
    )
    parser.add_argument(
        "--no-files",
        action="store_true",
        help="leave files out, where probes keep their captures; they count as not missing",
    )
    parser.add_argument("--recount", action="store_true", help="count again what was found complete before")
    parser.add_argument("--manifests", action="store_true", help="with --json: each run's manifest too")
    parser.add_argument("--json", action="store_true", help="for a machine (docs/reference/ledger.md)")
    parser.set_defaults(func=_ledger)


@with_plain_ends
def _ledger(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        if args.probe is not None and args.probe not in {probe.name for probe in registry.probes.all()}:
            raise ConfigError(f"no probe {args.probe!r}; hint: tandem-server probe list")
        with contextlib.closing(open_store(config)) as store:
            retention = config.store.retention_days
            book = Book(registry, RecordCounts(store), config.states, retention, with_files=not args.no_files)
            try:
                ledger = book.read(args.probe, recount=args.recount)
            except StoreDown as error:
                raise EnvironmentLacks(f"{error}; hint: start tandem-server serve database") from error
            except QueryError as error:
                raise EnvironmentLacks(f"{error}; hint: a store that has InfluxQL") from error
        manifests = {run.id: run.manifest for run in registry.runs.all(args.probe)} if args.manifests else {}
    if args.json:
        told = as_json(ledger, incomplete=args.incomplete)
        for row in told["runs"] if args.manifests else []:
            row["manifest"] = manifests.get(row["id"])
        print(json.dumps(told, indent=1))
    else:
        for line in lines(ledger, incomplete=args.incomplete):
            print(visible(line))
    return 1 if ledger.lacks else 0
