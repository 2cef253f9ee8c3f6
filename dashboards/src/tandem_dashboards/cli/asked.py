"""Arguments of the subcommands that ask a database."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tandem_dashboards import registry
from tandem_dashboards.board import BoardError
from tandem_dashboards.grafana.times import Range, range_of
from tandem_dashboards.influx import Influx

READER = "reader"


def add_account(parser: argparse.ArgumentParser, *, needed: bool = True) -> None:
    """Where, and as whom."""
    parser.add_argument("--url", required=needed, help="the database's address: http://127.0.0.1:8086")
    parser.add_argument("--database", default="tandem", help="default: %(default)s")
    parser.add_argument("--user", default=READER, help="an account that may only read (default: %(default)s)")
    parser.add_argument("--password-file", type=Path, metavar="FILE", help="its password; without, no account is used")


def add_database(parser: argparse.ArgumentParser) -> None:
    """Where, as whom, over which time, with which variables."""
    add_account(parser)
    parser.add_argument(
        "--from", dest="since", metavar="TIME", help="now-6h, ms since 1970, or ISO 8601 (default: the board's)"
    )
    parser.add_argument("--to", dest="until", default="now", metavar="TIME", help="likewise (default: now)")
    parser.add_argument(
        "--var",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="chosen in a variable; again for several (default: All)",
    )


def database(asked: argparse.Namespace) -> Influx:
    """The database that was named."""
    password = asked.password_file.read_text(encoding="utf-8").strip() if asked.password_file else ""
    return Influx(asked.url, asked.database, asked.user if asked.password_file else "", password)


def chosen(asked: argparse.Namespace) -> dict[str, list[str]]:
    """Values by variable; BoardError when one is not NAME=VALUE."""
    found: dict[str, list[str]] = {}
    for pair in asked.var:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BoardError(f"--var {pair}: not NAME=VALUE")
        found.setdefault(name, []).append(value)
    return found


def span_of(board: dict[str, Any], asked: argparse.Namespace) -> Range:
    """The time range asked for, else the board's own."""
    return range_of(asked.since or board["time"]["from"], asked.until, int(time.time() * 1000))


def board_json(name: str) -> dict[str, Any]:
    """The board as Grafana loads it."""
    made: dict[str, Any] = json.loads(registry.load(name).to_text())
    return made
