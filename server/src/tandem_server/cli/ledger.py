"""``tandem-server ledger``: every run that arrived, and whether all of its records are in the database."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem_server.cli.configuration import load
from tandem_server.cli.stop import EnvironmentLacks, with_plain_ends
from tandem_server.cli.stores import open_registry, open_store
from tandem_server.registry import Run
from tandem_server.store import Influx, QueryError, StoreDown

_OF_A_RUN = ("subflow", "connection", "run", "run_usage", "phase")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "ledger",
        help="list the runs that arrived, complete or what is missing",
        description="List the runs that arrived. A run is complete when the database holds as many of its records as its"
        " manifest counts. Exit status 1 when a run misses records.",
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="server.toml")
    parser.add_argument("--probe", metavar="NAME", help="of this probe only")
    parser.add_argument("--json", action="store_true", help="as JSON, with the manifests")
    parser.set_defaults(func=_ledger)


@with_plain_ends
def _ledger(args: Namespace) -> int:
    config = load(args.config)
    with open_registry(config) as registry:
        runs = registry.runs.all(args.probe)
    counts = _counts(open_store(config), runs) if runs else {}
    rows = [_row(run, counts[run.id]) for run in runs]
    if args.json:
        print(json.dumps(rows, indent=1))
    else:
        for row in rows:
            print(
                f"{row['received']}  {row['id']:<20} {row['probe']:<16} {row['kind']:<6} {row['status']}; {row['records']}"
            )
    return 1 if any(row["missing"] for row in rows) else 0


def _counts(store: Influx, runs: list[Run]) -> dict[str, dict[str, int]]:
    """Records of each run in the database by measurement; those of the sender have no ``seq`` and are not counted."""
    counts: dict[str, dict[str, int]] = {}
    try:
        for run in runs:
            counts[run.id] = {}
            for measurement in _OF_A_RUN:
                answer = store.query(
                    # Names cannot be placeholders; these are constants of this module.
                    f'SELECT count("seq") FROM "{measurement}" WHERE "run" = $run AND "probe" = $probe',  # noqa: S608
                    {"run": run.id, "probe": run.probe},
                )
                counts[run.id][measurement] = int(answer[0].rows[0][1]) if answer else 0
    except (StoreDown, QueryError) as error:
        raise EnvironmentLacks(f"{error}; mend: start tandem-server serve database") from error
    finally:
        store.close()
    return counts


def _row(run: Run, stored: dict[str, int]) -> dict[str, Any]:
    told = {name: count for name, count in run.manifest["records"].items() if name in _OF_A_RUN}
    missing = {name: told[name] - stored[name] for name in told if told[name] > stored[name]}
    records = (
        "complete" if not missing else "missing " + ", ".join(f"{count} {name}" for name, count in missing.items())
    )
    return {
        "id": run.id,
        "probe": run.probe,
        "kind": run.manifest["kind"],
        "received": datetime.fromtimestamp(run.received_utc_ns / 1e9, UTC).isoformat(timespec="seconds"),
        "status": run.status,
        "records": records,
        "records_in_database": stored,
        "missing": missing,
        "manifest": run.manifest,
    }
