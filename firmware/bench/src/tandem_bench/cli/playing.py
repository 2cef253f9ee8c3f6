"""What shall be played, as the commands have it in common: a scenario, two drives or a finished campaign, and traces for its links."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
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


def played(
    scenario: str | None,
    drives: Sequence[str | Path] | None,
    campaign: str | Path | None,
    duration_s: float | None,
    seed: int | None,
    traces: Traces,
) -> Played:
    """What was asked for, computed; ScenarioError. Says on stderr what a campaign does not tell."""
    if drives is not None:
        found = replay(drives[0], drives[1], duration_s, 1 if seed is None else seed)
    elif campaign is not None:
        found = from_run(campaign, duration_s, 1 if seed is None else seed)
    else:
        found = play(load(scenario or DEFAULT, duration_s, seed))
    for note in found.notes:
        print(f"note: {note}", file=sys.stderr)
    return with_traces(found, traces) if traces else found


def _trace(text: str) -> tuple[str, Path]:
    operator, equals, file = text.partition("=")
    if not equals or not operator or not file:
        raise argparse.ArgumentTypeError(f"{text!r}: give OPERATOR=FILE, as in A=verizon.down")
    return operator, Path(file)
