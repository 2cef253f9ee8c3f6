"""How long a TCP connection to the server takes over each path, many times, paths in random order."""

from __future__ import annotations

import os
import random
import statistics
import time
from typing import Any

from tandem.experiment.base import STOPPED, Outcome, Output, Stop, StoppedError, phase
from tandem.experiment.parameters import COMMON, CommonParameters, Parameter, ProbePath, read_common
from tandem.experiment.results import BYTES_BY_PATH
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure


class Handshake:
    """As ``tandem.experiment.base.Experiment`` has it."""

    name = "handshake"
    version = 1
    parameters: tuple[Parameter, ...] = (
        *COMMON,
        Parameter("times", "int", "connections over each path", "1", default=10, minimum=1, maximum=1000),
        Parameter("pause_s", "float", "between two connections", "s", default=0.2, minimum=0, maximum=60),
        Parameter("timeout_s", "float", "for each connection", "s", default=5.0, minimum=0.1, maximum=60),
        Parameter("seed", "int", "of the order", "1", default=1, minimum=0, maximum=2**31 - 1),
    )
    phases: tuple[tuple[str, str], ...] = (("round", "one connection over each path, in random order"),)
    results: tuple[Parameter, ...] = (
        Parameter("order", "list", "the paths in the order in which they were asked"),
        Parameter("connect_ms", "object", "by path: each connection's time, null for one that failed", "ms"),
        Parameter("median_ms", "object", "by path: the median of those that succeeded, null without one", "ms"),
        BYTES_BY_PATH,
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure."""
        common = read_common(parameters)
        chance = random.Random(parameters["seed"])
        times: dict[str, list[float | None]] = {path.name: [] for path in common.paths}
        order: list[str] = []
        last = "no connection was made"
        failure: Failure | None = None
        try:
            for number in range(parameters["times"]):
                phase(output, "round", number + 1, parameters["times"])
                for path in chance.sample(common.paths, len(common.paths)):
                    order.append(path.name)
                    with stop.interruptible():
                        taken, reason = _connect(common, path, parameters["timeout_s"])
                    times[path.name].append(taken)
                    last = reason or last
                    if stop.wait(parameters["pause_s"]):
                        raise StoppedError
        except StoppedError:
            failure = STOPPED
        good = {name: [t for t in row if t is not None] for name, row in times.items()}
        if failure is None and not any(good.values()):
            failure = Failure(reason=f"connect: {last}", retry=True)
        result = {
            "order": order,
            "connect_ms": times,
            "median_ms": {name: statistics.median(row) if row else None for name, row in good.items()},
            # No payload was sent; what the handshakes cost is in the interface's counters, which the collector keeps.
            "bytes_by_path": {name: {"received": 0, "sent": 0} for name in times},
        }
        return Outcome(result, failure, {"kernel": os.uname().release, "ended_monotonic_ns": time.monotonic_ns()})


def _connect(common: CommonParameters, path: ProbePath, timeout_s: float) -> tuple[float | None, str | None]:
    """Milliseconds, or why not."""
    server = common.measurement
    try:
        address = sockets.resolve(server.host, server.port, path.interface)
        made = sockets.connect("tcp", address, path.source, timeout_s)
    except OSError as error:
        return None, error.strerror or str(error)
    made.socket.close()
    return made.connect_ms, None


EXPERIMENT = Handshake()
