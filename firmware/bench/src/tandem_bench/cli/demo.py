"""``tandem-bench demo``: rehearse the whole kit."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tandem_bench.cli import playing
from tandem_bench.cli.main import ExitCode
from tandem_bench.scenario import ScenarioError

DEFAULT_DURATION_S = 180.0


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="rehearse the whole kit: a commute with two operators, measured, stored and shown",
        description="Plays a commute (or two recorded drives) to the real collector, through the real kernel's Multipath TCP, to the "
        "real server and a real InfluxDB, everything in namespaces of its own. Takes as long as the commute and about 20 s more. With "
        "--from-run the downloads of the drive are made again at their times, and DIR/replay/ says how far the replay is from the drive.",
        epilog="Exit status: 0 everything arrived; 1 something is missing or a score is below its floor; 2 the command line or a file is "
        "wrong; 3 this machine lacks something (root, Multipath TCP, a program, room on the disk); 130 stopped by Ctrl-C.",
    )
    parser.add_argument(
        "--duration",
        type=float,
        metavar="S",
        default=DEFAULT_DURATION_S,
        help="seconds, 30 to 7200 (default %(default).0f; a replay is cut to it)",
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--scenario", metavar="NAME|FILE", help="commute (default), still, walk, drive, or a TOML file of yours"
    )
    source.add_argument(
        "--replay",
        nargs=2,
        metavar=("A.csv", "B.csv"),
        type=Path,
        help="two G-NetTrack Pro logs played as operators A and B",
    )
    playing.add_from_run(parser, source)
    playing.add_traces(parser)
    playing.add_link(parser)
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the scenario and of the order of runs (default: the scenario's own)"
    )
    parser.add_argument(
        "--wifi",
        action="store_true",
        help="a third path beside the operators: a home's Wi-Fi (30 and 10 Mbit/s, 24 ms)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results go (default demo-runs/TIME); an earlier rehearsal there is set aside",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep database, keys, token, spool and timelines in DIR, so that the report can be made again",
    )
    parser.set_defaults(func=_demo)


def _demo(args: argparse.Namespace) -> int:
    # Imported here, so that --help needs nothing.
    from tandem_bench.demo.command import demo

    out = args.out or Path("demo-runs") / time.strftime("%Y%m%d-%H%M%S")
    if not 30 <= args.duration <= 7200:
        print(f"tandem-bench demo: --duration {args.duration:g}: give 30 to 7200 seconds", file=sys.stderr)
        return ExitCode.USAGE
    try:
        traces = playing.traces_of(args)
        played = playing.played(args, args.duration, traces)
    except ScenarioError as error:
        print(f"tandem-bench demo: {error}", file=sys.stderr)
        return ExitCode.USAGE
    return demo(played, out, keep=args.keep, wifi=args.wifi, link=args.link)
