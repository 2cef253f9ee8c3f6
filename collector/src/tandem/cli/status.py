"""``tandem status``: what the running collector says of itself, once."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tandem.cli.run import CONFIG


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "status",
        help="what the running collector says, once",
        description="Asks the running collector and prints its state. Exit status: 0, or 1 when no collector runs there.",
    )
    add_where(parser)
    parser.add_argument(
        "--json", action="store_true", help="the status object as JSON (fields: docs/contributing/collector.md)"
    )
    parser.set_defaults(func=main)


def add_where(parser: argparse.ArgumentParser) -> None:
    """The options that say which collector."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--config", type=Path, default=CONFIG, metavar="FILE", help="of the collector; default: %(default)s"
    )
    where.add_argument("--socket", type=Path, metavar="PATH", help="its status socket, instead of --config")


def socket_of(args: argparse.Namespace) -> Path:
    """The status socket; ConfigError when the configuration is bad."""
    from tandem.app.config import load
    from tandem.app.daemon.status_socket import NAME

    given: Path | None = args.socket
    return given if given is not None else load(args.config).folder / NAME


def main(args: argparse.Namespace) -> int:
    """Print it."""
    from tandem.app.config import ConfigError
    from tandem.app.daemon.status_socket import NoCollectorError, ask
    from tandem.cli.view.plain import summary

    try:
        status = next(iter(ask(socket_of(args), {"op": "status"}, 5.0)), None)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except (NoCollectorError, TimeoutError) as error:
        print(f"tandem: no collector answers: {error}; hint: start it with tandem run", file=sys.stderr)
        return 1
    if status is None:
        print("tandem: the collector ended while it was asked", file=sys.stderr)
        return 1
    print(json.dumps(status, indent=1) if args.json else summary(status))
    return 0
