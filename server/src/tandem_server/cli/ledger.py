"""``tandem-server ledger``: for every run what was promised and what arrived, and every probe's record account."""

from __future__ import annotations

import argparse
import contextlib
import json
from argparse import Namespace

from tandem_server.cli.command import Actions, add_command, check_probe
from tandem_server.cli.configuration import load
from tandem_server.cli.stores import open_influx, open_registry
from tandem_server.ledger.reader import LedgerReader
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.table import lines
from tandem_server.report.words import visible


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = add_command(
        commands,
        "ledger",
        _ledger,
        "what was promised and what arrived: runs, files, records; what is missing and why",
        "For every run what its manifest promised and what arrived, records and files; runs that opened a session and never"
        " came; for every probe its state, and of each of its spools how many records were made, arrived, were rejected, were dropped,"
        " wait, and are unexplained. What was found complete is not counted again. Exit status 1 when something is missing, else 0.",
        json="for a machine (docs/reference/ledger.md)",
    )
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


def _ledger(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        check_probe(registry, args.probe)
        with contextlib.closing(open_influx(config)) as store:
            retention = config.store.retention_days
            reader = LedgerReader(registry, RecordCounts(store), config.states, retention, with_files=not args.no_files)
            ledger = reader.read(args.probe, recount=args.recount)
        manifests = {run.id: run.manifest for run in registry.runs.all(args.probe)} if args.manifests else {}
    if args.json:
        shown = ledger.to_dict(incomplete=args.incomplete)
        for row in shown["runs"] if args.manifests else []:
            row["manifest"] = manifests.get(row["id"])
        print(json.dumps(shown, indent=1))
    else:
        for line in lines(ledger, incomplete=args.incomplete):
            print(visible(line))
    return 1 if ledger.lacks else 0
