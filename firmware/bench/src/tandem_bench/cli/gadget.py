"""``tandem-bench gadget``: the bench's modems as real USB devices."""

from __future__ import annotations

import argparse
import signal
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tandem_bench import BenchError, ExitCode, UsageError
from tandem_bench.gadget.description import CONTROLLERS, PROFILES, gadget_of
from tandem_bench.gadget.device import Device, choose, clear, controllers
from tandem_bench.gadget.process import run
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.process import Setup, made_up_imei
from tandem_bench.modem.timeline import read
from tandem_bench.requirements import require
from tandem_bench.run.programs import Owner

if TYPE_CHECKING:
    from tandem_bench.gadget.rig import GadgetRig

DESCRIPTION = """Present the bench's modem as a USB device: two AT ports and a network function. Needs root, Linux's gadget stack and a
USB device controller: a Raspberry Pi Zero 2 W or 4 (dtoverlay=dwc2,dr_mode=peripheral) towards a real probe, or in a virtual
machine dummy_hcd towards itself."""
WISHES = """By the control socket, one JSON object a line: the faults of "tandem-bench modem" (disappear is a power cycle), and
{"usb": "unplug"|"plug"}."""
PATHS = tuple("abcdefgh")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser("gadget", help="the modem as a real USB device", description=DESCRIPTION)
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listing = verbs.add_parser("list", help="the USB device controllers, and what would fit on them")
    listing.set_defaults(func=_list)
    clearing = verbs.add_parser("clear", help="take away gadgets that a killed bench left behind")
    clearing.set_defaults(func=_clear)
    modem = verbs.add_parser("modem", help="one modem on one controller", description=DESCRIPTION, epilog=WISHES)
    modem.add_argument(
        "--family", default="ublox", choices=sorted(PROFILES), help="dialogue and USB ids (default ublox)"
    )
    modem.add_argument("--timeline", required=True, type=Path, metavar="FILE", help="radio conditions of its operator")
    modem.add_argument("--operator-name", metavar="NAME", help="what +COPS says (default: the timeline's operator)")
    modem.add_argument(
        "--epoch-ns", type=int, metavar="NS", help="CLOCK_MONOTONIC at the timeline's start (default: now)"
    )
    modem.add_argument("--name", default="tandem-a", help="of the gadget in configfs (default %(default)s)")
    modem.add_argument("--udc", metavar="NAME", help="the controller (default: the first that is free)")
    modem.add_argument("--seed", type=int, default=1, metavar="N", help="of delays and identities (default 1)")
    modem.add_argument("--control", type=Path, metavar="SOCK", help="Unix socket on which it takes faults and the plug")
    modem.add_argument("--json-log", type=Path, metavar="FILE", help="append a line of truth for each fault played")
    modem.add_argument(
        "--netns-pid", type=int, metavar="PID", help="give our network device to this process's namespace"
    )
    modem.set_defaults(func=_modem)
    rig = verbs.add_parser("run", help="operators, links and one modem a controller", epilog=WISHES)
    rig.add_argument(
        "--scenario", default="commute", metavar="NAME|FILE", help="commute (default), still, walk, drive, or a file"
    )
    rig.add_argument("--duration", type=float, default=180.0, metavar="S", help="seconds (default %(default).0f)")
    rig.add_argument("--seed", type=int, metavar="N", help="default: the scenario's own")
    rig.add_argument("--family", default="ublox", choices=sorted(PROFILES), help="dialogue and USB ids (default ublox)")
    rig.add_argument("--operators", metavar="A,B", help="which of the scenario's (default: as many as controllers)")
    rig.add_argument(
        "--alike", action="store_true", help="all modems give out the same addresses, as sticks of a kind do"
    )
    rig.add_argument(
        "--out", type=Path, metavar="DIR", help="timelines, logs, sockets (default: a new temporary folder)"
    )
    rig.set_defaults(func=_run)


def _list(_args: argparse.Namespace) -> int:
    found = controllers()
    for one in found:
        has = CONTROLLERS.get(one.driver)
        state = "free" if one.taken_by is None else f"taken by {one.taken_by}"
        print(f"{one.name}  {one.driver}, {f'{has} endpoints' if has else 'endpoints not known'}, {state}")
    print(f"one modem needs {gadget_of('tandem-a', PROFILES['ublox'], 1).endpoints} endpoints")
    return ExitCode.OK if found else ExitCode.NEGATIVE


def _clear(_args: argparse.Namespace) -> int:
    try:
        for name in clear([f"tandem-{path}" for path in PATHS]):
            print(f"took away {name}")
    except OSError as error:
        raise BenchError(f"{error.filename}: {error.strerror}; hint: end the bench that uses it, be root") from None
    return ExitCode.OK


def _modem(args: argparse.Namespace) -> int:
    timeline = read(args.timeline)
    operator = args.operator_name or timeline.operator
    setup = Setup(
        family=FAMILIES[args.family],
        timeline=timeline,
        operator=operator,
        epoch_ns=time.monotonic_ns() if args.epoch_ns is None else args.epoch_ns,
        link=Path(),
        imei=made_up_imei(operator, args.seed),
        seed=args.seed,
        control=args.control,
        json_log=args.json_log,
    )
    described = gadget_of(args.name, PROFILES[args.family], args.seed)
    device = Device(described, choose(args.udc, controllers()))
    ended_by = run(setup, device, args.netns_pid, lambda interface: print(f"ready {interface}", flush=True))
    return ExitCode.INTERRUPTED if ended_by == signal.SIGINT else ExitCode.OK


def _run(args: argparse.Namespace) -> int:
    # Scenarios are computed with numpy, which a Pi that plays one modem does not have.
    from tandem_bench.gadget.rig import GadgetRig
    from tandem_bench.run.session import play_alone
    from tandem_bench.scenario import load, play

    owner = Owner.of_caller()
    played = play(load(args.scenario, duration_s=args.duration, seed=args.seed))
    require()
    free = [one.name for one in controllers() if one.taken_by is None]
    names = args.operators.split(",") if args.operators else list(played.operators)[: max(1, len(free))]
    for name in names:
        if name not in played.operators:
            raise UsageError(f"no operator {name!r}; there are: {', '.join(played.operators)}")
    chosen = replace(played, operators={name: played.operators[name] for name in names})
    folder = (args.out or Path(tempfile.mkdtemp(prefix="tandem-gadget-"))).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    rig = GadgetRig(chosen, folder, owner, free, family=args.family, alike=args.alike)
    whole = play_alone(rig, folder / "truth.jsonl", lambda: _explain(rig))
    return ExitCode.OK if whole else ExitCode.INTERRUPTED


def _explain(rig: GadgetRig) -> None:
    for path in rig.paths.values():
        print(f"  path {path.name}: operator {path.operator} on {path.controller}, gives {path.bearer.address} by DHCP")
        print(f"    faults and plug: {rig.control_socket(path.name)}")
    print(f"  server {rig.server_address}", flush=True)
