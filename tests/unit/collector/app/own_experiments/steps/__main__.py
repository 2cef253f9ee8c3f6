"""An experiment outside the package, for tests: two phases, a connection's sample, a result of its own; told to by ``how``."""

import sys
import time
from typing import Any

from tandem.experiment.base import STOPPED, Outcome, Output, Stop, main, phase, record
from tandem.experiment.parameters import COMMON, Parameter
from tandem.experiment.results import BYTES_BY_PATH


class Steps:
    name = "steps"
    version = 3
    parameters = (
        *COMMON,
        Parameter("how", "str", "what to do", default="well", choices=("well", "fail", "hang")),
        Parameter("sizes", "list", "bytes of each step", keys=("label",)),
        Parameter("seed", "int", "of the order", "1", default=1, minimum=0, maximum=2**31 - 1),
    )
    phases = (("step", "one size"),)
    results = (
        Parameter("steps", "list", "what each took"),
        Parameter("bytes", "int", "payload", "B"),
        Parameter("connect_ms", "object", "by path", "ms"),
        BYTES_BY_PATH,
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        for number in (1, 2):
            phase(output, f"step {number}", number, 2)
        output.line("phase", name="wrong", number=0, of=2, monotonic_ns=time.monotonic_ns())
        connection = {"kind": "tcp", "path": "b", "bytes": 5, "subflows": 1}
        output.line("sample", monotonic_ns=time.monotonic_ns(), connection=connection, subflows=[])
        record(output, "verdict", {"verdict_code": 0}, path="b", role="primary", verdict="native")
        record(
            output, "verdict", {"verdict_code": 0}, path="wifi", role="primary", verdict="native"
        )  # no path of the run
        if parameters["how"] == "hang" and stop.wait(60):
            return Outcome({"steps": []}, STOPPED, {})
        failure = {"reason": "reset", "retry": True} if parameters["how"] == "fail" else None
        result = {
            "steps": [1, 2],
            "bytes": 5,
            "colour": "red",
            "connect_ms": {"b": 5},
            "bytes_by_path": {"b": {"received": 5, "sent": 0}},
        }
        return Outcome(result, failure, {"kernel": "any"})


sys.exit(main(Steps()))
