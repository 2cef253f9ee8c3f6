"""``tandem-bench link``: the emulated link by itself; all options are those of the program ``tandem-link``."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from tandem_bench.link.build import LinkMissingError, find_binary

ENVIRONMENT = 3  # cli.main's ExitCode.ENVIRONMENT; main imports this module, so it cannot be imported here


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "link",
        help="one emulated link between two namespaces (tandem-link's own options; see link --help)",
        add_help=False,  # --help goes to the program
        prefix_chars="\0",  # so that no option is taken here: all go to the program as they are
    )
    parser.add_argument("options", nargs=argparse.REMAINDER)
    parser.set_defaults(func=run)


def run(args: argparse.Namespace) -> int:
    """Become ``tandem-link``; returns only when there is none."""
    options: Sequence[str] = args.options
    try:
        binary = find_binary()
    except LinkMissingError as error:
        print(f"tandem-bench link: {error}", file=sys.stderr)
        return ENVIRONMENT
    return _become(binary, options)


def _become(binary: Path, options: Sequence[str]) -> NoReturn:
    sys.stdout.flush()
    os.execv(binary, [str(binary), *options])  # noqa: S606 - a program found by us, no shell
