"""The run of an experiment of rounds: each measured, told as the experiment tells it, summed up at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tandem.experiment.base import Outcome, Output, Stop, record
from tandem.experiment.environment import environment
from tandem.experiment.rounds import Done, Rounds
from tandem.experiment.rounds_asked import RoundsAsked
from tandem.experiment.rounds_outcome import over_all, start
from tandem.schema.manifest import Failure

Rows = list[dict[str, Any]]


def run_rounds(
    asked: RoundsAsked,
    row: Callable[[Done], dict[str, Any]],
    found: Callable[[Done, dict[str, Any]], Rows],
    summary: Callable[[Rows], Rows],
    output: Output,
    stop: Stop,
    *,
    seconds: float | None,
    patience_s: float,
    beside: Mapping[str, Any] | None = None,
    nothing: Failure | None = None,
) -> Outcome:
    """Measure the rounds ``asked``. ``row`` tells one, ``found`` the fields of its ``aggregation`` records from that (each with its
    ``path``), ``summary`` what all come to; ``beside``: further keys of the result; ``seconds``, ``patience_s``: see ``Rounds``;
    ``nothing``: the failure when nothing failed and there is no summary all the same."""
    rounds = Rounds(
        asked.terms,
        asked.rounds,
        seconds=seconds,
        patience_s=patience_s,
        deadline_s=asked.deadline_s,
        ask_whoami=asked.whoami,
    )
    told = start(asked)
    rows: Rows = []
    for done in rounds.each(output, stop):
        rows.append(row(done))
        for fields in found(done, rows[-1]):
            tags = {"path": fields.pop("path"), "mode": asked.mode}
            begun_ns = done.begun_monotonic_ns
            record(output, "aggregation", {"round": done.round.number, **fields}, monotonic_ns=begun_ns, **tags)
        over_all(told, done)
    summed = summary(rows)
    result = {**told, **(beside or {}), "rounds": rows, "summary": summed}
    return Outcome(
        json.loads(json.dumps(result)),
        rounds.failure or (None if summed else rounds.first_failed or nothing),
        environment(asked.terms.asked) | asked.terms.options.told(),
        {"failed_phases": rounds.failed, "first_failed": rounds.first_failed},
    )
