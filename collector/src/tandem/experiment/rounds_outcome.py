"""What experiments of rounds tell alike: the sequence, sums over everything measured, quantiles. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, bytes_by_path
from tandem.experiment.rounds import Done
from tandem.experiment.rounds_asked import RoundsAsked

SEQUENCE = (
    Parameter("mode", "str", "oneway or reqresp, as asked"),
    Parameter("seed", "int", "of the sequence", "1"),
    Parameter("sequence", "list", "each round as it was drawn: order, gap_s and, where drawn, bytes"),
    Parameter("bytes", "int", "payload of all transfers", "B"),
    Parameter("duration_s", "float", "of all transfers, one after the other", "s"),
    BYTES_BY_PATH,
)
"""The keys of the result that ``start`` and ``over_all`` make."""


def start(asked: RoundsAsked) -> dict[str, Any]:
    """The result before anything was measured."""
    return {
        "mode": asked.mode,
        "seed": asked.seed,
        "sequence": [r.told() for r in asked.rounds],
        "bytes": 0,
        "duration_s": 0.0,
        "bytes_by_path": {},
    }


def over_all(told: dict[str, Any], done: Done) -> None:
    """Add a round to the sums in ``told``."""
    sums = [(path, row["received"], row["sent"]) for path, row in told["bytes_by_path"].items()]
    for measured in done.measured:
        lasted = [0.0]
        for leg in measured.legs:
            told["bytes"] += leg.payload_bytes
            lasted.append(leg.lasted_s)
            upload = leg.terms.direction == "upload"
            sums += [(t.name.path, None if upload else t.bytes, t.bytes_sent) for t in leg.series.totals.values()]
        told["duration_s"] += max(lasted)
    told["bytes_by_path"] = bytes_by_path(sums)


def quantile(values: Sequence[float], share: float) -> float | None:
    """By linear interpolation between the two nearest; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)
