"""``check``: every query of the boards and the alarms, run as a reader against a database."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tandem_dashboards import registry
from tandem_dashboards.alarms.live import ask_alarms
from tandem_dashboards.asking import Answer, ask_board
from tandem_dashboards.cli import asked as common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Its arguments."""
    parser = commands.add_parser(
        "check", help="run every query of the boards and alarms against a database; say rows, errors, time"
    )
    common.add_database(parser)
    parser.add_argument(
        "--board",
        action="append",
        metavar="NAME",
        help="only this one; again for several (default: all, and the alarms)",
    )
    parser.add_argument("--rows", action="store_true", help="a query without rows is an error, too")
    parser.add_argument("--json", action="store_true", help="one JSON object, for machines")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """Ask, and tell."""
    wanted = common.chosen(asked)
    answers: list[Answer] = []
    with common.database(asked) as database:
        for name in asked.board or registry.names():
            board = common.board_json(name)
            answers += ask_board(board, database, common.span_of(board, asked), wanted)[1]
        if not asked.board:
            answers += ask_alarms(database, int(time.time() * 1000))
    bad = [answer for answer in answers if answer.error or (asked.rows and not answer.rows)]
    if asked.json:
        print(json.dumps({"queries": [answer.to_json() for answer in answers], "summary": summary(answers)}, indent=1))
    else:
        for answer in answers:
            print(line(answer))
        print(told(answers))
    for answer in bad:
        print(f"{where(answer)}: {answer.error or 'no rows'}\n    {answer.text}", file=sys.stderr)
    return 1 if bad else 0


def where(answer: Answer) -> str:
    """Which query."""
    asked = answer.question
    return f"{asked.board}: {asked.of} {asked.name!r}{' ' + asked.ref if asked.ref else ''}"


def line(answer: Answer) -> str:
    """One query, for people."""
    said = "error" if answer.error else f"{answer.rows} rows"
    return f"{answer.seconds * 1000:8.1f} ms {said:>12}  {where(answer)}"


def summary(answers: list[Answer]) -> dict[str, object]:
    """Counts, and the slowest."""
    panels = {(a.question.board, a.question.panel) for a in answers if a.question.of == "panel"}
    slowest = max(answers, key=lambda answer: answer.seconds, default=None)
    return {
        "boards": len({a.question.board for a in answers if a.question.of != "alert"}),
        "alarms": len({a.question.name for a in answers if a.question.of == "alert"}),
        "panels": len(panels),
        "queries": len(answers),
        "errors": sum(a.error is not None for a in answers),
        "without_rows": sum(a.error is None and not a.rows for a in answers),
        "slowest_s": round(slowest.seconds, 4) if slowest else None,
        "slowest": where(slowest) if slowest else None,
    }


def told(answers: list[Answer]) -> str:
    """The summary in one line."""
    s = summary(answers)
    return (
        f"{s['boards']} boards, {s['panels']} panels, {s['alarms']} alarms, {s['queries']} queries: {s['errors']} errors, "
        f"{s['without_rows']} without rows; slowest {s['slowest_s']} s: {s['slowest']}"
    )
