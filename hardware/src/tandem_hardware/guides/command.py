"""``tandem-hardware guide``: a guide for a printer."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tandem_hardware.errors import SourceError
from tandem_hardware.guides import chromium
from tandem_hardware.guides.pdf_pages import pages
from tandem_hardware.guides.printed import NAMES, POSITIONS, page

DESCRIPTION = """Write a guide of hardware/guides/ for a printer: as one PDF (A4; printed by Chromium without a window), or as one HTML
page that needs nothing beside itself. What the guide leaves open is filled from the options; what no option fills is printed as a
line to write on."""

EXAMPLES = """examples:
  tandem-hardware guide commuter --probe kit-07 --call "Ada Example, 030 1234567, Mon-Fri 9-17" --position coarse --out kit-07.pdf
  tandem-hardware guide consent --out consent.pdf
  tandem-hardware guide lab-book --format html --out lab-book.html

Exit status: 0 written; 2 wrong usage, or a guide that does not fit its page; 3 no Chromium here (install chromium-headless-shell or
chromium, set TANDEM_CHROMIUM, or --format html)."""

ONE_SIDE = ("commuter",)
"""Guides that have to fit on one side of A4."""


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "guide",
        help="a guide for a printer",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--probe", default="", metavar="NAME", help="the kit's name, as on its label")
    parser.add_argument("--call", default="", metavar="TEXT", help="whom to call: name, telephone, hours")
    parser.add_argument(
        "--position",
        choices=POSITIONS,
        help="the position's mode in the kit's config.toml; ticked on the commuter's page. On the consent form the participant ticks",
    )
    parser.add_argument("--format", choices=("pdf", "html"), default="pdf", help="default: %(default)s")
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="written whole or not at all")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Write it. SourceError, LackError."""
    if args.position is not None and args.name != "commuter":
        raise SourceError(f"{args.name} has no position to tick by option; mend: leave out --position")
    made = page(args.name, {"probe": args.probe, "call": args.call}, args.position)
    count = None
    if args.format == "pdf":
        written = chromium.pdf(made)
        count = len(pages(written))
        if args.name in ONE_SIDE and count != 1:
            raise SourceError(
                f"{args.name} takes {count} pages and has to fit on one; mend: a shorter --call or --probe"
            )
    else:
        written = made.encode()
    part = args.out.with_name(f"{args.out.name}.tmp")
    try:
        part.write_bytes(written)
        part.replace(args.out)
    except OSError as error:
        raise SourceError(
            f"{args.out}: {error.strerror}; mend: --out names a file in a folder that you may write"
        ) from error
    sys.stderr.write(f"tandem-hardware: {args.out}{'' if count is None else f', {count} page' + 's' * (count > 1)}\n")
    return 0
