"""``tandem steering``: what the policies would have done in recorded runs, and what this probe has learned."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tandem.cli.command import Actions, CommandError, columns, command, configuration, group, output
from tandem.mptcp.steering import POLICIES

UNKNOWN = (
    "An estimate: the radio and the other paths go on as recorded. Foregone bytes are the most that could be lost, since the others "
    "may have carried them; a run that was steered itself says nothing of what its path would have carried meanwhile; "
    "what learned knew is the history given, which may hold these very runs."
)


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(commands, "steering", "paths made backup by their radio: what policies would do, what was learned")
    decisions = "one JSON object, with each run's decisions"
    simulated = command(actions, "simulate", _simulate, "play recorded runs to the policies", json=decisions)
    simulated.epilog = UNKNOWN
    simulated.add_argument("folder", type=Path, help="a probe's folder, a campaign's folder, or one with manifests")
    simulated.add_argument("--policy", choices=POLICIES, action="append", help="repeatable; default: all")
    known = "what the policies know (a probe's steering.json); default: nothing but the paper's figures"
    simulated.add_argument("--history", type=Path, metavar="FILE", help=known)
    history = command(actions, "history", _history, "what this probe learned of its recoveries", config=True, json=True)
    history.add_argument("--file", type=Path, metavar="FILE", help="a steering.json instead of this probe's")


def _simulate(args: argparse.Namespace) -> None:
    """Plays the events that runs by Multipath TCP recorded to the policies: what each would have ordered, how long each path would have
    been backup, and an estimate of bytes foregone and of round-trip peaks avoided. Runs of any policy, off included, are recorded.
    Exit status: 0, or 2 for a folder without such runs."""
    from tandem.app.runs.steering import load_history
    from tandem.mptcp.recovery import History, HistoryError
    from tandem.mptcp.steering import RecordingError, Simulated, as_rows, recording, simulate

    if args.history is not None and not args.history.is_file():
        raise CommandError(f"{args.history}: no such file; hint: a probe's steering.json")
    try:
        history = History() if args.history is None else load_history(args.history)
        files = _manifests(args.folder)
    except (OSError, HistoryError) as error:
        raise CommandError(error) from error
    policies = args.policy or list(POLICIES)
    totals = {policy: Simulated(policy) for policy in policies}
    runs: list[dict[str, Any]] = []
    left: list[str] = []
    for file in files:
        try:
            run = recording(json.loads(file.read_bytes()).get("steering"))
        except (OSError, ValueError, AttributeError, RecordingError) as error:
            left.append(f"{file.name}: {error}")
            continue
        row: dict[str, Any] = {"run": file.stem, "steered_by": run.policy, "policies": {}}
        for policy in policies:
            one = simulate(run, policy, history)
            totals[policy].add(one)
            row["policies"][policy] = {**one.as_json(), "decisions": as_rows(one.decisions, run.begin_ns)}
        runs.append(row)
    if not runs:
        why = left[0] if left else "no manifest in it"
        hint = "runs by Multipath TCP over two paths are recorded"
        raise CommandError(f"{args.folder}: no recorded run ({why}); hint: {hint}")
    found = {"estimate": UNKNOWN, "runs": runs, "left_out": left, "overall": [totals[p].as_json() for p in policies]}
    output(args, found, lambda: _lines(found))


def _manifests(folder: Path) -> list[Path]:
    """Of a probe's folder, a campaign's, or the folder itself."""
    places = [folder / "runs", *sorted(folder.glob("probe/*/runs"))]
    found = [file for place in places if place.is_dir() for file in sorted(place.glob("*.json"))]
    if not found and not folder.is_dir():
        raise NotADirectoryError(f"{folder}: no such folder; hint: name a probe's folder")
    return found or sorted(folder.glob("*.json"))


def _lines(found: dict[str, Any]) -> list[str]:
    rows = [("policy", "path", "backup", "of time", "foregone ≤", "RTT peaks", "avoided  (estimated)")]
    orders = []
    for row in found["overall"]:
        for name, path in row["paths"].items():
            share = "–" if path["backup_share"] is None else f"{100 * path['backup_share']:.1f} %"
            foregone = f"{path['estimated_foregone_bytes'] / 1e6:.2f} MB"
            peaks = (f"{path['rtt_peak_s']:.1f} s", f"{path['estimated_avoided_rtt_peak_s']:.1f} s")
            rows.append((row["policy"], name, f"{path['backup_s']:.1f} s", share, foregone, *peaks))
        orders.append(
            f"{row['policy']}: {row['backup']} orders, {row['extended']} extended, {row['declined']} declined"
        )
    counts = f"{len(found['runs'])} runs, {len(found['left_out'])} without a recording"
    return [counts, *columns(rows, right=(2, 3, 4, 5)), *orders, UNKNOWN]


def _history(args: argparse.Namespace) -> None:
    """By class of event (kind, drop in steps of 3 dB, speed class): what is expected, and from how many events. Exit status: 0, or 2
    where the file cannot be read."""
    from tandem.app.runs.steering import FILE, load_history
    from tandem.mptcp.recovery import HistoryError

    file = args.file if args.file is not None else configuration(args).folder / FILE
    try:
        classes = load_history(file).rows()
    except (OSError, HistoryError) as error:
        raise CommandError(error) from error
    rows = [("event", "recovers in", "keeps", "seen", "whole transfer keeps: left alone, left out")]
    for row in classes:
        sides = ", ".join(
            f"{'–' if row[name] is None else f'{100 * row[name]:.0f} %'} ({row[f'seen_{name}']})"
            for name in ("alone", "left_out")
        )
        kept = f"{100 * row['kept']:.0f} %"
        rows.append((row["class"], f"{row['recovery_s']:.1f} s", kept, str(row["seen"]), sides))
    nothing = [] if classes else ["nothing was learned yet: the paper's figures hold"]
    output(args, {"file": str(file), "classes": classes}, lambda: [*columns(rows, right=(1, 2, 3)), *nothing])
