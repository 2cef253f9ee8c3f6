"""The command line: ``generate``, ``check``, ``preview``, ``alarms``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

from tandem_dashboards import boards, generate
from tandem_dashboards.alarms import GROUPS
from tandem_dashboards.board import BoardError
from tandem_dashboards.grafana.macros import FormatError, Range, TimeError, range_of
from tandem_dashboards.influx import AwayError, Influx
from tandem_dashboards.query_runner import SCREEN_PIXELS, Answer, run_alarms, run_board

READER = "reader"
_REPORTED = (BoardError, TimeError, FormatError, AwayError, OSError)
"""What a person can fix: one line."""


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(prog="tandem-dashboards", description="Tandem's boards for Grafana, as code.")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")

    what = "write generated/*.json and provisioning/alerting, or see whether they are up to date"
    made = commands.add_parser("generate", help=what)
    made.set_defaults(run=_generate)
    made.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file differs")
    for option, of, where in (("--out", generate.boards, "where"), ("--alarms-out", generate.alarms, "alarms")):
        made.add_argument(
            option, type=Path, default=of.folder, metavar="FOLDER", help=f"{where} (default: %(default)s)"
        )

    what = "run every query of the boards and alarms against a database; say rows, errors, time"
    check = commands.add_parser("check", help=what)
    check.set_defaults(run=_check)
    _add_database(check)
    only = "only this one; again for several (default: all, and the alarms)"
    check.add_argument("--board", action="append", metavar="NAME", help=only)
    check.add_argument("--rows", action="store_true", help="a query without rows is an error, too")
    check.add_argument("--json", action="store_true", help="one JSON object, for machines")

    preview = commands.add_parser(
        "preview",
        help="one board as a self-contained HTML page, drawn from a database's answers",
        description="One board as a self-contained HTML page, drawn from a database's answers, for people without Grafana. With --to in "
        'the past, what panels show as "now" is as of then.',
    )
    preview.set_defaults(run=_preview)
    _add_database(preview)
    preview.add_argument("--board", required=True, metavar="NAME", help="which: fleet, probe …")
    preview.add_argument("--out", required=True, type=Path, metavar="FILE.html")
    preview.add_argument("--width", type=int, default=SCREEN_PIXELS, help="pixels (default: %(default)s)")

    alarms = commands.add_parser(
        "alarms",
        help="list the alarms and their tolerances",
        description="List the alarms and their tolerances. Grafana evaluates them; check runs their queries.",
    )
    alarms.set_defaults(run=_alarms)
    alarms.add_argument("--json", action="store_true", help="one JSON object, for machines")
    return top


def _add_database(parser: argparse.ArgumentParser) -> None:
    """Where, as whom, over which time, with which variables."""
    add = parser.add_argument
    add("--url", required=True, help="the database's address: http://127.0.0.1:8086")
    add("--database", default="tandem", help="default: %(default)s")
    add("--user", default=READER, help="an account that may only read (default: %(default)s)")
    add("--password-file", type=Path, metavar="FILE", help="its password; without, no account is used")
    add("--from", dest="since", metavar="TIME", help="now-6h, ms since 1970, or ISO 8601 (default: the board's)")
    add("--to", dest="until", default="now", metavar="TIME", help="likewise (default: now)")
    chosen = "chosen in a variable; again for several (default: All)"
    add("--var", action="append", default=[], metavar="NAME=VALUE", help=chosen)


def main(argv: list[str] | None = None) -> int:
    """The exit status: 0 done, 1 something is not as it must be, 2 wrong arguments or no database."""
    args = parser().parse_args(argv)
    try:
        status: int = args.run(args)
    except _REPORTED as error:
        print(f"tandem-dashboards: {error}", file=sys.stderr)
        return 2
    return status


def _generate(args: argparse.Namespace) -> int:
    both = ((generate.boards, args.out), (generate.alarms, args.alarms_out))
    if args.check:
        differing = [(folder / name, of.what) for of, folder in both for name in of.drift(folder)]
        for path, what in differing:
            print(f"{path}: not what the {what} make; run python -m tandem_dashboards generate", file=sys.stderr)
        return 1 if differing else 0
    for of, folder in both:
        for name in of.write(folder):
            print(folder / name)
    return 0


def _database(args: argparse.Namespace) -> Influx:
    password = args.password_file.read_text(encoding="utf-8").strip() if args.password_file else ""
    return Influx(args.url, args.database, args.user if args.password_file else "", password)


def _variables(args: argparse.Namespace) -> dict[str, list[str]]:
    """Values by variable; BoardError when one is not NAME=VALUE."""
    found: dict[str, list[str]] = {}
    for pair in args.var:
        name, sign, value = pair.partition("=")
        if not sign or not name:
            raise BoardError(f"--var {pair}: not NAME=VALUE")
        found.setdefault(name, []).append(value)
    return found


def _span(board: dict[str, Any], args: argparse.Namespace) -> Range:
    """The time range of the arguments, else the board's own."""
    return range_of(args.since or board["time"]["from"], args.until, int(time.time() * 1000))


