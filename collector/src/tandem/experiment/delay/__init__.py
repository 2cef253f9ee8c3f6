"""The delay experiment: rounds of transfers of one size each, and what they come to: delays at both ends, benefits, the share of the most
loaded path, by size.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.results import quantile
from tandem.experiment.rounds import ROUNDS, SEQUENCE, Done, Measured, Rows, read_rounds, run_rounds
from tandem.schema.aggregation import delay_benefit, ideal_delay, most_loaded_share
from tandem.schema.manifest import Failure

TIMED_AT = {"oneway": "agent", "reqresp": "server"}
"""Where the paper times: at the sender of the payload, to the acknowledgement of its last bit (§3.1.3)."""

UNTIMED = Failure(reason="the server reported no time from request to last acknowledgement", retry=False)

_CLASSES = (1, 2, 5, 10)
"""The paper's classes of size in a decade: from 1, 2 and 5 times a power of ten (figure 8)."""


def row(done: Done, timed_at: str) -> dict[str, Any]:
    """One round for the result; ``timed_at``: whose clock the benefit means. What a failed step makes impossible is None."""
    alone = [m.connections[0] for m in done.measured if m.step.kind == "tcp"]
    delays = {"agent": [c.agent_s for c in alone], "server": [c.server_s for c in alone]}
    wanted = sum(step.kind == "tcp" for step in done.round.order)
    return {
        "number": done.round.number,
        "begun_monotonic_ns": done.begun_monotonic_ns,
        "bytes": done.round.bytes,
        "order": [m.step.name for m in done.measured],
        "transfers": [_transfer(m) for m in done.measured],
        "benefits": [_benefit(m, delays, wanted, timed_at) for m in done.measured if m.step.kind == "mptcp"],
    }


def _transfer(measured: Measured) -> dict[str, Any]:
    connection = measured.connections[0]
    agent_resolution_s, server_resolution_s = connection.resolution_s
    return {
        "name": measured.step.name,
        "number": measured.number,
        "begun_monotonic_ns": measured.begun_monotonic_ns,
        **connection.report(),
        "agent_s": connection.agent_s,
        "agent_resolution_s": agent_resolution_s,
        "server_s": connection.server_s,
        "server_resolution_s": server_resolution_s,
        "server_end": None if connection.sender is None else connection.sender.get("end"),
        "most_loaded_share": most_loaded_share(connection.by_path),
    }


def _benefit(measured: Measured, delays: dict[str, list[float | None]], wanted: int, timed_at: str) -> dict[str, Any]:
    connection = measured.connections[0]
    ends = {
        "agent": _at_one_end(delays["agent"], wanted, connection.agent_s),
        "server": _at_one_end(delays["server"], wanted, connection.server_s),
    }
    return {
        "primary": measured.step.path,
        **ends[timed_at],
        **ends,
        "most_loaded_share": most_loaded_share(connection.by_path),
        "token": connection.token,
        "fallback": connection.series.fallback,
    }


def _at_one_end(alone: list[float | None], wanted: int, x: float | None) -> dict[str, float | None]:
    """Delay and benefit by one end's clock; None where that end has not all of the times, or one that is no time."""
    known = [d for d in alone if d is not None and d > 0]
    if len(known) < wanted or x is None or x <= 0:
        return {"delay_s": x, "benefit": None, "benefit_raw": None}
    found = delay_benefit(known, x)
    return {"delay_s": x, "benefit": found.clipped, "benefit_raw": found.raw}


def aggregations(done: Done, row: dict[str, Any], timed_at: str) -> Rows:
    """The fields of the ``aggregation`` records of a round, from its row: one for each primary path; delays by the clock that the benefit
    means."""
    alone = [transfer[f"{timed_at}_s"] for transfer in row["transfers"] if transfer["kind"] == "tcp"]
    known = [d for d in alone if d is not None and d > 0]
    whole = len(known) == sum(step.kind == "tcp" for step in done.round.order)
    names = ("benefit", "benefit_raw", "most_loaded_share", "fallback")
    return [
        {
            "path": benefit["primary"],
            "bytes": row["bytes"],
            "delay_ms": None if benefit["delay_s"] is None else benefit["delay_s"] * 1000,
            "fastest_ms": min(known) * 1000 if whole else None,
            "ideal_ms": ideal_delay(known) * 1000 if whole else None,
            **{name: benefit[name] for name in names},
        }
        for benefit in row["benefits"]
    ]


def size_class(count: int) -> tuple[int, int]:
    """From which number of bytes to below which one ``count`` counts (figure 8): 100 to 200, 200 to 500, 500 to 1000, …"""
    decade = 10 ** int(math.log10(count) + 1e-12)
    for least, most in pairwise(_CLASSES):
        if count < most * decade:
            return least * decade, most * decade
    return 10 * decade, 20 * decade


def summary(rows: Rows) -> Rows:
    """Quantiles of the benefit by primary and class of size, over the rounds that have one; empty without any."""
    found: dict[tuple[str, tuple[int, int]], Rows] = {}
    for each in rows:
        for benefit in each["benefits"]:
            if benefit["benefit"] is not None:
                found.setdefault((benefit["primary"], size_class(each["bytes"])), []).append(benefit)
    summed = []
    for (primary, (least, below)), group in sorted(found.items()):
        values = [b["benefit"] for b in group]
        shares = [b["most_loaded_share"] for b in group if b["most_loaded_share"] is not None]
        summed.append(
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
    return summed


class Delay:
    """The same number of bytes by TCP over each path and by Multipath TCP."""

    name = "delay"
    version = 1
    quiet = True
    parameters: tuple[Parameter, ...] = (
        *ROUNDS,
        Parameter("min_bytes", "int", "least size, log-uniform from here", "B", default=1000, minimum=1, maximum=10**9),
        Parameter("max_bytes", "int", "to here; the same as min_bytes: one size", "B", default=10**7, minimum=1, maximum=10**9),
        Parameter("transfer_timeout_s", "float", "for one transfer", "s", default=120.0, minimum=0.5, maximum=3000),
    )  # fmt: skip
    phases = (
        ("tcp", "TCP over the path named"),
        ("mptcp", "Multipath TCP over all paths, the one named is the primary"),
    )
    results: tuple[Parameter, ...] = (
        *SEQUENCE,
        Parameter("timed_at", "str", "whose clock benefit means: agent or server"),
        Parameter("rounds", "list", "each round: size, transfers with both ends' times, benefits at both ends"),
        Parameter("summary", "list", "by primary and the paper's classes of size: quantiles of the benefit"),
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure the rounds. ParameterError when the least size is above the greatest."""
        sizes = parameters["min_bytes"], parameters["max_bytes"]
        if sizes[0] > sizes[1]:
            raise ParameterError("parameter 'min_bytes': above 'max_bytes'")
        timed_at = TIMED_AT[parameters["mode"]]
        return run_rounds(
            read_rounds(parameters, together=False, step_s=parameters["transfer_timeout_s"], sizes=sizes),
            lambda done: row(done, timed_at),
            lambda done, of_round: aggregations(done, of_round, timed_at),
            summary,
            output,
            stop,
            beside={"timed_at": timed_at},
            nothing=UNTIMED,
        )


EXPERIMENT = Delay()
