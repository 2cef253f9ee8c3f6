"""``tandem watch``: the running collector, live."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from tandem.cli.status import add_where, socket_of


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "watch",
        help="the running collector, live",
        description="Shows both modems, movement, events, the current run with its subflows, and what is not well, of the running "
        "collector, on a terminal of 80 columns and 24 rows or more (with less room: less); plain lines where no screen can be drawn "
        "(no terminal, or a dumb one). Colours and characters are those that the terminal and the locale have: a value that is fair "
        "bears a ! too, a poor one !!. NO_COLOR=1 leaves colours out. Ends by itself when the collector ends; Ctrl-C ends the view, "
        "never the collector. Exit status: 0, or 1 when no collector runs there.",
    )
    add_where(parser)
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--plain", action="store_true", help="plain lines also on a terminal")
    how.add_argument(
        "--json", action="store_true", help="each status as one line of JSON (fields: docs/contributing/collector.md)"
    )
    parser.add_argument("--ascii", action="store_true", help="ASCII characters only, whatever the locale says")
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Watch until the collector ends."""
    from tandem.app.config import ConfigError
    from tandem.app.daemon.status_socket import NoCollectorError, ask

    try:
        statuses = _statuses(ask(socket_of(args), {"op": "watch"}))
        if args.json:
            return _json(statuses)
        return _shown(statuses, plain=args.plain, ascii_only=args.ascii)
    except ConfigError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 2
    except NoCollectorError as error:
        print(f"tandem: no collector answers: {error}; hint: start it with tandem run", file=sys.stderr)
        return 1


def _statuses(answers: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for answer in answers:
        if answer.get("type") == "status":
            yield answer


def _json(statuses: Iterator[dict[str, Any]]) -> int:
    for status in statuses:
        print(json.dumps(status), flush=True)
    return 0


def _shown(statuses: Iterator[dict[str, Any]], *, plain: bool, ascii_only: bool) -> int:
    from tandem.cli.view.glyphs import Glyphs
    from tandem.cli.view.terminal import own_environment, terminal

    there = terminal(sys.stdout, own_environment())
    if ascii_only:
        there = there.in_ascii()
    if plain or not there.screen:
        return _plain(statuses, Glyphs(there.charset))
    from tandem.cli.view.live_view import watch

    watch(statuses, there)
    print("tandem: the collector ended", file=sys.stderr)
    return 0


def _plain(statuses: Iterator[dict[str, Any]], glyphs: Any) -> int:  # noqa: ANN401 Glyphs, which is loaded late
    from tandem.cli.view.plain import Lines

    lines = Lines()
    for status in statuses:
        for line in lines.of(status):
            print(glyphs.text(line), flush=True)
    return 0
