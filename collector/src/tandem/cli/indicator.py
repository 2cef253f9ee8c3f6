"""``tandem indicator``: the states of the status LED, and a try of one by hand."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict

from tandem.cli.command import Actions, CommandError, ExitCode, command, configuration, group, number, output
from tandem.schema.status_led import BY_NAME, STATES, LedState


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    description = "The status LED of a kit: its states, and one of them played by hand."
    actions = group(commands, "indicator", "what the status LED says, and a try of it", description)
    command(actions, "list", _list, "the states, the gravest first", json=True)
    show = command(actions, "show", _show, "play one state on the LED", config=True)
    name = "a name that tandem indicator list shows"
    show.add_argument("state", choices=list(BY_NAME), metavar="STATE", help=name)
    seconds = "how long, above 0 to 3600; default: %(default)g"
    show.add_argument("--seconds", type=number(0, 3600, "seconds", above=True), default=10.0, metavar="S", help=seconds)


def _line(state: LedState) -> str:
    pattern = " ".join(f"{lit}+{dark}" for lit, dark in state.pattern)
    return f"{state.name:13} {state.colour:8} {pattern}\n{'':13} {state.means} {state.do}"


def _object(state: LedState) -> dict[str, object]:
    return {**asdict(state), "title": state.title, "period_ms": state.period_ms}


def _list(args: argparse.Namespace) -> None:
    """Prints the states: name, colour, pattern (lit+dark in ms, one period), what it means and what to do. --json: a list of objects
    with name, title, colour, pattern (pairs of lit and dark, ms), period_ms, means, do."""
    output(args, [_object(state) for state in STATES], lambda: map(_line, STATES))


def _show(args: argparse.Namespace) -> None:
    """Plays a state on the LED of the configuration, or on the usual one where that has no [status_led], and leaves it steady
    (not-running). A collector that runs goes on playing its own: stop it first. Exit status: 0, 2 when the configuration is wrong, 3
    when the LED cannot be written."""
    from tandem.indicator.lamp import Lamp, Leds, Player, missing_leds

    config = configuration(args)
    leds = Leds() if config.status_led is None else config.status_led.leds
    if missing := missing_leds(leds):
        raise CommandError("; ".join(missing), ExitCode.ENVIRONMENT)
    lamp = Lamp(leds)
    player = Player(lamp, lambda: BY_NAME[args.state])
    player.start()
    try:
        time.sleep(args.seconds)
    finally:
        player.close()
    if lamp.failures:
        raise CommandError(f"the LED could not be written: {lamp.trouble or 'for a while'}", ExitCode.ENVIRONMENT)
