"""The delay experiment: rounds of transfers of one size each, and what they come to."""

from __future__ import annotations

from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.delay import outcome
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.rounds import ROUNDS, read_rounds, run_rounds

PARAMETERS = (
    *ROUNDS,
    Parameter("min_bytes", "int", "least size, log-uniform from here", "B", default=1000, minimum=1, maximum=10**9),
    Parameter("max_bytes", "int", "to here; the same as min_bytes: one size", "B", default=10**7, minimum=1, maximum=10**9),
    Parameter("transfer_timeout_s", "float", "for one transfer", "s", default=120.0, minimum=0.5, maximum=3000),
)  # fmt: skip


class Delay:
    """See ``tandem.experiment.base.Experiment``."""

    name = "delay"
    version = 1
    quiet = True
    parameters: tuple[Parameter, ...] = PARAMETERS
    phases = (
        ("tcp", "TCP over the path named"),
        ("mptcp", "Multipath TCP over all paths, the one named is the primary"),
    )
    results: tuple[Parameter, ...] = outcome.RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        sizes = parameters["min_bytes"], parameters["max_bytes"]
        if sizes[0] > sizes[1]:
            raise ParameterError("parameter 'min_bytes': above 'max_bytes'")
        patience_s = parameters["transfer_timeout_s"]
        asked = read_rounds(parameters, together=False, step_s=patience_s, sample_hz=None, sizes=sizes)
        return run_rounds(
            asked,
            lambda done: outcome.row(done, asked.mode),
            lambda done, told: outcome.found(done, told, asked.mode),
            outcome.summary,
            output,
            stop,
            seconds=None,
            patience_s=patience_s,
            beside={"timed_at": outcome.TIMED_AT[asked.mode]},
            nothing=outcome.UNTIMED,
        )


EXPERIMENT = Delay()
