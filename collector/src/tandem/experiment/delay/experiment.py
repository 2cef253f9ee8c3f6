"""The delay experiment: rounds of transfers of one size each, and what they come to."""

from __future__ import annotations

import json
from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.delay import outcome
from tandem.experiment.environment import environment
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.rounds import Rounds
from tandem.experiment.rounds_asked import ROUNDS, read_rounds
from tandem.experiment.rounds_outcome import over_all, start

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
        rounds = Rounds(
            asked.terms,
            asked.rounds,
            seconds=None,
            patience_s=patience_s,
            deadline_s=asked.deadline_s,
            ask_whoami=asked.whoami,
        )
        told = start(asked)
        rows: list[dict[str, Any]] = []
        for done in rounds.each(output, stop):
            rows.append(outcome.row(done, asked.mode))
            over_all(told, done)
        result = {**told, "timed_at": outcome.TIMED_AT[asked.mode], "rounds": rows, "summary": outcome.summary(rows)}
        failure = rounds.failure or (None if result["summary"] else rounds.first_failed)
        if failure is None and not result["summary"]:
            failure = outcome.UNTIMED
        return Outcome(
            json.loads(json.dumps(result)),
            failure,
            environment(asked.terms.asked) | asked.terms.buffers.told(),
            {"failed_phases": rounds.failed, "first_failed": rounds.first_failed},
        )


EXPERIMENT = Delay()
