"""``tandem-hardware``: what the Makefile needs of the sources in hardware/, and the field guide's pages for a printer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tandem_hardware import bom, case, guides
from tandem_hardware.sources import LackError, SourceError

_GUIDE = """Write a guide (pages of docs/field/) for a printer: one PDF (A4; by Chromium without a window), or one HTML page that needs
nothing beside itself. What no option fills is a line to write on. Exit status: 0 written; 2 wrong usage, or a guide that does not fit
its page; 3 no Chromium here (install chromium-headless-shell or chromium, set TANDEM_CHROMIUM, or --format html)."""


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(prog="tandem-hardware", description=__doc__)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("sizes", help="print case/parts.scad, the sizes of the parts in bom.csv")
    commands.add_parser("fit", help="whether the parts fit into their cases; exit status 2: one does not")
    guide = commands.add_parser("guide", help="a guide for a printer", description=_GUIDE)
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
    """Exit status: 0 done, 2 a source is wrong, 3 this machine lacks a program."""
    args = parser().parse_args(argv)
    try:
        if args.command == "guide":
            _guide(args)
        elif args.command == "sizes":
            sys.stdout.write(case.parts_scad(bom.load()))
        else:
            case.check(bom.load())
        return 0
    except (SourceError, LackError) as error:
        sys.stderr.write(f"tandem-hardware: {error}\n")
        return 3 if isinstance(error, LackError) else 2


def _guide(args: argparse.Namespace) -> None:
    values = {"probe": args.probe, "call": args.call}
    if args.format == "pdf":
        written = guides.printed(args.name, values, args.position)
    else:
        written = guides.page(args.name, values, args.position).encode()
    part = args.out.with_name(f"{args.out.name}.tmp")
    try:
        part.write_bytes(written)
        part.replace(args.out)
    except OSError as error:
        raise SourceError(
            f"{args.out}: {error.strerror}; hint: --out names a file in a folder that you may write"
        ) from error
    sys.stderr.write(f"tandem-hardware: {args.out}\n")


if __name__ == "__main__":
    sys.exit(main())
