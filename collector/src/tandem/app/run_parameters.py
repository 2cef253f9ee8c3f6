"""What an experiment's process is given, and how long it may take. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tandem.app.config import Config
from tandem.app.plan import OF_MPTCP, Plan, PlannedRun

SAMPLE_HZ = 10
SETUP_S = 45.0
"""For sessions, connecting and closing, beside the measuring itself."""
BYTES_DEADLINE_S = 660.0
ANY_DEADLINE_S = 6 * 3600.0
"""Of an experiment whose deadline is not known here, since it was given none and reckons its own: only one that hangs meets this."""


def parameters_of(
    config: Config, plan: Plan, run: PlannedRun, interfaces: Mapping[str, str | None], addresses: Mapping[str, str]
) -> dict[str, Any]:
    """The JSON object for its stdin. The token is named by its file."""
    wish = plan.wish
    every = {p.name: p for p in config.paths}
    # To a TCP run the others too: the control channel may take another path, so that a dead one shows in the measurement.
    names = (*run.paths, *(n for n in wish.paths if n not in run.paths))
    paths = [
        {
            "name": n,
            "operator": every[n].operator,
            "interface": interfaces[n] or f"usb{every[n].usb}",
            "address": addresses.get(n),
        }
        for n in names
    ]
    server = config.server
    common = {
        "run": run.id,
        "paths": paths,
        "server": {
            "control": server.control,
            "measurement": server.measurement,
            "ca_file": None if server.ca_file is None else str(server.ca_file),
            "token_file": str(server.token_file),
            "capture": wish.capture == "both",
        },
    }
    if run.kind == "any":
        # Bounded, so that every experiment's own range of a seed holds it; the manifest has it among the parameters.
        seed = {"seed": plan.seed % 2**31} if wish.takes_seed else {}
        return {**common, **seed, **wish.parameters}
    size = {"bytes": wish.bytes} if wish.seconds is None else {"seconds": wish.seconds}
    own = {n: value for n, value in wish.parameters.items() if run.kind == "mptcp" or n not in OF_MPTCP}
    return {**common, "kind": run.kind, "path": run.path, **size, "sample_hz": SAMPLE_HZ, **own}


def deadline_of(plan: Plan) -> float:
    """Seconds after which the process is told to end."""
    wish = plan.wish
    if wish.deadline_s is not None:
        return wish.deadline_s + SETUP_S
    if wish.kind == "any":
        return ANY_DEADLINE_S
    return BYTES_DEADLINE_S if wish.seconds is None else wish.seconds + SETUP_S
