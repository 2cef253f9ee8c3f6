"""``tandem-hardware guide``: a guide for a printer."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
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

SIZES = (1.0, 0.95, 0.9, 0.85)
"""Of letters, tried in this order until such a guide fits: fonts are wider on some machines, and whom to call takes more lines."""


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
    values = {"probe": args.probe, "call": args.call}
    count = None
    if args.format == "pdf":
        written, count = _printed(args.name, values, args.position)
    else:
        written = page(args.name, values, args.position).encode()
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


def _printed(name: str, values: Mapping[str, str], position: str | None) -> tuple[bytes, int]:
    """The PDF, and how many pages it has. SourceError: it does not fit on the one that it has to."""
    for size in SIZES if name in ONE_SIDE else SIZES[:1]:
        written = chromium.pdf(page(name, values, position, size))
        count = len(pages(written))
        if count == 1 or name not in ONE_SIDE:
            return written, count
    raise SourceError(f"{name} takes {count} pages and has to fit on one; mend: a shorter --call or --probe")
