"""What shall be played, as the commands have it in common: a scenario, two drives or a finished campaign, and traces for its links."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tandem_bench.link.backend import CHOICES
from tandem_bench.scenario import Played, ScenarioError, from_run, load, play, replay, with_traces

Traces = dict[str, dict[str, Path]]
DEFAULT = "commute"
SIDES = ("down", "up", "down-light", "up-light")


def add_traces(parser: argparse.ArgumentParser) -> None:
    """``--down-trace``, ``--up-trace``, and those of a link that is hardly used."""
    for side in ("down", "up"):
        parser.add_argument(
            f"--{side}-trace",
            action="append",
            default=[],
            type=_trace,
            metavar="OPERATOR=FILE",
            help=f"a packet-delivery trace (mahimahi) as the operator's capacity {side}; may be given for each operator",
        )
        parser.add_argument(
            f"--{side}-light-trace",
            action="append",
            default=[],
            type=_trace,
            metavar="OPERATOR=FILE",
            help=f"one recorded with light load, beside --{side}-trace, which then is that under load; in between by load",
        )


def add_from_run(parser: argparse.ArgumentParser, source: argparse._MutuallyExclusiveGroup | None = None) -> None:
    """``--from-run``, ``--probe`` and ``--at``."""
    (source or parser).add_argument(
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


def add_link(parser: argparse.ArgumentParser) -> None:
    """``--link``."""
    parser.add_argument(
        "--link",
        choices=CHOICES,
        default="auto",
        help="what emulates the links: tun (ours, exact, with a log), netem (the kernel's), auto (default: the first that works here)",
    )


def traces_of(args: argparse.Namespace) -> Traces:
    """The traces that were given, by operator and direction; ScenarioError when one is given twice."""
    found: Traces = {}
    for side in SIDES:
        for operator, file in getattr(args, f"{side.replace('-', '_')}_trace"):
            if side in found.setdefault(operator, {}):
                raise ScenarioError(f"--{side}-trace", None, f"two traces for {operator}", "give one")
            found[operator][side] = file
    return found


def played(args: argparse.Namespace, duration_s: float | None, traces: Traces) -> Played:
    """What was asked for, computed; ScenarioError. Says on stderr what a campaign does not tell."""
    drives: Sequence[Path] | None = args.replay
    campaign: Path | None = args.from_run
    seed: int | None = args.seed
    if campaign is None and (args.probe is not None or args.at is not None):
        raise ScenarioError("--probe and --at", None, "they choose a drive of a campaign", "hint: with --from-run DIR")
    if drives is not None:
        found = replay(drives[0], drives[1], duration_s, 1 if seed is None else seed)
    elif campaign is not None:
        found = from_run(campaign, duration_s, 1 if seed is None else seed, args.probe, args.at)
    else:
        found = play(load(args.scenario or DEFAULT, duration_s, seed))
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    return with_traces(found, traces) if traces else found


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
