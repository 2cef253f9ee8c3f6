"""``tandem-bench run``: the bench alone, for whatever you want to put on it."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
import time
from pathlib import Path

from tandem_bench.cli.main import ExitCode
from tandem_bench.demo.stopping import Stopped, StopSignals
from tandem_bench.rig.binaries import LinkMissing, find_binary
from tandem_bench.rig.programs import ProgramError
from tandem_bench.rig.rig import Rig
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played, ScenarioError, load, play
from tandem_bench.topology import SERVER_NAME, EnvironmentLacks, TopologyError
from tandem_bench.topology.private import run_inside


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="the bench alone: operators, links and modems playing a scenario",
        description="Builds probe, operators, internet and server, plays a scenario to links and modems, and holds it until the scenario "
        "is over or Ctrl-C. Prints how to enter each namespace. Needs root. No collector and no server are started.",
        epilog="Exit status: 0 played, 2 wrong scenario, 3 this machine lacks something, 130 Ctrl-C.",
    )
    parser.add_argument(
        "--scenario", default="commute", metavar="NAME|FILE", help="commute (default), still, walk, drive, or a file"
    )
    parser.add_argument("--duration", type=float, default=180.0, metavar="S", help="seconds (default %(default).0f)")
    parser.add_argument("--seed", type=int, metavar="N", help="default: the scenario's own")
    parser.add_argument(
        "--wifi", action="store_true", help="a Wi-Fi path beside the operators: wlan0, 30 and 10 Mbit/s, 24 ms"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="timelines, ports, logs and truth.jsonl (default: a new temporary folder)",
    )
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    try:
        played = play(load(args.scenario, duration_s=args.duration, seed=args.seed))
        find_binary()
        outer = os.getpid()  # as the terminal outside sees it
        folder = args.out or Path(tempfile.mkdtemp(prefix="tandem-bench-"))
        folder.mkdir(parents=True, exist_ok=True)
        return run_inside(lambda: _inside(played, folder.absolute(), outer, wifi=args.wifi))
    except ScenarioError as error:
        print(f"tandem-bench run: {error}", file=sys.stderr)
        return ExitCode.USAGE
    except OSError as error:
        print(f"tandem-bench run: {error.filename}: {error.strerror}; name another folder with --out", file=sys.stderr)
        return ExitCode.USAGE
    except (EnvironmentLacks, LinkMissing) as error:
        print(f"tandem-bench run: {error}", file=sys.stderr)
        return ExitCode.ENVIRONMENT


def _inside(played: Played, folder: Path, outer: int, *, wifi: bool) -> int:
    signals = StopSignals()
    signals.install()
    status = int(ExitCode.OK)
    try:
        with Rig(played, folder, Owner.of_caller(), wifi=wifi) as rig:
            try:
                rig.start_radio()
                _explain(rig, folder, outer)
                while (left := rig.epoch_monotonic_ns / 1e9 + played.duration_s - time.monotonic()) > 0:
                    if why := rig.failed():
                        raise ProgramError(why)
                    time.sleep(min(left, 0.5))
            except Stopped:
                status = ExitCode.INTERRUPTED
            rig.stop_radio()
            rig.write_truth(folder / "truth.jsonl")
    except (ProgramError, TopologyError) as error:
        print(f"tandem-bench run: {error}", file=sys.stderr)
        return ExitCode.ENVIRONMENT
    print(f"truth: {folder / 'truth.jsonl'}")
    return status


def _explain(rig: Rig, folder: Path, outer: int) -> None:
    print(f"playing for {rig.played.duration_s:.0f} s; files in {folder}")
    for path in rig.probe_paths():
        print(f"  path {path.name}: {path.interface}" + (f", modem on {path.modem_port}" if path.modem_port else ""))
    shell = shlex.join(["nsenter", "--target", str(outer), "--mount", "--", *rig.command("probe", ["bash"])])
    print(f"  server {rig.server_address} ({SERVER_NAME}); a shell on the probe: {shell}", flush=True)
