"""``tandem-bench campaign``: an example campaign for all the papers' figures, or a campaign file whose arms are compared."""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import sys
import time
from pathlib import Path

from tandem_bench import ExitCode, UsageError
from tandem_bench.run.compared import Compared, Comparison, prepare
from tandem_bench.run.example import SCENARIO, SITES, Example
from tandem_bench.run.folder import DemoFolder
from tandem_bench.run.programs import Owner
from tandem_bench.run.rehearsal import ended_early, rehearse
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import load, play

MOST_BLOCKS = 1000


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "campaign",
        help="play an example campaign and draw all the papers' figures of it, or compare a campaign file's arms",
        description="Plays a short walk and drive with two operators and a Wi-Fi to the real collector, which makes small campaigns after"
        " the papers' on the way and at rest; then analyses the captures and writes the report with its figures. Everything is measured,"
        " in namespaces of its own, in four to six minutes. DIR is a campaign's folder: tandem-server report DIR draws it again."
        " With --file the campaign of that name or file is played instead, its roles by the two operators, and a third one"
        " by the Wi-Fi. A block of it is one stretch of"
        " the scenario, played again from its beginning for each of the block's runs: they are made under the same radio, from the same"
        " instant on. The next block has the scenario's next seed. The report compares the arms.",
        epilog="Exit status: 0 every figure is drawn that can be, and everything arrived; 1 something is missing; 2 the command line is "
        "wrong; 3 this machine lacks something (root, Multipath TCP, a program, room on the disk); 130 stopped by Ctrl-C.",
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="where it goes (default campaign-runs/TIME); an earlier one there is set aside",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        help="of the scenario and of every order and draw (37; with --file the scenario's)",
    )
    compared = parser.add_argument_group("comparing arms")
    compared.add_argument("--file", metavar="NAME|FILE", help="the campaign: as in steering-ab")
    compared.add_argument("--form", default="paper", metavar="NAME", help="one of its forms; default: %(default)s")
    compared.add_argument(
        "--blocks", type=_blocks, metavar="N", help="how many of its repetitions (default: the file's)"
    )
    compared.add_argument("--scenario", metavar="NAME|FILE", help="commute, still, walk, drive (default), or a file")
    compared.add_argument(
        "--stretch", type=int, metavar="S", help="seconds of the scenario for each run, 10 to 7200 (60)"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON; what is said meanwhile to stderr"
    )
    parser.set_defaults(func=_campaign)


def _blocks(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_BLOCKS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 to {MOST_BLOCKS}")
    return int(text)


def _campaign(args: argparse.Namespace) -> int:
    comparison: Comparison | None = None
    if args.file is None:
        if args.form != "paper" or args.blocks or args.scenario or args.stretch:
            raise UsageError("--form, --blocks, --scenario and --stretch go with --file")
        played = play(load(SCENARIO, seed=args.seed))
    else:
        scenario, stretch_s = args.scenario or "drive", args.stretch or 60
        comparison, played = prepare(args.file, args.form, args.blocks, scenario, stretch_s, args.seed)
    folder = DemoFolder(args.out or Path("campaign-runs") / time.strftime("%Y%m%d-%H%M%S"))

    def make(owner: Owner, influxd: Path) -> Example:
        wifi = comparison is None or comparison.paths > len(played.operators)
        rig = Rig(played, folder.bench, owner, wifi=wifi, server_addresses=2 if comparison is None else 1, sites=SITES)
        return Example(rig, folder, influxd) if comparison is None else Compared(rig, folder, influxd, comparison)

    what = "the example campaign" if comparison is None else f"{comparison.name}, {comparison.blocks} blocks,"
    says = f"playing {what} (seed {played.seed}, {played.duration_s / 60:.0f} min) into {folder.root}"
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        status, example = rehearse(folder, make, says)
    shutil.rmtree(folder.bench)  # timelines of the scenario, which its seed gives again
    outcome = example.outcome()
    if args.json:
        print(json.dumps({**outcome, "folder": str(folder.root)}, indent=1))
    else:
        print(example.text(outcome))
        print(f"\n  report: {folder.report}\n", flush=True)
    if example.stopped is not None:
        return ended_early(example)
    return ExitCode.OK if status == ExitCode.OK and example.good(outcome) else ExitCode.NEGATIVE
