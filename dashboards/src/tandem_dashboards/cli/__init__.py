"""The command line: one module a subcommand, each with ``add(subparsers)``."""

from __future__ import annotations

import argparse
import sys

from tandem_dashboards.board import BoardError
from tandem_dashboards.cli import alarms, check, generate, preview
from tandem_dashboards.grafana.macros import FormatError
from tandem_dashboards.grafana.times import TimeError
from tandem_dashboards.influx import AwayError

SAID = (BoardError, TimeError, FormatError, AwayError, OSError)
"""What a person can mend: told in one line."""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="tandem-dashboards", description="Tandem's boards for Grafana, as code.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (generate, check, preview, alarms):
        module.add(commands)
    return top


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0 done, 1 something is not as it must be, 2 wrong arguments or nothing to ask."""
    asked = parser().parse_args(argv)
    try:
        status: int = asked.run(asked)
    except SAID as error:
        print(f"tandem-dashboards: {error}", file=sys.stderr)
        return 2
    return status
