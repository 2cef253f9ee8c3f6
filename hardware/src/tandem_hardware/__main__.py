"""``tandem-hardware``: makes what is made of the sources in hardware/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tandem_hardware.catalogue import products
from tandem_hardware.errors import LackError, SourceError
from tandem_hardware.generate import check, generate
from tandem_hardware.guides import command as guide


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(prog="tandem-hardware", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    make = commands.add_parser("generate", help="make everything anew from its source (./kit hardware)")
    make.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not as its source makes it"
    )
    make.add_argument(
        "--by-digest",
        action="store_true",
        help="with --check: draw nothing, compare the digests of drawings and sources",
    )
    make.add_argument("--only", action="append", default=[], metavar="NAME", help="only files with this in their name")
    guide.add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 something differs from its source, 2 a source is wrong, 3 this machine lacks a program."""
    top = parser()
    args = top.parse_args(argv)
    if args.command == "generate" and args.by_digest and not args.check:
        top.error("--by-digest goes with --check")
    try:
        if args.command == "guide":
            return guide.main(args)
        if args.check:
            return check(products(), args.only, by_digest=args.by_digest)
        return generate(products(), args.only)
    except SourceError as error:
        sys.stderr.write(f"tandem-hardware: {error}\n")
        return 2
    except LackError as error:
        sys.stderr.write(f"tandem-hardware: {error}\n")
        return 3


if __name__ == "__main__":
    sys.exit(main())
