"""What radio events did to connections, for the page: medians by kind of event, and what could not be joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from tandem_server.analysis.events import HELD_S, LARGE_DB
from tandem_server.analysis.radio_packets import Joined, Rule, records

FIGURES = (
    ("t_r_s", "t_R, s", "{:.1f}"),
    ("rtt_before_ms", "RTT before, ms", "{:.0f}"),
    ("rtt_peak_normalised", "peak RTT over the handshake’s", "{:.1f}"),
    ("goodput_loss", "goodput lost, subflow", "{:.0%}"),
    ("connection_loss", "goodput lost, connection", "{:.0%}"),
    ("share_change", "change of its share", "{:+.0%}"),
)
"""Column, head, and how its median is written."""
Row = Mapping[str, Any]
KINDS: tuple[tuple[str, Callable[[Row], bool]], ...] = (
    (f"drop up to {LARGE_DB:g} dB", lambda r: r["kind"] == "signal_drop" and (r["size_db"] or 0) <= LARGE_DB),
    (f"drop over {LARGE_DB:g} dB", lambda r: r["kind"] == "signal_drop" and (r["size_db"] or 0) > LARGE_DB),
    ("handover", lambda r: r["kind"] == "handover"),
    ("any, both modems’", lambda r: r["both_modems"]),
)


@dataclass(frozen=True, slots=True)
class Told:
    """``rows``: kind, how many, then a text for each of ``heads``. ``why``: how often t_R is lacking, by reason."""

    heads: Sequence[str]
    rows: Sequence[tuple[str, int, Sequence[str]]]
    why: Mapping[str, int]
    rule: Rule
    account: Mapping[str, int]
    held_s: float = HELD_S


def told(joined: Joined) -> Told:
    """Medians with their numbers of values."""
    found = list(records(joined))
    rows = []
    for name, mine in KINDS:
        if own := [row for row in found if mine(row)]:
            rows.append((name, len(own), [_middle([row[key] for row in own], form) for key, _, form in FIGURES]))
    why: dict[str, int] = {}
    for row in found:
        if row["why"]:
            reason = row["why"].replace("_", " ")
            why[reason] = why.get(reason, 0) + 1
    return Told([head for _, head, _ in FIGURES], rows, why, joined.rule, joined.account)


def _middle(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return f"{form.format(median(known))} (n={len(known)})" if known else "–"
