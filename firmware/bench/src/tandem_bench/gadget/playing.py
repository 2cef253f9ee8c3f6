"""``tandem-bench gadget run``: a scenario played to modems on USB. Apart from the command line, whose other verbs need no rig."""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from tandem_bench.demo.stopping import Stopped, StopSignals
from tandem_bench.gadget.controllers import controllers
from tandem_bench.gadget.description import GadgetError
from tandem_bench.gadget.rig import GadgetRig
from tandem_bench.link.build import LinkMissingError, find_binary
from tandem_bench.link.emulator import LinkError
from tandem_bench.rig.programs import ProgramError
from tandem_bench.rig.rights import Owner
from tandem_bench.scenario import Played, ScenarioError, load, play
from tandem_bench.topology.requirements import MachineError, require


class WrongWishError(ValueError):
    """What was asked for makes no sense; the message is one line."""


def play_on_usb(args: argparse.Namespace) -> bool:
    """Until the scenario is over (True) or Ctrl-C (False). WrongWishError, or GadgetError when this machine cannot."""
    signals = StopSignals()
    try:
        played = play(load(args.scenario, duration_s=args.duration, seed=args.seed))
        find_binary()
        require()
        free = [one.name for one in controllers() if one.taken_by is None]
        chosen = _chosen(played, args.operators, max(1, len(free)))
        folder = (args.out or Path(tempfile.mkdtemp(prefix="tandem-gadget-"))).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        rig = GadgetRig(chosen, folder, Owner.of_caller(), free, family=args.family, alike=args.alike)
        signals.install()
        return _inside(rig, folder)
    except ScenarioError as error:
        raise WrongWishError(str(error)) from None
    except (LinkMissingError, MachineError, ProgramError, LinkError) as error:
        raise GadgetError(str(error)) from None


def _chosen(played: Played, wanted: str | None, most: int) -> Played:
    """The scenario with the operators that are ``wanted`` (names with commas between), or the first ``most``."""
    names = wanted.split(",") if wanted else list(played.operators)[:most]
    for name in names:
        if name not in played.operators:
            raise WrongWishError(f"no operator {name!r}; there are: {', '.join(played.operators)}")
    return replace(played, operators={name: played.operators[name] for name in names})


def _inside(rig: GadgetRig, folder: Path) -> bool:
    whole = True
    with rig:
        try:
            rig.start_radio()
            _explain(rig)
            while (left := rig.epoch_monotonic_ns / 1e9 + rig.played.duration_s - time.monotonic()) > 0:
                if why := rig.failed():
                    raise ProgramError(why)
                time.sleep(min(left, 0.5))
        except Stopped:
            whole = False
        rig.stop_radio()
        rig.write_truth(folder / "truth.jsonl")
    print(f"truth: {folder / 'truth.jsonl'}")
    return whole


def _explain(rig: GadgetRig) -> None:
    for path in rig.paths.values():
        print(f"  path {path.name}: operator {path.operator} on {path.controller}, gives {path.bearer.address} by DHCP")
        print(f"    faults and plug: {rig.control_socket(path.name)}")
    print(f"  server {rig.server_address}", flush=True)
