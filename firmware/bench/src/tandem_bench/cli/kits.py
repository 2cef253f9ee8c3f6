"""``tandem-bench kits``: several probes at one server."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from pathlib import Path

from tandem_bench import ExitCode, UsageError
from tandem_bench.run.kits import Kits, KitsFolder, kits_of, together
from tandem_bench.run.programs import Owner
from tandem_bench.run.rehearsal import ended_early, rehearse
from tandem_bench.run.rig import Rig
from tandem_bench.scenario import load, play

MOST_KITS = 8


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "kits",
        help="several probes at one server: its export reported beside their own folders",
        description="Plays a commute to each of several probes, each with two operators, modems and a collector of its own, at the same"
        " time; pushes a campaign to all of them from one server; then exports the campaign from the server, reports and publishes the"
        " export, reports the probes' own folders (DIR/kit-1 …) too, and says which figures and tables have other data.",
        epilog="Exit status: 0 all of them have the same data and everything arrived; 1 something is missing or differs; 2 the command line"
        " is wrong; 3 this machine lacks something; 130 stopped by Ctrl-C.",
    )
    parser.add_argument("--kits", type=int, default=2, metavar="N", help=f"2 to {MOST_KITS} (default %(default)s)")
    parser.add_argument(
        "--duration", type=float, default=180.0, metavar="S", help="seconds, 30 to 7200 (default %(default).0f)"
    )
    parser.add_argument("--scenario", metavar="NAME|FILE", default="commute", help="default %(default)s")
    parser.add_argument(
        "--seed", type=int, metavar="N", help="of the first kit's; the next has the next (the scenario's)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="where it goes (default kits-runs/TIME)")
    parser.add_argument(
        "--json", action="store_true", help="print the outcome as JSON; what is said meanwhile to stderr"
    )
    parser.set_defaults(func=_kits)


def _kits(args: argparse.Namespace) -> int:
    if not 2 <= args.kits <= MOST_KITS or not 30 <= args.duration <= 7200:
        raise UsageError(f"give 2 to {MOST_KITS} kits and 30 to 7200 seconds")
    first = load(args.scenario, args.duration, args.seed)
    plays = [play(load(args.scenario, args.duration, first.seed + n)) for n in range(args.kits)]
    folder = KitsFolder(args.out or Path("kits-runs") / time.strftime("%Y%m%d-%H%M%S"))
    own = kits_of(plays, folder.root)

    def make(owner: Owner, influxd: Path) -> Kits:
        near = {path: kit.namespace for kit in own for path in kit.paths.values()}
        return Kits(Rig(together(plays), folder.bench, owner, near=near), folder, influxd, own)

    says = f"playing {len(own)} kits ({first.duration_s / 60:.1f} min) into {folder.root}"
    with contextlib.redirect_stdout(sys.stderr) if args.json else contextlib.nullcontext():
        _, playing = rehearse(folder, make, says)
    outcome = playing.outcome
    if args.json:
        print(json.dumps({**outcome, "folder": str(folder.root)}, indent=1))
    else:
        for what in ("figures", "tables"):
            told = outcome[what]
            other = f"; other data: {', '.join(told['different'])}" if told["different"] else ""
            print(f"  {what}: {told['same']} of {told['files']} have the same data, exported and the kits' own{other}")
        print(
            f"  report: {folder.root / 'exported' / 'report.html'}, beside {own[0].folder / 'report.html'}\n",
            flush=True,
        )
    if playing.stopped is not None:
        return ended_early(playing)
    # Nothing compared is nothing shown.
    same = all(outcome[what]["files"] and not outcome[what]["different"] for what in ("figures", "tables"))
    return ExitCode.OK if same and not outcome["exported"]["missing"] else ExitCode.NEGATIVE
