"""``tandem indicator``: the states of the status LED, and a try of one by hand."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

from tandem.cli.run import CONFIG
from tandem.schema.status_led import BY_NAME, STATES, LedState


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "indicator",
        help="what the status LED says, and a try of it",
        description="The status LED of a kit: its states, and one of them played by hand.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    command = actions.add_parser(
        "list",
        help="the states, the gravest first",
        description="Prints the states: name, colour, pattern (lit+dark in ms, one period), what it means and what to do.",
        epilog="--json: a list of objects with name, title, colour, pattern (pairs of lit and dark, ms), period_ms, means, do.",
    )
    command.add_argument("--json", action="store_true", help="as JSON")
    command.set_defaults(func=_list)
    command = actions.add_parser(
        "show",
        help="play one state on the LED",
        description="Plays a state on the LED of the configuration, or on the usual one where that has no [status_led], and leaves it "
        "steady (not-running). A collector that runs goes on playing its own: stop it first. Exit status: 0, 2 when the "
        "configuration is wrong, 3 when the LED cannot be written.",
    )
    command.add_argument(
        "state", choices=list(BY_NAME), metavar="STATE", help="a name that tandem indicator list shows"
    )
    command.add_argument(
        "--seconds", type=_seconds, default=10.0, metavar="S", help="how long, above 0 to 3600; default: %(default)g"
    )
    command.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    command.set_defaults(func=_show)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from error
    if not (math.isfinite(seconds) and 0 < seconds <= 3600):
        raise argparse.ArgumentTypeError(f"{text} is not above 0 to 3600")
    return seconds


def _object(state: LedState) -> dict[str, object]:
    return {
        "name": state.name,
        "title": state.title,
        "colour": state.colour,
        "pattern": [list(pair) for pair in state.pattern],
        "period_ms": state.period_ms,
        "means": state.means,
        "do": state.do,
    }


def _list(args: argparse.Namespace) -> int:
    if args.json:
        print(json.dumps([_object(state) for state in STATES], indent=1))
        return 0
    for state in STATES:
        pattern = " ".join(f"{lit}+{dark}" for lit, dark in state.pattern)
        print(f"{state.name:13} {state.colour:8} {pattern}")
        print(f"{'':13} {state.means} {state.do}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError, load
    from tandem.indicator.lamp import Lamp, Leds, Player, lacking

    try:
        config = load(args.config)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    leds = Leds() if config.status_led is None else config.status_led.leds
    if lines := lacking(leds):
        print("\n".join(f"tandem: {line}" for line in lines), file=sys.stderr)
        return 3
    lamp = Lamp(leds)
    player = Player(lamp, lambda: BY_NAME[args.state])
    player.start()
    try:
        time.sleep(args.seconds)
    finally:
        player.close()
    if lamp.failures:
        print(f"tandem: the LED could not be written: {lamp.trouble or 'for a while'}", file=sys.stderr)
        return 3
    return 0
