"""``tandem-bench scenario``: which scenarios there are, and what one of them would play."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tandem_bench import ExitCode, UsageError, scenario
from tandem_bench.cli import playing
from tandem_bench.scenario import show
from tandem_bench.scenario.recorded import traces as deliveries

_EPILOG = """\
examples:
  tandem-bench scenario show commute
  tandem-bench scenario show my.toml --duration 60 --seed 7 --plot my.svg
  tandem-bench scenario show --replay drive-a.csv drive-b.csv --out folder

A scenario file is TOML; begin with a copy of the commute, which explains every key:
  tandem-bench scenario show commute --file > my.toml
"""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register ``scenario`` with its actions ``list`` and ``show``."""
    text = "list the scenarios, or compute one and show what it plays"
    parser = subparsers.add_parser(
        "scenario", help=text, description=text, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the scenarios that come with the bench")
    listing.add_argument("--json", action="store_true", help="as JSON")
    listing.set_defaults(func=_list)
    show = actions.add_parser(
        "show",
        help="compute a scenario and show it",
        description="Compute a scenario or a replay: phases, handovers, drops, capacities.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    show.add_argument("scenario", metavar="NAME|FILE", nargs="?", help="a name from list, or a TOML file")
    playing.add_recorded(show, show)
    show.add_argument("--duration", type=float, metavar="S", help="seconds, 10 to 7200, instead of the file's")
    show.add_argument("--seed", type=int, metavar="N", help="instead of the file's")
    show.add_argument("--json", action="store_true", help="the summary and all events as JSON")
    show.add_argument("--out", type=Path, metavar="DIR", help="write the timelines there, one file an operator")
    show.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw it (svg, png or pdf; needs matplotlib)")
    show.add_argument("--file", action="store_true", help="print the scenario's file instead of computing it")
    show.set_defaults(func=_show)
    traces = actions.add_parser(
        "traces",
        help="light and heavy delivery traces from a recording",
        description="From a run of the experiment delivery (collector/examples/experiments): the packet-delivery traces of the loaded "
        "link and of the hardly used one, for --down-trace and --down-light-trace.",
    )
    traces.add_argument("run", metavar="RUN.json", type=Path, help="the run's manifest")
    traces.add_argument("--out", type=Path, metavar="DIR", required=True, help="write loaded.down and light.down there")
    traces.set_defaults(func=_traces)


def _traces(args: argparse.Namespace) -> int:
    found, rtt_ms = deliveries.traces(args.run)
    files = deliveries.write(found, args.out)
    for name, lines in found.items():
        seconds = lines[-1] / 1000
        print(f"{name}: {seconds:.1f} s, mean {len(lines) * 12e-3 / seconds:.1f} Mbit/s", file=sys.stderr)
    print(f"round trip while hardly used: {rtt_ms:.1f} ms (rtt_ms of the scenario's operator)", file=sys.stderr)
    print(f"--down-trace A={files['loaded']} --down-light-trace A={files['light']}")
    return ExitCode.OK


def _list(args: argparse.Namespace) -> int:
    loaded = [scenario.load(name) for name in scenario.names()]
    if args.json:
        rows = [
            {"name": s.name, "description": s.description, "duration_s": s.duration_s, "seed": s.seed} for s in loaded
        ]
        print(json.dumps(rows, indent=1))
    else:
        width = max(len(s.name) for s in loaded)
        for s in loaded:
            print(f"{s.name:{width}}  {s.duration_s:4g} s  {s.description}")
    return ExitCode.OK


def _show(args: argparse.Namespace) -> int:
    if [args.scenario, args.replay, args.from_run].count(None) != 2:
        raise UsageError("give a scenario, or --replay with two logs, or --from-run with a folder")
    if args.file:
        print(scenario.source(args.scenario or (args.replay or [args.from_run])[0]), end="")
        return ExitCode.OK
    played = playing.played(args, args.duration)
    if args.json:
        result: dict[str, Any] = {"summary": played.summary(), "events": played.events}
        print(json.dumps(result, indent=1))
    else:
        print(show.table(played))
    if args.out is not None:
        for operator, path in scenario.write_timelines(played, args.out).items():
            print(f"timeline of {operator}: {path}", file=sys.stderr)
    if args.plot is not None:
        show.draw(played, args.plot)
        print(f"picture: {args.plot}", file=sys.stderr)
    return ExitCode.OK
