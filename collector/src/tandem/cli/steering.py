"""``tandem steering``: what the policies would have done in recorded runs, and what this probe has learned."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tandem.cli.run import CONFIG
from tandem.mptcp.steering import POLICIES

UNKNOWN = (
    "An estimate: the radio and the other paths go on as recorded. Foregone bytes are the most that could be lost, since the others "
    "may have carried them; a run that was steered itself says nothing of what its path would have carried meanwhile; "
    "what learned knew is the history given, which may hold these very runs."
)


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "steering", help="paths made backup by their radio: what policies would do, what was learned"
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    simulated = actions.add_parser(
        "simulate",
        help="play recorded runs to the policies",
        description="Plays the events that runs by Multipath TCP recorded to the policies: what each would have ordered, how long each "
        "path would have been backup, and an estimate of bytes foregone and of round-trip peaks avoided. Runs of any policy, off included, "
        f"are recorded. {UNKNOWN} Exit status: 0, or 2 for a folder without such runs.",
    )
    simulated.add_argument("folder", type=Path, help="a probe's folder, a campaign's folder, or one with manifests")
    simulated.add_argument("--policy", choices=POLICIES, action="append", help="repeatable; default: all")
    simulated.add_argument(
        "--history",
        type=Path,
        metavar="FILE",
        help="what the policies know (a probe's steering.json); default: nothing but the paper's figures",
    )
    simulated.add_argument("--json", action="store_true", help="one JSON object, with each run's decisions")
    simulated.set_defaults(func=_simulate)
    history = actions.add_parser(
        "history",
        help="what this probe learned of its recoveries",
        description="By class of event (kind, drop in steps of 3 dB, speed class): what is expected, and from how many events. "
        "Exit status: 0, or 2 where the file cannot be read.",
    )
    history.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    history.add_argument("--file", type=Path, metavar="FILE", help="a steering.json instead of this probe's")
    history.add_argument("--json", action="store_true", help="one JSON object")
    history.set_defaults(func=_history)


def _simulate(args: argparse.Namespace) -> int:
    from tandem.app.runs.steering import load_history
    from tandem.mptcp.recovery import History, HistoryError
    from tandem.mptcp.steering import RecordingError, Simulated, as_rows, recording, simulate

    try:
        if args.history is not None and not args.history.is_file():
            return _wrong(f"{args.history}: no such file; hint: a probe's steering.json")
        history = History() if args.history is None else load_history(args.history)
        files = _manifests(args.folder)
    except (OSError, HistoryError) as error:
        return _wrong(error)
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
        return _wrong(
            f"{args.folder}: no recorded run ({why}); hint: runs by Multipath TCP over two paths are recorded"
        )
    found = {"estimate": UNKNOWN, "runs": runs, "left_out": left, "overall": [totals[p].as_json() for p in policies]}
    print(json.dumps(found, indent=1) if args.json else _table(found))
    return 0


def _manifests(folder: Path) -> list[Path]:
    """Of a probe's folder, a campaign's, or the folder itself."""
    places = [folder / "runs", *sorted(folder.glob("probe/*/runs"))]
    found = [file for place in places if place.is_dir() for file in sorted(place.glob("*.json"))]
    if not found and not folder.is_dir():
        raise NotADirectoryError(f"{folder}: no such folder; hint: name a probe's folder")
    return found or sorted(folder.glob("*.json"))


def _table(found: dict[str, Any]) -> str:
    lines = [f"{len(found['runs'])} runs, {len(found['left_out'])} without a recording"]
    lines.append(
        f"{'policy':<10}{'path':<12}{'backup':>10}{'of time':>9}{'foregone ≤':>13}{'RTT peaks':>11}{'avoided':>9}  (estimated)"
    )
    for row in found["overall"]:
        for name, path in row["paths"].items():
            share = "–" if path["backup_share"] is None else f"{100 * path['backup_share']:.1f} %"
            lines.append(
                f"{row['policy']:<10}{name:<12}{path['backup_s']:>8.1f} s{share:>9}{path['estimated_foregone_bytes'] / 1e6:>10.2f} MB"
                f"{path['rtt_peak_s']:>9.1f} s{path['estimated_avoided_rtt_peak_s']:>7.1f} s"
            )
        lines.append(
            f"{row['policy']:<10}{row['backup']} orders, {row['extended']} extended, {row['declined']} declined"
        )
    return "\n".join([*lines, UNKNOWN])


def _history(args: argparse.Namespace) -> int:
    from tandem.app.config import ConfigError, load
    from tandem.app.runs.steering import FILE, load_history
    from tandem.mptcp.recovery import HistoryError

    try:
        file = args.file if args.file is not None else load(args.config).folder / FILE
        rows = load_history(file).rows()
    except (ConfigError, OSError, HistoryError) as error:
        return _wrong(error)
    if args.json:
        print(json.dumps({"file": str(file), "classes": rows}, indent=1))
        return 0
    print(f"{'event':<30}{'recovers in':>12}{'keeps':>8}{'seen':>6}   whole transfer keeps: left alone, left out")
    for row in rows:
        sides = ", ".join(
            f"{'–' if row[name] is None else f'{100 * row[name]:.0f} %'} ({row[f'seen_{name}']})"
            for name in ("alone", "left_out")
        )
        print(f"{row['class']:<30}{row['recovery_s']:>10.1f} s{100 * row['kept']:>6.0f} %{row['seen']:>6}   {sides}")
    if not rows:
        print("nothing was learned yet: the paper's figures hold")
    return 0


def _wrong(error: object) -> int:
    print(f"tandem: {error}", file=sys.stderr)
    return 2
