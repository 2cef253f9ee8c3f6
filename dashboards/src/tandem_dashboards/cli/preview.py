"""``preview``: a board as a page, drawn from a database's answers, for people without Grafana."""

from __future__ import annotations

import argparse
from pathlib import Path

from tandem_dashboards.asking import SCREEN_PIXELS, ask_board
from tandem_dashboards.cli import asked as common
from tandem_dashboards.cli.check import told
from tandem_dashboards.preview.page import page


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Its arguments."""
    parser = commands.add_parser(
        "preview", help="one board as a self-contained HTML page, drawn from a database's answers"
    )
    common.add_database(parser)
    parser.add_argument("--board", required=True, metavar="NAME", help="which: fleet, probe …")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE.html")
    parser.add_argument("--width", type=int, default=SCREEN_PIXELS, help="pixels (default: %(default)s)")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Ask, draw, write."""
    board = common.board_json(asked.board)
    with common.database(asked) as database:
        span = common.span_of(board, asked)
        chosen, answers = ask_board(board, database, span, common.chosen(asked))
    made = asked.out.with_name(asked.out.name + ".tmp")
    made.write_text(page(board, span, chosen, answers, asked.width), encoding="utf-8")
    made.replace(asked.out)
    print(f"{asked.out}: {told(answers)}")
    return 1 if any(answer.error for answer in answers) else 0
