"""What a verdict is asked: the parameters, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, extended, read_common
from tandem.experiment.parameters import Parameter

PARAMETERS = (
    *COMMON,
    Parameter("bytes", "int", "payload of each connection", "B", default=500_000, minimum=10_000, maximum=1e9),
    Parameter("asks", "int", "whoami by TCP over each path, of which the fastest counts", "asks", default=5, minimum=1, maximum=50),
    Parameter("connect_timeout_s", "float", "for each connection", "s", default=15.0, minimum=0.1, maximum=120),
    Parameter("join_wait_s", "float", "for subflows to join", "s", default=5.0, minimum=0.1, maximum=9),
    Parameter("stall_s", "float", "without a byte for so long a connection has failed", "s", default=8.0, minimum=0.5, maximum=120),
    Parameter("seed", "int", "of the random order of paths", "seed", default=1, minimum=0, maximum=2**53),
    Parameter("deadline_s", "float", "the whole run", "s", default=300.0, minimum=1, maximum=7200),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A verdict on each of ``paths``, checked."""

    bytes: int
    asks: int
    connect_timeout_s: float
    join_wait_s: float
    stall_s: float
    seed: int
    deadline_s: float


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when they contradict each other."""
    return extended(Request, read_common(parameters), parameters)
