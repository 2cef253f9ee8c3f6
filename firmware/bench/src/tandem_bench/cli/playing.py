"""What shall be played, as the commands have it in common: a scenario, two drives or a finished campaign, and traces for its links."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from tandem_bench.scenario import Played, ScenarioError, from_run, load, play, replay, with_traces

DEFAULT = "commute"
SIDES = ("down", "up", "down-light", "up-light")


def add_source(parser: argparse.ArgumentParser, scenarios: str) -> None:
    """``--scenario`` (``scenarios``: its help), ``--replay`` or ``--from-run``, and the traces."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--scenario", metavar="NAME|FILE", help=scenarios)
    add_recorded(parser, source)


def add_recorded(parser: argparse.ArgumentParser, source: argparse._ActionsContainer) -> None:
    """``--replay`` and ``--from-run`` to ``source``; ``--probe``, ``--at`` and the traces."""
    source.add_argument(
        "--replay",
        nargs=2,
        metavar=("A.csv", "B.csv"),
        type=Path,
        help="two G-NetTrack Pro logs played as operators A and B",
    )
    source.add_argument(
        "--from-run",
        metavar="DIR",
        type=Path,
        help="a campaign's folder, played again: a rehearsal's, or what tandem-server campaign export wrote",
    )
    parser.add_argument("--probe", metavar="P", help="of an export with several probes: whose drive")
    parser.add_argument(
        "--at",
        type=_utc_ns,
        metavar="T",
        help="of an export: the drive that goes on at this time (ISO 8601, UTC unless it has an offset), or begins next after it;"
        " default: the longest",
    )
    for side in SIDES:
        way, _, light = side.partition("-")
        parser.add_argument(
            f"--{side}-trace",
            action="append",
            default=[],
            type=_trace,
            metavar="OPERATOR=FILE",
            help=f"one recorded with light load, beside --{way}-trace, which then is that under load; in between by load"
            if light
            else f"a packet-delivery trace (mahimahi) as the operator's capacity {way}; may be given for each operator",
        )


def played(args: argparse.Namespace, duration_s: float | None) -> Played:
    """What was asked for, computed; ScenarioError. Says on stderr what a campaign does not tell."""
    if args.from_run is None and (args.probe is not None or args.at is not None):
        raise ScenarioError("--probe and --at", None, "they choose a drive of a campaign", "hint: with --from-run DIR")
    traces = _traces(args)
    seed = 1 if args.seed is None else args.seed
    if args.replay is not None:
        found = replay(args.replay[0], args.replay[1], duration_s, seed)
    elif args.from_run is not None:
        found = from_run(args.from_run, duration_s, seed, args.probe, args.at)
    else:
        found = play(load(args.scenario or DEFAULT, duration_s, args.seed))
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    return with_traces(found, traces) if traces else found


def _traces(args: argparse.Namespace) -> dict[str, dict[str, Path]]:
    """By operator and direction; ScenarioError when one is given twice."""
    found: dict[str, dict[str, Path]] = {}
    for side in SIDES:
        for operator, file in getattr(args, f"{side.replace('-', '_')}_trace"):
            if side in found.setdefault(operator, {}):
                raise ScenarioError(f"--{side}-trace", None, f"two traces for {operator}", "give one")
            found[operator][side] = file
    return found


def _utc_ns(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        return int(at.timestamp() * 1e9)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"{text!r} is no time in ISO 8601, as 2026-06-01T08:00+02:00") from None


def _trace(text: str) -> tuple[str, Path]:
    operator, equals, file = text.partition("=")
    if not equals or not operator or not file:
        raise argparse.ArgumentTypeError(f"{text!r}: give OPERATOR=FILE, as in A=verizon.down")
    return operator, Path(file)
