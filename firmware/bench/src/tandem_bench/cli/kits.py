"""``tandem-bench kits``: several probes at one server."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tandem_bench.cli import playing
from tandem_bench.cli.main import ExitCode
from tandem_bench.scenario import ScenarioError, load, play

MOST_KITS = 8


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "kits",
        help="several probes at one server: its export reported beside their own folders",
        description="Plays a commute to each of several probes, each with two operators, modems and a collector of its own, at the same"
        " time; pushes a campaign to all of them from one server; then exports the campaign from the server, reports and publishes the"
        " export, reports the probes' own folders (DIR/kit-1 …) too, and says which figures and tables have other data.",
        epilog="Exit status: 0 all of them have the same data and everything arrived; 1 something is missing or differs; 2 the command line"
        " is wrong; 3 this machine lacks something; 130 stopped by Ctrl-C.",
    )
    parser.add_argument("--kits", type=int, default=2, metavar="N", help=f"2 to {MOST_KITS} (default %(default)s)")
    parser.add_argument(
        "--duration", type=float, default=180.0, metavar="S", help="seconds, 30 to 7200 (default %(default).0f)"
    )
    parser.add_argument("--scenario", metavar="NAME|FILE", default=playing.DEFAULT, help="default %(default)s")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the first kit's; the next has the next (the scenario's)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where it goes (default kits-runs/TIME)")
    parser.add_argument(
        "--json", action="store_true", help="print the outcome as JSON; what is said meanwhile to stderr"
    )
    playing.add_link(parser)
    parser.set_defaults(func=_kits)


def _kits(args: argparse.Namespace) -> int:
    # Imported here, so that --help needs nothing.
    from tandem_bench.kits.command import kits

    if not 2 <= args.kits <= MOST_KITS or not 30 <= args.duration <= 7200:
        print(f"tandem-bench kits: give 2 to {MOST_KITS} kits and 30 to 7200 seconds", file=sys.stderr)
        return ExitCode.USAGE
    try:
        first = load(args.scenario, args.duration, args.seed)
        plays = [play(load(args.scenario, args.duration, first.seed + n)) for n in range(args.kits)]
    except ScenarioError as error:
        print(f"tandem-bench kits: {error}", file=sys.stderr)
        return ExitCode.USAGE
    out = args.out or Path("kits-runs") / time.strftime("%Y%m%d-%H%M%S")
    return kits(plays, out, as_json=args.json, link=args.link)
