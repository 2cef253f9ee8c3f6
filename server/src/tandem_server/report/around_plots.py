"""Median curves of RTT and goodput around events."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tandem_server.analysis.evaluate import Evaluation
from tandem_server.analysis.series import SPAN_S, Array, curve
from tandem_server.report.plot import Axis, Plot

QUANTITIES = (("rtt", "RTT at the sender", "ms", "server"), ("goodput", "Goodput of the operator", "Mbit/s", "probe"))
KINDS = (("handover", "handovers"), ("signal_drop", "signal drops of 6 dB or more"))


@dataclass(frozen=True, slots=True)
class Around:
    """One plot and how many events stand behind it."""

    plot: Plot
    events: int
    used: int


def times_of(e: Evaluation, kind: str) -> tuple[list[tuple[float, str]], bool]:
    """(time, operator) of each event, and whether the times are the true ones: on a bench they are known better than a poll
    a second can tell."""
    truth = e.campaign.truth
    if truth is not None:
        true = truth.handovers if kind == "handover" else truth.drops
        return [(x.t_s, x.operator) for x in true], True
    return [(x.t_s, x.operator or "") for x in e.events(kind)], False


def plots(e: Evaluation) -> list[Around]:
    """For each kind of event and quantity the curve of the subflow (of MPTCP runs) on the operator that had the event."""
    mptcp = {r.id for r in e.runs if r.kind == "mptcp"}
    out: list[Around] = []
    for kind, words in KINDS:
        events, _ = times_of(e, kind)
        for quantity, title, unit, end in QUANTITIES:
            # Events and series of one operator belong together; the operators' events are then pooled.
            pooled_t: list[float] = []
            series: list[tuple[Array, Array]] = []
            shift = 0.0
            for operator in sorted({o for _, o in events}):
                own = [
                    (s.t_s, s.rtt_ms if quantity == "rtt" else s.goodput_bit_per_s / 1e6)
                    for s in e.recorded.subflows
                    if s.end == end and s.operator == operator and s.run in mptcp
                ]
                pooled_t += [t + shift for t, o in events if o == operator]
                series += [(t + shift, v) for t, v in own]
                shift += e.end_s + 4 * SPAN_S  # apart on one axis, so that no operator's event sees another's series
            found = curve(pooled_t, series)
            top = float(np.nanmax(np.fmax(found.high, found.median))) if found.n else 1.0
            plot = Plot(
                f"{kind}-{quantity}",
                f"{title} around {words}",
                Axis(0.0, top * 1.1 or 1.0, unit),
                -SPAN_S,
                SPAN_S,
                150,
                1,
                "around",
            )
            plot.verticals("the event", "event", [0.0])
            band = np.isfinite(found.low) & np.isfinite(found.high)
            edges = np.flatnonzero(np.diff(np.concatenate(([0], band.astype(np.int8), [0]))))
            for a, b in zip(edges[::2], edges[1::2], strict=True):  # stretches without a gap
                plot.area("middle half of the events", "band", found.offset_s[a:b], found.low[a:b], found.high[a:b])
            plot.line("median", "median", found.offset_s, found.median)
            if found.n == 0:
                plot.empty = "No event happened during a run."
            out.append(Around(plot, len(events), found.n))
    return out
