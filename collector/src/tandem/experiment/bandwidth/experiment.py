"""The bandwidth experiment: rounds of timed transfers, and what they come to: goodputs, disjointivity, benefits, shares."""

from __future__ import annotations

from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.measured_connection import MeasuredConnection, report
from tandem.experiment.parameters import Parameter
from tandem.experiment.rounds import ROUNDS, SEQUENCE, Done, Measured, quantile, read_rounds, run_rounds
from tandem.schema.aggregation import bandwidth_benefit, disjointivity, most_loaded_share

RESULTS = (
    *SEQUENCE,
    Parameter("rounds", "list", "each round: phases with their goodputs, TDI, bandwidth ratio, benefits"),
    Parameter("summary", "list", "by primary: medians of TDI, benefit, ratio and goodput over the whole rounds"),
)


def row(done: Done) -> dict[str, Any]:
    """One round for the result. What a failed step makes impossible is None."""
    alone = {m.step.path or "": _goodput(m) for m in done.measured if m.step.kind == "tcp"}
    wanted = sum(step.kind == "tcp" for step in done.round.order)
    separate = [g for g in alone.values() if g is not None]
    whole = separate if len(separate) == wanted else None
    together = next((_goodput(m) for m in done.measured if m.step.kind == "tcp-all"), None)
    tdi = None if whole is None or together is None else disjointivity(whole, together)
    return {
        "number": done.round.number,
        "begun_monotonic_ns": done.begun_monotonic_ns,
        "order": [m.step.name for m in done.measured],
        "phases": [_phase(m) for m in done.measured],
        "c_i_bit_per_s": alone,
        "c_max_bit_per_s": None if whole is None else max(whole),
        "c_total_bit_per_s": together,
        "tdi": tdi,
        "tdi_clipped": None if tdi is None else min(1.0, tdi),
        "bandwidth_ratio": max(whole) / min(whole) if whole is not None and min(whole) > 0 else None,
        "benefits": [_benefit(m, whole, together) for m in done.measured if m.step.kind == "mptcp"],
    }


def _goodput(measured: Measured) -> float | None:
    """Of all the step's connections together, bit/s; None when one of them failed."""
    moved = [connection.moved for connection in measured.connections]
    whole = [m for m in moved if m is not None]
    return sum(count * 8 / lasted for count, lasted in whole) if len(whole) == len(moved) else None


def _phase(measured: Measured) -> dict[str, Any]:
    return {
        "name": measured.step.name,
        "number": measured.number,
        "begun_monotonic_ns": measured.begun_monotonic_ns,
        "goodput_bit_per_s": _goodput(measured),
        "failure": measured.failure,
        "connections": [_connection(connection) for connection in measured.connections],
    }


def _connection(connection: MeasuredConnection) -> dict[str, Any]:
    received, lasted = connection.up.received, connection.up.receiver_s
    return {
        **report(connection),
        "server_bytes": received,
        "server_duration_s": lasted,
        "server_goodput_bit_per_s": None if received is None or not lasted else received * 8 / lasted,
        "sender": connection.sender,
    }


def _benefit(measured: Measured, separate: list[float] | None, together: float | None) -> dict[str, Any]:
    connection, x = measured.connections[0], _goodput(measured)
    benefit = None if separate is None or together is None or x is None else bandwidth_benefit(separate, together, x)
    return {
        "primary": measured.step.path,
        "goodput_bit_per_s": x,
        "benefit": None if benefit is None else benefit.clipped,
        "benefit_raw": None if benefit is None else benefit.raw,
        "shares": _shares(connection),
        "most_loaded_share": most_loaded_share(connection.by_path),
        "token": connection.token,
        "fallback": connection.series.fallback,
    }


def _shares(connection: MeasuredConnection) -> dict[str, float]:
    whole = sum(connection.by_path.values())
    return {path: count / whole if whole else 0.0 for path, count in connection.by_path.items()}


def found(_done: Done, told: dict[str, Any]) -> list[dict[str, Any]]:
    """What the ``aggregation`` records of a round (as ``row`` tells it) hold, one for each primary path."""
    alone = told["c_i_bit_per_s"].values()
    of_the_round = {
        "c_max_bit_per_s": told["c_max_bit_per_s"],
        "c_sum_bit_per_s": None if told["c_max_bit_per_s"] is None else sum(g for g in alone if g is not None),
        "c_total_bit_per_s": told["c_total_bit_per_s"],
        "tdi": told["tdi"],
        "bandwidth_ratio": told["bandwidth_ratio"],
    }
    names = ("goodput_bit_per_s", "benefit", "benefit_raw", "most_loaded_share", "fallback")
    rows = [{"path": b["primary"], **of_the_round, **{name: b[name] for name in names}} for b in told["benefits"]]
    if not rows and any(value is not None for value in of_the_round.values()):
        return [{"path": None, **of_the_round}]
    return rows


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Medians by primary path over the rounds that gave a goodput of it and of every TCP step; empty without any."""
    found: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for each in rows:
        for benefit in each["benefits"]:
            if benefit["goodput_bit_per_s"] is not None and each["tdi"] is not None:
                found.setdefault(benefit["primary"], []).append((each, benefit))
    return [
        {
            "primary": primary,
            "rounds": len(pairs),
            "tdi": _median([r["tdi"] for r, _ in pairs]),
            "bandwidth_ratio": _median([r["bandwidth_ratio"] for r, _ in pairs]),
            "goodput_bit_per_s": _median([b["goodput_bit_per_s"] for _, b in pairs]),
            "benefit": _median([b["benefit"] for _, b in pairs]),
            "benefit_raw": _median([b["benefit_raw"] for _, b in pairs]),
            "most_loaded_share": _median([b["most_loaded_share"] for _, b in pairs]),
        }
        for primary, pairs in found.items()
    ]


def _median(values: list[float | None]) -> float | None:
    return quantile([v for v in values if v is not None], 0.5)


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
    results: tuple[Parameter, ...] = RESULTS

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        patience_s = parameters["seconds"] + _ENDING_S
        asked = read_rounds(parameters, together=True, step_s=patience_s, sample_hz=parameters["sample_hz"])
        return run_rounds(
            asked,
            row,
            found,
            summary,
            output,
            stop,
            seconds=parameters["seconds"],
            patience_s=patience_s,
        )


EXPERIMENT = Bandwidth()