def _board(name: str) -> dict[str, Any]:
    """The board as Grafana loads it."""
    made: dict[str, Any] = json.loads(boards.load(name).to_text())
    return made


def _check(args: argparse.Namespace) -> int:
    wanted = _variables(args)
    answers: list[Answer] = []
    with _database(args) as database:
        for name in args.board or boards.BOARDS:
            board = _board(name)
            answers += run_board(board, database, _span(board, args), wanted)[1]
        if not args.board:
            answers += run_alarms(database, int(time.time() * 1000))
    bad = [answer for answer in answers if answer.error or (args.rows and not answer.rows)]
    if args.json:
        print(json.dumps({"queries": [answer.to_json() for answer in answers], "summary": _summary(answers)}, indent=1))
    else:
        for answer in answers:
            count = "error" if answer.error else f"{answer.rows} rows"
            print(f"{answer.seconds * 1000:8.1f} ms {count:>12}  {_where(answer)}")
        print(summary_line(answers))
    for answer in bad:
        print(f"{_where(answer)}: {answer.error or 'no rows'}\n    {answer.text}", file=sys.stderr)
    return 1 if bad else 0


def _where(answer: Answer) -> str:
    query = answer.query
    return f"{query.board}: {query.of} {query.name!r}{' ' + query.ref if query.ref else ''}"


def _summary(answers: list[Answer]) -> dict[str, object]:
    """Counts, and the slowest."""
    panels = {(a.query.board, a.query.panel) for a in answers if a.query.of == "panel"}
    slowest = max(answers, key=lambda answer: answer.seconds, default=None)
    return {
        "boards": len({a.query.board for a in answers if a.query.of != "alert"}),
        "alarms": len({a.query.name for a in answers if a.query.of == "alert"}),
        "panels": len(panels),
        "queries": len(answers),
        "errors": sum(a.error is not None for a in answers),
        "without_rows": sum(a.error is None and not a.rows for a in answers),
        "slowest_s": round(slowest.seconds, 4) if slowest else None,
        "slowest": _where(slowest) if slowest else None,
    }


def summary_line(answers: list[Answer]) -> str:
    """Counts, and the slowest, in one line."""
    s = _summary(answers)
    return (
        f"{s['boards']} boards, {s['panels']} panels, {s['alarms']} alarms, {s['queries']} queries: {s['errors']} errors, "
        f"{s['without_rows']} without rows; slowest {s['slowest_s']} s: {s['slowest']}"
    )


def _preview(args: argparse.Namespace) -> int:
    from tandem_dashboards.preview.page import page  # here: matplotlib is loaded by what draws only

    board = _board(args.board)
    with _database(args) as database:
        span = _span(board, args)
        chosen, answers = run_board(board, database, span, _variables(args), now_ms=span.to_ms)
    made = args.out.with_name(args.out.name + ".tmp")
    made.write_text(page(board, span, chosen, answers, args.width), encoding="utf-8")
    made.replace(args.out)
    print(f"{args.out}: {summary_line(answers)}")
    return 1 if any(answer.error for answer in answers) else 0


def _alarms(args: argparse.Namespace) -> int:
    if args.json:
        listed = [
            {
                "group": group,
                "alarm": a.key,
                "title": a.title,
                "severity": a.severity,
                "limit": a.tolerance.limit,
                "for_s": a.tolerance.for_s,
                "why": a.tolerance.why,
                "no_data": a.no_data,
                "why_no_data": a.why_no_data,
            }
            for group, alarms in GROUPS.items()
            for a in alarms
        ]
        print(json.dumps({"alarms": listed}, indent=1))
        return 0
    for group, alarms in GROUPS.items():
        print(group)
        for a in alarms:
            t = a.tolerance
            print(f"  {a.key:20} {a.severity:8} limit {t.limit:>8g}, for {t.for_s:>5} s: {t.why}")
    return 0
