"""What experiments of rounds are asked beside the common part, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

from tandem.experiment.asked import COMMON, read_common
from tandem.experiment.legs import Terms
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.sequence import Round, Spacing, rounds, steps
from tandem.experiment.socket_options import SOCKET_OPTIONS, read_socket_options

Mode = Literal["oneway", "reqresp"]

ROUNDS = (
    *COMMON,
    Parameter("mode", "str", "oneway: upload; reqresp: download", default="reqresp", choices=("oneway", "reqresp")),
    Parameter("primary", "str", "MPTCP's primary path; by default each path in turn, a step of its own"),
    Parameter("repetitions", "int", "rounds, each with every step once", "rounds", default=1, minimum=1, maximum=5000),
    Parameter("seed", "int", "of the random order and, where drawn, spacing and sizes", "1", default=1, minimum=0, maximum=2**53),
    Parameter("spacing", "str", "of rounds: always the same, or exponential", default="periodic", choices=("periodic", "poisson")),
    Parameter("interval_s", "float", "between starts of rounds; the paper: 300", "s", default=0.0, minimum=0, maximum=86400),
    Parameter("whoami", "bool", "ask for each path's public address before each round", default=True),
    *SOCKET_OPTIONS,
    Parameter("connect_timeout_s", "float", "for a measured connection", "s", default=8.0, minimum=0.1, maximum=120),
    Parameter("stall_s", "float", "so long without progress a transfer has failed", "s", default=10.0, minimum=0.5, maximum=600),
    Parameter("deadline_s", "float", "the whole run; by default what all rounds may take", "s", minimum=1, maximum=2_592_000),
)  # fmt: skip
"""An experiment's own parameters come after these."""


@dataclass(frozen=True, slots=True)
class RoundsAsked:
    """``deadline_s`` as asked, or what all rounds may take at most."""

    terms: Terms
    mode: Mode
    rounds: tuple[Round, ...]
    seed: int
    whoami: bool
    deadline_s: float


def read_rounds(
    p: dict[str, Any], *, together: bool, step_s: float, sample_hz: float | None, sizes: tuple[int, int] | None = None
) -> RoundsAsked:
    """From parameters that are checked one by one; ParameterError when they contradict each other. ``together``: with a step of TCP
    over all paths at once. ``step_s``: what a step may take."""
    asked = read_common(p, p["primary"])
    names = [path.name for path in asked.paths]
    if len(names) < 2:
        raise ParameterError("parameter 'paths': two or more are compared; mend: name another path")
    primaries = names if p["primary"] is None else [p["primary"]]
    ways = steps(names, primaries, together=together)
    spacing = cast("Spacing", p["spacing"])
    made = rounds(ways, p["repetitions"], p["seed"], spacing, p["interval_s"], sizes)
    terms = Terms(
        asked=asked,
        direction="upload" if p["mode"] == "oneway" else "download",
        connect_timeout_s=p["connect_timeout_s"],
        stall_s=p["stall_s"],
        sample_hz=sample_hz,
        read_pause_s=0.004 if sample_hz is not None else 0.0,  # only a long, sampled transfer is read unhurriedly
        options=read_socket_options(p),
    )
    # a control exchange before and after, over each path at worst; and the connect
    around_s = 2 * asked.control_timeout_s * len(names) + p["connect_timeout_s"]
    longest_s = sum(r.gap_s for r in made) + len(made) * len(ways) * (step_s + around_s)
    return RoundsAsked(terms, cast("Mode", p["mode"]), made, p["seed"], p["whoami"], p["deadline_s"] or longest_s)
