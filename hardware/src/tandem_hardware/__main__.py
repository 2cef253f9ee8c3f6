"""``tandem-hardware``: writes what is made of the sources in hardware/, and the field guide's pages for a printer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tandem_hardware import guides, pages
from tandem_hardware.sources import LackError, SourceError

_GUIDE = """Write a guide (pages of docs/field/) for a printer: as one PDF (A4; printed by Chromium without a window), or as one HTML
page that needs nothing beside itself. What the guide leaves open is filled from the options; what no option fills is printed as a
line to write on."""
_EXIT = """Exit status: 0 written; 2 wrong usage, or a guide that does not fit its page; 3 no Chromium here (install
chromium-headless-shell or chromium, set TANDEM_CHROMIUM, or --format html). Examples: docs/field/hand-out.md."""


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(prog="tandem-hardware", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    make = commands.add_parser(
        "generate", help="write parts.scad and power.svg (make and ./kit hardware do, and draw the rest)"
    )
    make.add_argument(
        "--check", action="store_true", help="write nothing; exit 1 when a file is not as its source makes it"
    )
    make.add_argument("--only", action="append", default=[], metavar="NAME", help="only files with this in their name")
    guide = commands.add_parser("guide", help="a guide for a printer", description=_GUIDE, epilog=_EXIT)
    guide.add_argument("name", choices=guides.NAMES, metavar="NAME", help=", ".join(guides.NAMES))
    guide.add_argument("--probe", default="", metavar="NAME", help="the kit's name, as on its label")
    guide.add_argument("--call", default="", metavar="TEXT", help="whom to call: name, telephone, hours")
    guide.add_argument(
        "--position", choices=guides.POSITIONS, help="the mode in the kit's config.toml; ticked on the commuter's page"
    )
    guide.add_argument("--format", choices=("pdf", "html"), default="pdf", help="default: %(default)s")
    guide.add_argument("--out", type=Path, required=True, metavar="FILE", help="written whole or not at all")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0 done, 1 something differs from its source, 2 a source is wrong, 3 this machine lacks a program."""
    args = parser().parse_args(argv)
    try:
        if args.command == "guide":
            return _guide(args)
        return pages.check(args.only) if args.check else pages.generate(args.only)
    except (SourceError, LackError) as error:
        sys.stderr.write(f"tandem-hardware: {error}\n")
        return 3 if isinstance(error, LackError) else 2


def _guide(args: argparse.Namespace) -> int:
    values = {"probe": args.probe, "call": args.call}
    if args.format == "pdf":
        written = guides.printed(args.name, values, args.position)
    else:
        written = guides.page(args.name, values, args.position).encode()
    try:
        pages.write_whole(args.out, written)
    except OSError as error:
        raise SourceError(
            f"{args.out}: {error.strerror}; hint: --out names a file in a folder that you may write"
        ) from error
    sys.stderr.write(f"tandem-hardware: {args.out}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
