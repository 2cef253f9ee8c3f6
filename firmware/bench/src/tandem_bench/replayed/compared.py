"""How far a replay is from its drive, as a table. Pure."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from tandem_bench.replayed.heard import KINDS, Heard

NEAR_S = 2.0
"""An event of the replay is the drive's when it lies so near: both probes poll once a second, and each sees the same change at its next
poll."""


@dataclass(frozen=True, slots=True)
class Row:
    """One quantity. ``distance`` in ``unit``: of levels between polls of the same second, of events how many of the drive's the replay has
    within ``NEAR_S``, of goodputs the replay's over the drive's. ``n``: seconds, the drive's events, the replay's downloads. None: not
    known."""

    what: str
    operator: str
    drive: float | None
    replay: float | None
    distance: float | None
    unit: str
    n: int


def compared(drive: Heard, replay: Heard) -> list[Row]:
    """All rows, of the time that both have."""
    operators = sorted({*drive.rsrp_dbm, *replay.rsrp_dbm})
    table = [row for operator in operators for row in _levels(drive, replay, operator)]
    for kind in KINDS:
        whose = [""] if kind.startswith("mobility") else operators
        table += [_events(drive, replay, kind, operator) for operator in whose]
    ways = dict.fromkeys(one.way for one in (*drive.downloads, *replay.downloads))
    return table + [_goodput(drive, replay, way) for way in ways]


def _levels(drive: Heard, replay: Heard, operator: str) -> list[Row]:
    one, other = drive.rsrp_dbm.get(operator, {}), replay.rsrp_dbm.get(operator, {})
    both = sorted(one.keys() & other.keys())
    apart = sorted(abs(one[second] - other[second]) for second in both)
    middles = (median(one.values()) if one else None, median(other.values()) if other else None)
    return [
        Row("RSRP, half of the polls are nearer", operator, *middles, _quantile(apart, 0.5), "dB", len(both)),
        Row("RSRP, nine in ten are nearer", operator, *middles, _quantile(apart, 0.9), "dB", len(both)),
    ]


def _quantile(ordered: Sequence[float], share: float) -> float | None:
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)] if ordered else None


def _events(drive: Heard, replay: Heard, kind: str, operator: str) -> Row:
    mine, theirs = sorted(drive.events.get((kind, operator), [])), sorted(replay.events.get((kind, operator), []))
    found = 0
    left = list(theirs)
    for at in mine:
        near = min(left, key=lambda one: abs(one - at), default=None)
        if near is not None and abs(near - at) <= NEAR_S:
            left.remove(near)
            found += 1
    return Row(kind, operator, float(len(mine)), float(len(theirs)), float(found), "found again", len(mine))


def _goodput(drive: Heard, replay: Heard, way: str) -> Row:
    one, other = (
        [d.goodput_bit_per_s for d in heard.downloads if d.way == way and d.goodput_bit_per_s is not None]
        for heard in (drive, replay)
    )
    before, after = (median(rates) / 1e6 if rates else None for rates in (one, other))
    ratio = after / before if before and after is not None else None
    return Row(f"goodput of {way}, Mbit/s", "", before, after, ratio, "replay / drive", len(other))


def as_json(table: Sequence[Row]) -> list[dict[str, Any]]:
    """A row an object."""
    return [asdict(row) for row in table]


def as_csv(table: Sequence[Row]) -> str:
    """With a head; an absent value is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(Row.__dataclass_fields__), lineterminator="\n")
    writer.writeheader()
    writer.writerows(as_json(table))
    return out.getvalue()


def as_text(table: Sequence[Row]) -> str:
    """For people."""
    heads = ("", "operator", "drive", "replay", "distance", "", "n")
    lines = [
        heads,
        *((r.what, r.operator, _text(r.drive), _text(r.replay), _text(r.distance), r.unit, str(r.n)) for r in table),
    ]
    widths = [max(len(line[n]) for line in lines) for n in range(len(heads))]
    left = (0, 1, 5)
    return "\n".join(
        "  ".join(
            word.ljust(w) if n in left else word.rjust(w) for n, (word, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _text(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value == round(value) else f"{value:.2f}"
