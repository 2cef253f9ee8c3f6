"""``tandem-bench run``: the bench alone, for whatever you want to put on it."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tandem_bench import ExitCode, UsageError
from tandem_bench.cli import playing
from tandem_bench.requirements import require
from tandem_bench.run.programs import Owner
from tandem_bench.run.rig import Rig
from tandem_bench.run.session import play_alone
from tandem_bench.topology import private
from tandem_bench.topology.spec import SERVER_NAME


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "run",
        help="the bench alone: operators, links and modems playing a scenario",
        description="Builds probe, operators, internet and server, plays a scenario to links and modems, and holds it until the scenario "
        "is over or Ctrl-C. Prints how to enter each namespace. Needs root. No collector and no server are started.",
        epilog="Exit status: 0 played, 2 wrong scenario, 3 this machine lacks something, 130 Ctrl-C.",
    )
    playing.add_source(parser, "commute (default), still, walk, drive, or a file")
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
    parser.add_argument(
        "--server-addresses", type=int, choices=(1, 2), default=1, help="how many addresses the server has (default 1)"
    )
    parser.set_defaults(func=_run)


def _run(args: argparse.Namespace) -> int:
    owner = Owner.of_caller()
    played = playing.played(args, args.duration)
    made = args.out is None or not args.out.exists()
    folder = (args.out or Path(tempfile.mkdtemp(prefix="tandem-bench-"))).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror}; name another folder with --out") from None
    if made:
        owner.give(folder)  # whose user the modems run as, and write there
    require()
    private.enter()
    rig = Rig(played, folder, owner, wifi=args.wifi, server_addresses=args.server_addresses)
    whole = play_alone(rig, folder / "truth.jsonl", lambda: _explain(rig))
    return ExitCode.OK if whole else ExitCode.INTERRUPTED


def _explain(rig: Rig) -> None:
    print(f"playing for {rig.played.duration_s:.0f} s; files in {rig.folder}")
    for path in rig.probe_paths():
        print(f"  path {path.name}: {path.interface}" + (f", modem on {path.modem_port}" if path.modem_port else ""))
    print(f"  server {rig.server_address} ({SERVER_NAME})")
    print("  a shell on the probe, from another terminal as root:")
    print("    nsenter --target $(pgrep -n -f namespace-probe) --net --mount -- bash", flush=True)
