"""``tandem preflight``: the check before a kit is handed out."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tandem.cli.run import CONFIG, log_to_stderr

if TYPE_CHECKING:
    from tandem.app.preflight.check import Report

MENDS = """Each line passes, fails with its mend, follows from another line that fails, or is skipped and says why. What follows needs no
mend of its own. The lines: collector, modem, sim, registered, levels, path, data and mptcp of each path, clock, gps, power, disk, spool,
server, metrics, token, budget, version, tunnel (docs/silent-kit.md)."""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "preflight",
        help="the check before a kit is handed out",
        description="Looks at everything that a kit needs in the field, and measures a little over each path (below 1 MB of each "
        "SIM). Asks the running collector; where none runs, it is one itself for the time, as root. Exit status: 0 ready, 1 a line fails, "
        "2 wrong usage or configuration, 3 this machine lacks something or the collector may not be asked.",
        epilog=MENDS,
    )
    parser.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="the result as one JSON object")
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE",
        help="also write one page for the box: FILE.html for a printer, any other name as text",
    )
    parser.add_argument(
        "--wait",
        type=_seconds,
        default=60.0,
        metavar="S",
        help="for what takes its time: registration, a fix, the clock, another run; default: %(default)s",
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        metavar="LINE",
        help="this line may fail: gps, or with its path as levels:a; may be given several times",
    )
    parser.set_defaults(func=main)


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 3600:
        raise argparse.ArgumentTypeError(f"{text} is not from 0 to 3600")
    return value


def main(args: argparse.Namespace) -> int:
    """Check, and tell."""
    from tandem.app.config import ConfigError, load
    from tandem.app.errors import MissingRequirementError
    from tandem.app.preflight.check import CheckOptions, check
    from tandem.cli.view.preflight_page import page
    from tandem.cli.view.preflight_text import text
    from tandem.export import SetupError
    from tandem.spool.durable import write_durably

    def tell(what: str) -> None:
        if not args.json:
            print(what, file=sys.stderr, flush=True)

    log_to_stderr()
    try:
        config = load(args.config)
        _known(args.accept, [path.name for path in config.paths])
        report = check(config, CheckOptions(args.wait, args.accept, tell))
    except (ConfigError, SetupError, ValueError) as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except MissingRequirementError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 3
    print(json.dumps(report.as_json(), indent=1, ensure_ascii=False) if args.json else text(report))
    if args.page is not None:
        written = page(report) if args.page.suffix in (".html", ".htm") else text(report) + "\n"
        try:
            write_durably(args.page, written.encode())
        except OSError as error:
            print(
                f"tandem: {args.page}: {error.strerror}; hint: name a file in a folder that you may write",
                file=sys.stderr,
            )
            return 3
    return _status(report)


def _known(accepted: list[str], paths: list[str]) -> None:
    """ValueError for what is no line: accepted by mistake, a line would seem to be looked at."""
    from tandem.app.preflight.lines import TITLES

    for label in accepted:
        name, _, path = label.partition(":")
        if name not in TITLES or (path and path not in paths):
            known = ", ".join(TITLES)
            raise ValueError(
                f"--accept {label}: no such line; known: {known}, with a path's ({', '.join(paths)}) as levels:{paths[0]}"
            )


def _status(report: Report) -> int:
    return 0 if report.ok else 1
