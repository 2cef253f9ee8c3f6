"""Plays a log's seconds to a detector and judges it."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from tandem.mobility.detectors import Detectors
from tandem.mobility.gnettrack import Second
from tandem.mobility.score import Judged, Movement, Score, rounds, score
from tandem.mobility.settings import Settings
from tandem.schema.record import Record


def period_s(logs: Sequence[Sequence[Second]]) -> float:
    """The usual time between two polls of a modem, in whole seconds; 1 when there is one poll only."""
    gaps = [later.at_s - sooner.at_s for log in logs for sooner, later in itertools.pairwise(log)]
    return float(max(1, round(statistics.median(gaps)))) if gaps else 1.0


def play(logs: Sequence[Sequence[Second]], detectors: Detectors) -> tuple[list[Judged], list[Record]]:
    """(the seconds whose speed is known, mobility events). Each log is one modem; speed is the truth, never an input."""
    judged, events = [], []
    for at_s, speed, polls in rounds(logs):
        told = [event for path, second in polls for event in detectors.feed(second.record(path, at_s))]
        events += [event for event in told if event.tags["kind"].startswith("mobility_")]
        if speed is not None:
            judged.append(Judged(at_s, speed, detectors.mobile))
    return judged, events


def movements(events: Sequence[Record]) -> list[Movement]:
    """Those that ended."""
    out, begin_ns = [], 0
    for event in events:
        if event.tags["kind"] == "mobility_start":
            begin_ns = event.monotonic_ns
        else:
            kind = event.fields.get("speed_class")
            out.append(
                Movement(begin_ns // 10**9, event.monotonic_ns // 10**9, str(kind) if kind is not None else None)
            )
    return out


def scored(logs: Sequence[Sequence[Second]], detector: str, hold_s: float) -> Score:
    """``detector`` on these logs, each a modem of one probe; ``hold_s`` is the published rule's ``stop_after_s``."""
    settings = Settings(detector=detector, stop_after_s=hold_s, period_s=period_s(logs))
    detectors = Detectors(settings)
    judged, events = play(logs, detectors)
    # The log is over: let the last movement end, to have its class. The seconds are judged already.
    last_s = max((log[-1].at_s - log[0].at_s for log in logs), default=0)
    events += detectors.tick(round((last_s + hold_s + 3600) * 1e9))
    return score(judged, movements(events))
