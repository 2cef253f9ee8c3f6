"""What a latency run is asked: the parameters, and the same as checked values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem.experiment.common_parameters import COMMON, CommonParameters, extended, read_common
from tandem.experiment.latency.datagram import LONGEST, SHORTEST
from tandem.experiment.parameters import Parameter

PARAMETERS = (
    *COMMON,
    Parameter("seconds", "float", "of each phase", "s", default=10.0, minimum=0.5, maximum=3600),
    Parameter("interval_ms", "float", "between questions", "ms", default=20.0, minimum=1, maximum=10_000),
    Parameter("size", "int", "of a question and its answer, UDP payload", "B", default=100, minimum=SHORTEST, maximum=LONGEST),
    Parameter("load", "str", "phases beside a download on the same path", default="both", choices=("none", "only", "both")),
    Parameter("settle_s", "float", "of download before a phase under load begins", "s", default=2.0, minimum=0, maximum=60),
    Parameter("linger_s", "float", "for answers after the last question", "s", default=2.0, minimum=0.1, maximum=60),
    Parameter("connect_timeout_s", "float", "for the download", "s", default=10.0, minimum=0.1, maximum=120),
    Parameter("seed", "int", "of the random order of phases", "seed", default=1, minimum=0, maximum=2**53),
    Parameter("deadline_s", "float", "the whole run", "s", default=600.0, minimum=1, maximum=86_400),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A latency run, checked."""

    seconds: float
    interval_ms: float
    size: int
    load: str
    settle_s: float
    linger_s: float
    connect_timeout_s: float
    seed: int
    deadline_s: float

    @property
    def loads(self) -> tuple[bool, ...]:
        """The phases of each path: with a download (True), without."""
        return {"none": (False,), "only": (True,), "both": (False, True)}[self.load]


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when they contradict each other."""
    return extended(Request, read_common(parameters), parameters)
