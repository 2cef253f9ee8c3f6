"""The delay experiment: rounds of transfers of one size each, and what they come to: delays at both ends, benefits, the share of the most
loaded path, by size.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.measured_connection import report
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.rounds import ROUNDS, SEQUENCE, Done, Measured, Mode, quantile, read_rounds, run_rounds
from tandem.schema.aggregation import delay_benefit, ideal_delay, most_loaded_share
from tandem.schema.manifest import Failure

TIMED_AT: dict[Mode, str] = {"oneway": "agent", "reqresp": "server"}
"""Where the paper times: at the sender of the payload, to the acknowledgement of its last bit (§3.1.3)."""

UNTIMED = Failure(reason="the server told no time from request to last acknowledgement", retry=False)

RESULTS = (
    *SEQUENCE,
    Parameter("timed_at", "str", "whose clock benefit means: agent or server"),
    Parameter("rounds", "list", "each round: size, transfers with both ends' times, benefits at both ends"),
    Parameter("summary", "list", "by primary and the paper's classes of size: quantiles of the benefit"),
)

_CLASSES = (1, 2, 5, 10)
"""The paper's classes of size in a decade: from 1, 2 and 5 times a power of ten (figure 8)."""


def row(done: Done, mode: Mode) -> dict[str, Any]:
    """One round for the result. What a failed step makes impossible is None."""
    alone = [m for m in done.measured if m.step.kind == "tcp"]
    wanted = sum(step.kind == "tcp" for step in done.round.order)
    delays: dict[str, dict[str, float | None]] = {"agent": {}, "server": {}}
    for measured in alone:
        connection = measured.connections[0]
        delays["agent"][connection.wanted.path.name] = connection.agent_s
        delays["server"][connection.wanted.path.name] = connection.server_s
    return {
        "number": done.round.number,
        "begun_monotonic_ns": done.begun_monotonic_ns,
        "bytes": done.round.bytes,
        "order": [m.step.name for m in done.measured],
        "transfers": [_transfer(m) for m in done.measured],
        "benefits": [_benefit(m, delays, wanted, mode) for m in done.measured if m.step.kind == "mptcp"],
    }


def _transfer(measured: Measured) -> dict[str, Any]:
    connection = measured.connections[0]
    agent_resolution_s, server_resolution_s = connection.resolution_s
    return {
        "name": measured.step.name,
        "number": measured.number,
        "begun_monotonic_ns": measured.begun_monotonic_ns,
        **report(connection),
        "agent_s": connection.agent_s,
        "agent_resolution_s": agent_resolution_s,
        "server_s": connection.server_s,
        "server_resolution_s": server_resolution_s,
        "server_end": None if connection.sender is None else connection.sender.get("end"),
        "most_loaded_share": most_loaded_share(connection.by_path),
    }


def _benefit(measured: Measured, delays: dict[str, dict[str, float | None]], wanted: int, mode: Mode) -> dict[str, Any]:
    connection = measured.connections[0]
    agent = _at_one_end(delays["agent"], wanted, connection.agent_s)
    server = _at_one_end(delays["server"], wanted, connection.server_s)
    chosen = agent if TIMED_AT[mode] == "agent" else server
    return {
        "primary": measured.step.path,
        "delay_s": chosen["delay_s"],
        "benefit": chosen["benefit"],
        "benefit_raw": chosen["benefit_raw"],
        "agent": agent,
        "server": server,
        "most_loaded_share": most_loaded_share(connection.by_path),
        "token": connection.token,
        "fallback": connection.series.fallback,
    }


def _at_one_end(alone: dict[str, float | None], wanted: int, x: float | None) -> dict[str, float | None]:
    """Delay and benefit by one end's clock; None where that end has not all of the times, or one that is no time."""
    known = [d for d in alone.values() if d is not None and d > 0]
    if len(known) < wanted or x is None or x <= 0:
        return {"delay_s": x, "benefit": None, "benefit_raw": None}
    found = delay_benefit(known, x)
    return {"delay_s": x, "benefit": found.clipped, "benefit_raw": found.raw}


def found(done: Done, told: dict[str, Any], mode: Mode) -> list[dict[str, Any]]:
    """What the ``aggregation`` records of a round (as ``row`` tells it) hold, one for each primary path; delays by the clock that the
    benefit means."""
    connections = [m.connections[0] for m in done.measured if m.step.kind == "tcp"]
    alone = [connection.agent_s if TIMED_AT[mode] == "agent" else connection.server_s for connection in connections]
    known = [d for d in alone if d is not None and d > 0]
    whole = len(known) == sum(step.kind == "tcp" for step in done.round.order)
    names = ("benefit", "benefit_raw", "most_loaded_share", "fallback")
    return [
        {
            "path": benefit["primary"],
            "bytes": told["bytes"],
            "delay_ms": None if benefit["delay_s"] is None else benefit["delay_s"] * 1000,
            "fastest_ms": min(known) * 1000 if whole else None,
            "ideal_ms": ideal_delay(known) * 1000 if whole else None,
            **{name: benefit[name] for name in names},
        }
        for benefit in told["benefits"]
    ]


def size_class(count: int) -> tuple[int, int]:
    """From which number of bytes to below which one ``count`` counts (figure 8): 100 to 200, 200 to 500, 500 to 1000, …"""
    decade = 10 ** int(math.log10(count) + 1e-12)
    for least, most in pairwise(_CLASSES):
        if count < most * decade:
            return least * decade, most * decade
    return 10 * decade, 20 * decade


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Quantiles of the benefit by primary and class of size, over the rounds that have one; empty without any."""
    found: dict[tuple[str, tuple[int, int]], list[dict[str, Any]]] = {}
    for each in rows:
        for benefit in each["benefits"]:
            if benefit["benefit"] is not None:
                found.setdefault((benefit["primary"], size_class(each["bytes"])), []).append(benefit)
    told = []
    for (primary, (least, below)), group in sorted(found.items()):
        values = [b["benefit"] for b in group]
        shares = [b["most_loaded_share"] for b in group if b["most_loaded_share"] is not None]
        told.append(
            {
                "primary": primary,
                "from_bytes": least,
                "below_bytes": below,
                "rounds": len(group),
                "positive_share": sum(v > 0 for v in values) / len(values),
                **{f"benefit_p{p}": quantile(values, p / 100) for p in (10, 25, 50, 75, 90)},
                "most_loaded_share": quantile(shares, 0.5),
            }
        )
    return told


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
    results: tuple[Parameter, ...] = RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        sizes = parameters["min_bytes"], parameters["max_bytes"]
        if sizes[0] > sizes[1]:
            raise ParameterError("parameter 'min_bytes': above 'max_bytes'")
        patience_s = parameters["transfer_timeout_s"]
        asked = read_rounds(parameters, together=False, step_s=patience_s, sample_hz=None, sizes=sizes)
        return run_rounds(
            asked,
            lambda done: row(done, asked.mode),
            lambda done, told: found(done, told, asked.mode),
            summary,
            output,
            stop,
            seconds=None,
            patience_s=patience_s,
            beside={"timed_at": TIMED_AT[asked.mode]},
            nothing=UNTIMED,
        )


EXPERIMENT = Delay()
