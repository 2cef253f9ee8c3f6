"""``tandem status`` and ``tandem watch``: what the running collector reports, once or live."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from tandem.cli.command import CONFIG, HERE, Actions, ExitCode, answer_of, command, configuration, output, say


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    parser = command(
        commands,
        "status",
        _status,
        "what the running collector reports, once",
        json="the status object as JSON (fields: docs/contributing/collector.md)",
    )
    add_where(parser)
    parser = command(commands, "watch", _watch, "the running collector, live")
    add_where(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="plain lines also on a terminal")
    how.add_argument(
        "--json", action="store_true", help="each status as one line of JSON (fields: docs/contributing/collector.md)"
    )
    parser.add_argument("--ascii", action="store_true", help="ASCII characters only, whatever the locale says")


def add_where(parser: argparse.ArgumentParser) -> None:
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help=f"of the collector; {HERE}")
    where.add_argument("--socket", type=Path, metavar="PATH", help="its status socket, instead of --config")


def socket_of(args: argparse.Namespace) -> Path:
    """The status socket; ConfigError when the configuration is bad."""
    from tandem.app.daemon.status_socket import NAME

    given: Path | None = args.socket
    return given if given is not None else configuration(args).folder / NAME


def _status(args: argparse.Namespace) -> None:
    """Prints the state of the running collector. Exit status: 0, or 1 when no collector runs there."""
    from tandem.cli.view.text import summary

    status = answer_of(socket_of(args), {"op": "status"}, 5.0, ExitCode.NEGATIVE)
    output(args, status, lambda: [summary(status)])


def _watch(args: argparse.Namespace) -> None:
    """Shows both modems, movement, events, the current run with its subflows, and what is not well, of the running collector, on a
    terminal of 80 columns and 24 rows or more (with less room: less); plain lines where no screen can be drawn (no terminal, or a dumb
    one). Colours and characters are those of the terminal and the locale: a value that is fair bears a ! too, a poor one !!. NO_COLOR=1
    leaves colours out. Ends when the collector ends; Ctrl-C ends the view, never the collector. Exit status: 0, or 1 when no collector
    runs there."""
    from tandem.app.daemon.status_socket import ask

    answers = ask(socket_of(args), {"op": "watch"})
    statuses = (answer for answer in answers if answer.get("type") == "status")
    if args.json:
        for status in statuses:
            print(json.dumps(status), flush=True)
    else:
        _show(statuses, plain=args.plain, ascii_only=args.ascii)


def _show(statuses: Iterator[dict[str, Any]], *, plain: bool, ascii_only: bool) -> None:
    from tandem.cli.view.terminal import Glyphs, own_environment, terminal, watch
    from tandem.cli.view.text import Lines

    there = terminal(sys.stdout, own_environment())
    if ascii_only:
        there = replace(there, charset="ascii")
    if there.screen and not plain:
        watch(statuses, there)
        say("the collector ended")
        return
    lines, glyphs = Lines(), Glyphs(there.charset)
    for status in statuses:
        for line in lines.of(status):
            print(glyphs.text(line), flush=True)
