"""``tandem watch``: the running collector, live."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from typing import Any

from tandem.cli.status import add_where, socket_of


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "watch",
        help="the running collector, live",
        description="Shows radio, movement, events and runs of the running collector; plain lines when not on a terminal. "
        "Ends by itself when the collector ends; Ctrl-C ends the view, never the collector. "
        "Exit status: 0, or 1 when no collector runs there.",
    )
    add_where(parser)
    parser.add_argument("--plain", action="store_true", help="plain lines also on a terminal")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Watch until the collector ends."""
    from tandem.app.config import ConfigError
    from tandem.app.status_socket import NoCollectorError, ask

    try:
        socket = socket_of(args)
        statuses = _statuses(ask(socket, {"op": "watch"}))
        if args.plain or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
            return _plain(statuses)
        return _live(statuses)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except NoCollectorError as error:
        print(f"tandem: no collector answers: {error}; mend: start it with tandem run", file=sys.stderr)
        return 1


def _statuses(answers: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for answer in answers:
        if answer.get("type") == "status":
            yield answer


def _plain(statuses: Iterator[dict[str, Any]]) -> int:
    from tandem.cli.view.plain import Lines

    lines = Lines()
    for status in statuses:
        for line in lines.of(status):
            print(line, flush=True)
    return 0


def _live(statuses: Iterator[dict[str, Any]]) -> int:
    from rich.console import Console
    from rich.live import Live

    from tandem.cli.view.screen import screen

    # rich restores the terminal when this ends by an exception, which SIGTERM is none of by itself.
    signal.signal(signal.SIGTERM, lambda _number, _frame: sys.exit(0))
    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        for status in statuses:
            live.update(screen(status, console.size.width, console.size.height), refresh=True)
    return 0
