"""The bandwidth experiment: rounds of timed transfers, and what they come to: goodputs, disjointivity, benefits, shares."""

from __future__ import annotations

from typing import Any

from tandem.experiment.base import Outcome, Output, Stop
from tandem.experiment.measured_connection import MeasuredConnection
from tandem.experiment.parameters import Parameter
from tandem.experiment.results import quantile
from tandem.experiment.rounds import ROUNDS, SEQUENCE, Done, Measured, Rows, read_rounds, run_rounds
from tandem.schema.aggregation import bandwidth_benefit, disjointivity, most_loaded_share


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
        **connection.report(),
        "server_bytes": received,
        "server_duration_s": lasted,
        "server_goodput_bit_per_s": None if received is None or not lasted else received * 8 / lasted,
        "sender": connection.sender,
    }


def _benefit(measured: Measured, separate: list[float] | None, together: float | None) -> dict[str, Any]:
    connection, x = measured.connections[0], _goodput(measured)
    benefit = None if separate is None or together is None or x is None else bandwidth_benefit(separate, together, x)
    whole = sum(connection.by_path.values())
    return {
        "primary": measured.step.path,
        "goodput_bit_per_s": x,
        "benefit": None if benefit is None else benefit.clipped,
        "benefit_raw": None if benefit is None else benefit.raw,
        "shares": {path: count / whole if whole else 0.0 for path, count in connection.by_path.items()},
        "most_loaded_share": most_loaded_share(connection.by_path),
        "token": connection.token,
        "fallback": connection.series.fallback,
    }


def aggregations(_done: Done, row: dict[str, Any]) -> Rows:
    """The fields of the ``aggregation`` records of a round, from its row: one for each primary path."""
    alone, most = row["c_i_bit_per_s"].values(), row["c_max_bit_per_s"]
    of_the_round = {
        "c_max_bit_per_s": most,
        "c_sum_bit_per_s": None if most is None else sum(g for g in alone if g is not None),
        **{name: row[name] for name in ("c_total_bit_per_s", "tdi", "bandwidth_ratio")},
    }
    names = ("goodput_bit_per_s", "benefit", "benefit_raw", "most_loaded_share", "fallback")
    rows = [{"path": b["primary"], **of_the_round, **{name: b[name] for name in names}} for b in row["benefits"]]
    if not rows and any(value is not None for value in of_the_round.values()):
        return [{"path": None, **of_the_round}]
    return rows


def summary(rows: Rows) -> Rows:
    """Medians by primary path over the rounds that gave a goodput of it and of every TCP step; empty without any."""
    found: dict[str, Rows] = {}
    for each in rows:
        for benefit in each["benefits"]:
            if benefit["goodput_bit_per_s"] is not None and each["tdi"] is not None:
                found.setdefault(benefit["primary"], []).append({**each, **benefit})
    figures = ("tdi", "bandwidth_ratio", "goodput_bit_per_s", "benefit", "benefit_raw", "most_loaded_share")
    return [
        {
            "primary": primary,
            "rounds": len(group),
            **{name: quantile([r[name] for r in group if r[name] is not None], 0.5) for name in figures},
        }
        for primary, group in found.items()
    ]


_ENDING_S = 30.0
"""What is queued when the time is over still has to arrive, and the server's answer."""


class Bandwidth:
    """TCP over each path, over all at once, and Multipath TCP, for the same time each."""

    name = "bandwidth"
    version = 1
    parameters: tuple[Parameter, ...] = (
        *ROUNDS,
        Parameter("seconds", "float", "of each transfer", "s", default=60.0, minimum=0.5, maximum=3000),
        Parameter("sample_hz", "float", "readings of the kernel's statistics", "1/s", default=10.0, minimum=1, maximum=100),
    )  # fmt: skip
    phases = (
        ("tcp", "TCP over the path named"),
        ("tcp-all", "TCP over each path, all at once"),
        ("mptcp", "Multipath TCP over all paths, the one named is the primary"),
    )
    results: tuple[Parameter, ...] = (
        *SEQUENCE,
        Parameter("rounds", "list", "each round: phases with their goodputs, TDI, bandwidth ratio, benefits"),
        Parameter("summary", "list", "by primary: medians of TDI, benefit, ratio and goodput over the whole rounds"),
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        seconds, sample_hz = parameters["seconds"], parameters["sample_hz"]
        request = read_rounds(
            parameters, together=True, step_s=seconds + _ENDING_S, sample_hz=sample_hz, seconds=seconds
        )
        return run_rounds(request, row, aggregations, summary, output, stop)


EXPERIMENT = Bandwidth()
