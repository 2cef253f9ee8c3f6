"""``tandem-server check``: read server.toml as the services do, and start nothing."""

from __future__ import annotations

import argparse
from argparse import Namespace

from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import with_plain_ends


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "check",
        help="read server.toml and say what is wrong in it",
        description="Read server.toml as the services do, and start nothing. Exit status 2 with file, line and mend when it is wrong.",
    )
    add_config(parser)
    parser.set_defaults(func=_check)


@with_plain_ends
def _check(args: Namespace) -> int:
    print(f"{load(args.config).file}: right")
    return 0
