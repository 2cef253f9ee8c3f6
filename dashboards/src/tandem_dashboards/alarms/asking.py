"""Queries of alarms. What a probe told last stands for it while it is silent, and only for as long as it is registered."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tandem_dashboards.alarms.alarm import Asked
from tandem_dashboards.alarms.tolerances import KNOWN_DAYS, SEEN_S
from tandem_dashboards.expressions import Expression, last, total
from tandem_dashboards.influxql import select

_KNOWN_S = KNOWN_DAYS * 86_400


def known(
    field: str,
    of: str,
    by: Sequence[str] = ("probe",),
    *,
    points: int = 1,
    function: Callable[[str], Expression] = last,
) -> Asked:
    """``function`` over the newest ``points`` records of each of ``by``, whenever they came: silence takes nothing away."""
    if points == 1:
        return Asked(select(last(field), of=of, by=by), _KNOWN_S)
    newest = select(field, of=of, by=by, newest_first=True, limit=points)
    return Asked(select(function(field), of=newest, by=by, newest_first=True), _KNOWN_S)


def known_sum(field: str, of: str, points: int, by: Sequence[str] = ("probe",)) -> Asked:
    """Their sum."""
    return known(field, of, by, points=points, function=total)


def now(field: str, of: str, by: Sequence[str] = ("probe",)) -> Asked:
    """The newest value of what the server itself writes every minute, if it still does."""
    return Asked(select(last(field), of=of, by=by), SEEN_S)


def registered() -> Asked:
    """A series for every registered probe, heard of or not: 1 or 0. What is joined with it ends when a probe is taken out, and not
    before; so a probe that is silent keeps its alarm, and one that was sold does not."""
    return now("seen", "expected")
