"""``tandem-bench link``: the emulated link by itself; all options are those of the program ``tandem-link``."""

from __future__ import annotations

import argparse
import os
import sys

from tandem_bench.requirements import find_link


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "link",
        help="one emulated link between two namespaces (tandem-link's own options; see link --help)",
        add_help=False,  # --help goes to the program
        prefix_chars="\0",  # so that no option is taken here: all go to the program as they are
    )
    parser.add_argument("options", nargs=argparse.REMAINDER)
    parser.set_defaults(func=_link)


def _link(args: argparse.Namespace) -> int:
    """Become ``tandem-link``; returns only when there is none."""
    program = find_link()
    sys.stdout.flush()
    return os.execv(program, [str(program), *args.options])  # noqa: S606 - a program found by us, no shell
