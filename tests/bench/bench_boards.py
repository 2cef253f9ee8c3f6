"""Every query of every board over six months of a hundred probes: how long it takes, as the reader, in the median.

``python tests/bench/bench_boards.py [--probes 100] [--days 182] [--range 6M] [--times 3] [--board FILE] [--folder F] [--json]``: fills a
private database in a temporary folder at the database's speed (``long_fill.py``; some minutes, about 2 GB) and asks what Grafana would
(``tandem_dashboards.asking``), variables at All or, where exactly one is chosen, at the first. With ``--folder`` the filled database
stays there and is used again. Exit status 1 when a median is over ``--limit`` seconds (2) or a query fails.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import long_fill

from tandem_dashboards.asking import ask_board
from tandem_dashboards.cli.check import where
from tandem_dashboards.generate import GENERATED
from tandem_dashboards.grafana.times import range_of
from tandem_dashboards.influx import Influx as Asking
from tandem_dashboards.questions import choices_of, questions_of
from tandem_server.store import PrivateInflux, find_influxd

START_S = 600.0
"""A filled database reads its log again when it starts."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probes", type=int, default=100)
    parser.add_argument("--days", type=int, default=182)
    parser.add_argument("--range", default="6M", help="of the boards, to now: 5m, 6h, 30d, 6M")
    parser.add_argument("--times", type=int, default=3, help="each query, for its median")
    parser.add_argument("--limit", type=float, default=2.0)
    parser.add_argument(
        "--board", action="append", type=Path, metavar="FILE", help="JSON; by default all that are committed"
    )
    parser.add_argument("--folder", type=Path, help="keep the filled database there")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    boards = {file.stem: json.loads(file.read_text()) for file in args.board or sorted(GENERATED.glob("*.json"))}
    with contextlib.ExitStack() as held:
        folder = args.folder or Path(held.enter_context(tempfile.TemporaryDirectory(prefix="tandem-boards-")))
        database = PrivateInflux(find_influxd(), folder / "influx", 0)
        held.callback(database.stop)
        database.start(START_S)
        end_s = filled(folder, database, boards, args)
        asking = held.enter_context(
            Asking(database.url, "tandem", "reader", (database.folder / "reader.password").read_text().strip(), 300.0)
        )
        told = ask(asking, boards, end_s, args.range, args.times)
    if args.json:
        print(json.dumps(told, indent=1))
    else:
        show(told, args.limit)
    return int(any(one["error"] or one["median_s"] > args.limit for one in told))


def filled(folder: Path, database: PrivateInflux, boards: dict[str, dict], args) -> int:
    """The end of the time that is filled; filled now if it was not."""
    note = folder / "filled.json"
    if note.is_file():
        return json.loads(note.read_text())["end_s"]
    fleet = long_fill.Fleet(args.probes, args.days, int(time.time()) // 60 * 60)
    asked = [query for board in boards.values() for query in queries(board)]
    began_s, points = time.monotonic(), 0
    with database.client("admin") as store:
        for what, policy, lines in long_fill.everything(fleet, asked):
            step_s = time.monotonic()
            count = long_fill.write(store, lines, policy)
            points += count
            print(f"{what:<24} {count:>9} points {time.monotonic() - step_s:7.1f} s", file=sys.stderr, flush=True)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    print(
        f"filled: {points} points, {time.monotonic() - began_s:.0f} s, {size / 1e9:.2f} GB", file=sys.stderr, flush=True
    )
    note.write_text(json.dumps({"end_s": fleet.end_s, "points": points}))
    return fleet.end_s


def queries(board: dict) -> list[str]:
    """All that it asks, as it is written."""
    return [one.text for one in questions_of(board)] + [one.query for one in choices_of(board)]


def ask(asking: Asking, boards: dict[str, dict], end_s: int, wide: str, times: int) -> list[dict]:
    """Each query's median, of all boards one after another."""
    span = range_of(f"now-{wide}", "now", end_s * 1000)
    out = []
    for name, board in boards.items():
        rounds = [ask_board(board, asking, span)[1] for _ in range(times)]
        out += [
            {
                "board": name,
                "of": same[0].question.of,
                "query": where(same[0]),
                "text": same[0].text,
                "rows": same[0].rows,
                "error": same[0].error,
                "median_s": round(statistics.median(one.seconds for one in same), 4),
            }
            for same in zip(*rounds, strict=True)
        ]
    return out


def show(told: list[dict], limit_s: float) -> None:
    print(f"{'board':<12} {'queries':>7} {'no rows':>7} {'errors':>6} {'median s':>9} {'slowest s':>9}  slowest")
    for name in sorted({one["board"] for one in told}):
        mine = [one for one in told if one["board"] == name]
        slowest = max(mine, key=lambda one: one["median_s"])
        print(
            f"{name:<12} {len(mine):>7} {sum(not one['rows'] for one in mine):>7} {sum(bool(one['error']) for one in mine):>6}"
            f" {statistics.median(one['median_s'] for one in mine):>9.3f} {slowest['median_s']:>9.3f}  {slowest['query']}"
        )
    for one in sorted(told, key=lambda one: -one["median_s"]):
        if one["error"] or one["median_s"] > limit_s:
            print(f"\n{one['query']}: {one['error'] or ''} {one['median_s']} s\n    {one['text'][:1000]}")


if __name__ == "__main__":
    sys.exit(main())
