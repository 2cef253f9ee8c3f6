"""The bandwidth experiment: rounds of timed transfers, and what they come to."""

from __future__ import annotations

from typing import Any

from tandem.experiment.bandwidth import outcome
from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.parameters import Parameter
from tandem.experiment.rounds import ROUNDS, read_rounds, run_rounds

PARAMETERS = (
    *ROUNDS,
    Parameter("seconds", "float", "of each transfer", "s", default=60.0, minimum=0.5, maximum=3000),
    Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
)
_ENDING_S = 30.0
"""What is queued when the time is over still has to arrive, and the server's answer."""


class Bandwidth:
    """See ``tandem.experiment.base.Experiment``."""

    name = "bandwidth"
    version = 1
    parameters: tuple[Parameter, ...] = PARAMETERS
    phases = (
        ("tcp", "TCP over the path named"),
        ("tcp-all", "TCP over each path, all at once"),
        ("mptcp", "Multipath TCP over all paths, the one named is the primary"),
    )
    results: tuple[Parameter, ...] = outcome.RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        patience_s = parameters["seconds"] + _ENDING_S
        asked = read_rounds(parameters, together=True, step_s=patience_s, sample_hz=parameters["sample_hz"])
        return run_rounds(
            asked,
            outcome.row,
            outcome.found,
            outcome.summary,
            output,
            stop,
            seconds=parameters["seconds"],
            patience_s=patience_s,
        )


EXPERIMENT = Bandwidth()
