"""``tandem-bench compare``: a replay held against its drive."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from tandem_bench import ExitCode
from tandem_bench.replayed import as_json, compare, said


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="hold a replay against its drive: radio, events, goodput",
        description="Compares what the kit heard, noticed and got on a drive with what the collector did when the bench played it again"
        " (tandem-bench demo --from-run DRIVE --out REPLAY, which does this at its end): a table, and REPLAY/replay/ with"
        " comparison.csv, .json and .svg. Exit status: 0 compared, 2 one of the folders cannot be read, 3 nothing can be written there.",
    )
    parser.add_argument("drive", type=Path, metavar="DRIVE", help="the campaign's folder that was played again")
    parser.add_argument("replay", type=Path, metavar="REPLAY", help="the folder of the replay")
    parser.add_argument("--out", type=Path, metavar="DIR", help="in place of REPLAY/replay")
    parser.add_argument("--json", action="store_true", help="print the table as JSON")
    parser.set_defaults(func=_compare)


def _compare(args: argparse.Namespace) -> int:
    table = compare(args.drive, args.replay, args.out)
    print(json.dumps(as_json(table), indent=1) if args.json else said(table, args.out or args.replay / "replay"))
    return ExitCode.OK
