"""``tandem-bench demo``: rehearse the whole kit."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from tandem_bench import ExitCode, UsageError
from tandem_bench.cli import playing
from tandem_bench.replayed import compare, said
from tandem_bench.run.folder import DemoFolder
from tandem_bench.run.outcome import rule, table, verdict
from tandem_bench.run.programs import Owner
from tandem_bench.run.rehearsal import Demo, Replaying, ended_early, plan, rehearse
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import ScenarioError
from tandem_bench.scenario.played import Drive
from tandem_bench.scenario.recorded.exported import has_records

DEFAULT_DURATION_S = 180.0
PROMISED = "commute"
"""The scenario for whose scores a rehearsal answers; drives of the user's own may score as they will."""


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "demo",
        help="rehearse the whole kit: a commute with two operators, measured, stored and shown",
        description="Plays a commute (or two recorded drives) to the real collector, through the real kernel's Multipath TCP, to the "
        "real server and a real InfluxDB, everything in namespaces of its own. Takes as long as the commute and about 20 s more. With "
        "--from-run the downloads of the drive are made again at their times, and DIR/replay/ says how far the replay is from the drive.",
        epilog="Exit status: 0 everything arrived; 1 something is missing or a score is below its floor; 2 the command line or a file is "
        "wrong; 3 this machine lacks something (root, Multipath TCP, a program, room on the disk); 130 stopped by Ctrl-C.",
    )
    parser.add_argument(
        "--duration",
        type=float,
        metavar="S",
        default=DEFAULT_DURATION_S,
        help="seconds, 30 to 7200 (default %(default).0f; a replay is cut to it)",
    )
    playing.add_source(parser, "commute (default), still, walk, drive, or a TOML file of yours")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the scenario and of the order of runs (default: the scenario's own)"
    )
    parser.add_argument(
        "--wifi",
        action="store_true",
        help="a third path beside the operators: a home's Wi-Fi (30 and 10 Mbit/s, 24 ms)",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where results go (default demo-runs/TIME); an earlier rehearsal there is set aside",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help="keep database, keys, token, spool and timelines in DIR, so that the report can be made again",
    )
    parser.set_defaults(func=_demo)


def _demo(args: argparse.Namespace) -> int:
    if not 30 <= args.duration <= 7200:
        raise UsageError(f"--duration {args.duration:g}: give 30 to 7200 seconds")
    played = playing.played(args, args.duration)
    first = played.phases[0]
    still_s = first["until_s"] if first["activity"] == "still" else 0.0
    planned = plan(still_s, played.duration_s, len(played.operators) + args.wifi)
    folder = DemoFolder(args.out or Path("demo-runs") / time.strftime("%Y%m%d-%H%M%S"))
    drive = played.drive

    def make(owner: Owner, influxd: Path) -> Demo:
        rig = Rig(played, folder.bench, owner, wifi=args.wifi)
        return Demo(rig, folder, influxd, planned) if drive is None else Replaying(rig, folder, influxd, planned, drive)

    begins = time.strftime("%H:%M:%S", time.localtime(time.time() + 8))
    says = f"rehearsing {played.name} (seed {played.seed}), {played.duration_s:.0f} s from about {begins}; results in {folder.root}"
    arrived, rehearsal = rehearse(folder, make, says)
    summary = folder.read_summary()
    print(table(summary))
    scored = played.name == PROMISED
    wrong = verdict(summary, scored=scored, paired=drive is None, right=rule(played) if scored else 0.0)
    if drive is not None:
        wrong += _beside(drive, folder)
    if arrived != ExitCode.OK and not wrong:
        wrong.append("not everything arrived; the report says what is missing")
    if not args.keep and not wrong:
        folder.discard_working_files()
    for line in wrong:
        print(f"  not well: {line}", flush=True)
    print(f"  report: {folder.report}\n", flush=True)
    if rehearsal.by_user:
        return ended_early(rehearsal)
    return ExitCode.NEGATIVE if wrong else ExitCode.OK


def _beside(drive: Drive, folder: DemoFolder) -> list[str]:
    """The replay held against its drive; why it could not be."""
    if not has_records(drive.folder, drive.probe):
        print(f"note: {drive.folder} has no records (no export): the replay is not compared with it", file=sys.stderr)
        return []
    try:
        print(said(compare(drive.folder, folder.root), folder.root / "replay"))
    except ScenarioError as error:
        return [f"the replay was not compared with its drive: {error}"]
    except OSError as error:
        return [f"the replay was not compared with its drive: {error.filename}: {error.strerror}"]
    return []
