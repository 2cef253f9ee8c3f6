"""``generate``: the boards' JSON, and the alarms' provisioning files."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tandem_dashboards import generate as maker
from tandem_dashboards.alarms import files


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Its arguments."""
    parser = commands.add_parser(
        "generate", help="write generated/*.json and provisioning/alerting, or see whether they are up to date"
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file differs")
    parser.add_argument(
        "--out", type=Path, default=maker.GENERATED, metavar="FOLDER", help="where (default: %(default)s)"
    )
    parser.add_argument(
        "--alarms-out", type=Path, default=files.PROVISIONED, metavar="FOLDER", help="alarms (default: %(default)s)"
    )
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Write, or compare."""
    both = ((maker, asked.out, "boards"), (files, asked.alarms_out, "alarms"))
    if asked.check:
        differing = [(folder / name, what) for module, folder, what in both for name in module.drift(folder)]
        for path, what in differing:
            print(f"{path}: not what the {what} make; run python -m tandem_dashboards generate", file=sys.stderr)
        return 1 if differing else 0
    for module, folder, _ in both:
        for name in module.write(folder):
            print(folder / name)
    return 0
