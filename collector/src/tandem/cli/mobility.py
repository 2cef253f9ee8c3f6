"""``tandem mobility``: how well movement is recognised by radio, scored on drive logs."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli.command import HERE, Actions, CommandError, columns, command, group, number, output

if TYPE_CHECKING:
    from tandem.mobility.gnettrack import Second
    from tandem.mobility.score import Scores

HOLD_S = 120.0
SUFFIXES = (".csv", ".tsv", ".txt")
LEVELS = {"rsrp_dbm", "rscp_dbm", "rssi_dbm"}


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(
        commands, "mobility", "how well movement is recognised by radio", "The detectors of movement, off line."
    )
    score = command(
        actions, "score", _score, "score the detectors on drive logs", json="one JSON object instead of the table"
    )
    each = "each log is one modem, alone; of a folder its .csv, .tsv and .txt files"
    score.add_argument("logs", nargs="*", type=Path, metavar="LOG", help=each)
    pair = "two logs as the two modems of one probe, aligned at their starts; repeatable"
    score.add_argument("--pair", nargs=2, type=Path, action="append", default=[], metavar=("A", "B"), help=pair)
    score.add_argument("--detector", choices=["published", "fused", "both"], default="both", help=HERE)
    hold = "how long the published rule holds movement after a change; default: %(default)g (in the collector: 10)"
    score.add_argument("--hold", type=number(0, 86400, "seconds", above=True), default=HOLD_S, metavar="S", help=hold)
    score.add_argument(
        "--receiver",
        action="store_true",
        help="give the fused detector the speed of each fix, once, as a receiver would; what is true is then judged by places alone, and "
        "where_told is of the seconds in which such a fix decides",
    )


def _score(args: argparse.Namespace) -> None:
    """Plays logs of G-NetTrack Pro (CSV) to the detectors and compares their result with what the logs know: moving is above 3 km/h.
    Where a fix is older than 10 s the way to the next one decides (0.1 km in 10 minutes is standing, whatever the speed column
    repeats), and seconds of which nobody knows are not judged; rows without a place go by the speed column. Radio columns only, but
    with --receiver; every second is judged by what came up to it. Exit status: 0, or 2 for a log that cannot be read. --json:
    moving_km_h, hold_s, logs (each with file, seconds, detectors) and overall; of each detector seconds (those judged), accuracy (share
    of them judged rightly), false_starts, false_starts_per_hour, starts, missed_starts, delay_s_median and stop_delay_s_median
    (seconds), still_judged_moving, moving_judged_still (shares); null where nothing of the kind was there to be judged.
    by_speed_column: the same by the speed column as it stands, also where it repeats an old fix. With --receiver where_told: the same
    of the seconds in which a fix decides."""
    from tandem.mobility.score import Scores, scored

    names = ["published", "fused"] if args.detector == "both" else [args.detector]
    totals = {name: Scores() for name in names}
    entries = []
    wanted = [[path] for given in args.logs for path in _files(given)] + [list(pair) for pair in args.pair]
    if not wanted:
        raise CommandError("no log given; hint: tandem mobility score LOG.csv, or --pair A.csv B.csv")
    for paths in wanted:
        logs = [_read(path) for path in paths]
        scores = {name: scored(logs, name, args.hold, receiver=args.receiver) for name in names}
        totals = {name: totals[name] + scores[name] for name in names}
        entries.append(_entry(" + ".join(str(path) for path in paths), scores, receiver=args.receiver))
    overall = _entry("overall", totals, receiver=args.receiver)
    del overall["file"]
    result = {"moving_km_h": 3.0, "hold_s": args.hold, "logs": entries, "overall": overall}
    output(args, result, lambda: [_table(result, receiver=args.receiver)])


def _files(path: Path) -> list[Path]:
    """The logs in a folder, by name; a file is itself. CommandError."""
    if not path.is_dir():
        return [path]
    try:
        found = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; hint: name a log that can be read") from error
    if not found:
        hint = "name a log, or a folder with logs"
        raise CommandError(f"{path}: no {', '.join(SUFFIXES)} file in this folder; hint: {hint}")
    return found


def _read(path: Path) -> list[Second]:
    """A log with speeds and levels; CommandError."""
    from tandem.mobility.gnettrack import LogError, read

    try:
        seconds = read(path.read_bytes())
    except LogError as error:
        raise CommandError(f"{path}: {error}") from error
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; hint: name a log that can be read") from error
    if all(second.speed_km_h is None for second in seconds):
        what = "no row tells a speed, so there is no truth to score by; hint: log with GPS on"
        raise CommandError(f"{path}: from line 2 on {what}")
    if not any(LEVELS & second.fields.keys() for second in seconds):
        what = "no row tells a level, so there is nothing to judge by; hint: log with the radio on"
        raise CommandError(f"{path}: from line 2 on {what}")
    return seconds


def _entry(name: str, scores: dict[str, Scores], *, receiver: bool) -> dict[str, Any]:
    any_one = next(iter(scores.values()))
    figures: dict[str, Any] = {
        d: {**s.by_fixes.figures(), "by_speed_column": s.by_speed.figures()} for d, s in scores.items()
    }
    for detector, found in scores.items() if receiver else ():
        figures[detector]["where_told"] = found.where_told.figures()
    return {"file": name, "seconds": any_one.by_speed.seconds, "detectors": figures}


COLUMNS = (
    ("accuracy", "right", "share"),
    ("false_starts_per_hour", "false/h", "number"),
    ("missed_starts", "missed", "number"),
    ("delay_s_median", "start s", "number"),
    ("stop_delay_s_median", "stop s", "number"),
    ("still_judged_moving", "still→mov", "share"),
    ("moving_judged_still", "mov→still", "share"),
)


def _table(result: dict[str, Any], *, receiver: bool) -> str:
    by, title = ("where_told", "told") if receiver else ("by_speed_column", "column")
    rows = [["log", "seconds", "judged", "detector", *(title for _, title, _ in COLUMNS), title]]
    for entry in [*result["logs"], {"file": "overall", **result["overall"]}]:
        for detector, figures in entry["detectors"].items():
            label = f"{detector} {result['hold_s']:g} s" if detector == "published" else detector
            cells = [_cell(figures[key], kind) for key, _, kind in COLUMNS]
            by_column = _cell(figures[by]["accuracy"], "share")
            name = " + ".join(Path(part).name for part in entry["file"].split(" + "))
            rows.append([name, str(entry["seconds"]), str(figures["seconds"]), label, *cells, by_column])
    last = (
        "told: share right of the seconds in which a fix decides"
        if receiver
        else "column: share right by the speed column as it stands, old fixes and all"
    )
    note = (
        "judged: seconds of which the log's fixes show whether it moved; right: share of them judged rightly; false/h: false starts an "
        "hour;\nmissed: spells of moving never noticed; start, stop: median delays; still→mov, mov→still: share of still seconds judged "
        f"moving and the reverse;\n{last}"
    )
    return "\n".join([*columns(rows, right=[n for n in range(len(rows[0])) if n not in (0, 3)]), note])


def _cell(value: float | None, kind: str) -> str:
    if value is None:
        return "–"
    return f"{value * 100:.1f} %" if kind == "share" else f"{value:.3g}"
