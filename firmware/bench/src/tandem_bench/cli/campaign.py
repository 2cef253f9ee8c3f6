"""``tandem-bench campaign``: an example campaign for all the papers' figures."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tandem_bench.cli import playing
from tandem_bench.cli.main import ExitCode
from tandem_bench.scenario import ScenarioError, load, play


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "campaign",
        help="play an example campaign and draw all the papers' figures of it",
        description="Plays a short walk and drive with two operators and a Wi-Fi to the real collector, which makes small campaigns after"
        " the papers' on the way and at rest; then analyses the captures and writes the report with its figures. Everything is measured,"
        " in namespaces of its own, in four to six minutes. DIR is a campaign's folder: tandem-server report DIR draws it again.",
        epilog="Exit status: 0 every figure is drawn that can be, and everything arrived; 1 something is missing; 2 the command line is "
        "wrong; 3 this machine lacks something (root, Multipath TCP, a program, room on the disk); 130 stopped by Ctrl-C.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where it goes (default campaign-runs/TIME); an earlier one there is set aside",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the scenario and of every order and draw (37)")
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON; what is said meanwhile to stderr"
    )
    playing.add_link(parser)
    parser.set_defaults(func=_campaign)


def _campaign(args: argparse.Namespace) -> int:
    # Imported here, so that --help needs nothing.
    from tandem_bench import example
    from tandem_bench.example.command import campaign

    try:
        played = play(load(Path(example.__file__).with_name("example.toml"), seed=args.seed))
    except ScenarioError as error:
        print(f"tandem-bench campaign: {error}", file=sys.stderr)
        return ExitCode.USAGE
    out = args.out or Path("campaign-runs") / time.strftime("%Y%m%d-%H%M%S")
    return campaign(played, out, as_json=args.json, link=args.link)
