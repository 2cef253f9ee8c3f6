"""Round trips over every path at the same instants: how long it took, what had no answer, and what the best path would have had."""

from __future__ import annotations

from tandem_dashboards.expressions import Expression, chosen, count, greatest, last, least, mean, percentile, total
from tandem_dashboards.influxql import ROLLED, Select, select, windowed
from tandem_dashboards.kinds import stat, state_timeline, table, time_series
from tandem_dashboards.overrides import Override, shown
from tandem_dashboards.panel import Panel, series

WHERE = (chosen("probe"), chosen("operator"), chosen("path"))
BY = ("path", "operator")
NAMED = "$tag_path ($tag_operator)"
OFF = " Empty: round trips are off ([round_trip] enabled), as they are unless somebody switched them on."
QUANTILES = (50, 99, 99.9)
RECENT = "3h"
"""So many records at most that a board which is refreshed every few seconds can ask for them."""


def times() -> Panel:
    """Round-trip time of each path over time."""
    return time_series(
        "Round trips of each path",
        "Answers to the UDP questions that go out over all paths at the same instants; the mean of each stretch, runs' own load "
        "included. A gap: no answer, or nothing was asked; the lanes beside say which." + OFF,
        series(windowed(mean("rtt_ms"), of="round_trip", where=WHERE, by=BY), NAMED),
        grades="areas",
        logarithmic=True,
        cadence="2s",
    )


def outcomes() -> Panel:
    """What became of the questions."""
    return state_timeline(
        "Answers of each path",
        "What became of each question, of each stretch the last: red on all lanes at once is an outage of all networks. Paused, nothing "
        "left and not served: nothing was asked, which says nothing of the path. Nothing drawn: not asked, or told within the minute."
        + OFF,
        series(windowed(last("outcome"), of="round_trip", where=WHERE, by=BY), NAMED),
        cadence="2s",
    )


def _quantiles(of: str = "rtt_ms") -> tuple[Expression, ...]:
    return tuple(percentile(of, share).named(f"p{share:g}") for share in QUANTILES)


def quantiles() -> Panel:
    """Quantiles of each path's answers."""
    return table(
        "Quantiles of round trips",
        "Of each path's answers in the time shown, of its part in the last three hours (of longer times: the report). What had no "
        "answer is in none of them, but in the lanes above and on the board Operators." + OFF,
        select(count("rtt_ms").named("answers"), *_quantiles(), of="round_trip", where=WHERE, by=BY, recent=RECENT),
        show=shown("path", "operator", answers="Answers")
        | {f"p{share:g}": Override(f"p{share:g}") for share in QUANTILES},
        size=(12, 5),
    )


def best() -> Panel:
    """Quantiles of the best of the paths."""
    each = select(
        least("rtt_ms").named("best_ms"),
        of="round_trip",
        where=WHERE,
        by=["probe"],
        every="1s",
        fill="none",
        recent=RECENT,
    )
    return stat(
        "The best of the chosen paths",
        "Quantiles of the shortest answer of each second, as if every packet went over all of them, of the same time as the table "
        "beside; what none answered is in none of them. Choose two paths above to compare." + OFF,
        select(*_quantiles("best_ms"), of=each),
        override=Override(unit="ms"),
        size=(12, 5),
    )


def _by_operator(figure: Expression) -> Select:
    return windowed(figure, of="round_trip", policy=ROLLED, where=WHERE, by=["operator"], fill="none")


def unanswered() -> Panel:
    """Share of the questions without an answer."""
    query = _by_operator(total("unanswered_sum").part_of(total("unanswered_count"), "share"))
    return time_series(
        "Round trips without an answer",
        "Share of the instants at which a path had no answer within ten seconds or was not up, for each operator over all chosen probes."
        + OFF,
        series(query, "$tag_operator"),
        style="points",
        override=Override(low=0),
        cadence="1m",
        points=180,
    )


def over_time() -> Panel:
    """Mean and greatest round-trip time of each operator."""
    columns = (
        (total("rtt_ms_sum") / total("rtt_ms_count")).in_unit("ms").named("mean"),
        greatest("rtt_ms_max").named("greatest"),
    )
    return time_series(
        "Round trips over time",
        "Mean and greatest round-trip time of the answers of each stretch, for each operator over all chosen probes, runs' own load "
        "included." + OFF,
        *(series(_by_operator(column), f"$tag_operator, {column.name}") for column in columns),
        style="points",
        logarithmic=True,
        cadence="1m",
        points=180,
    )
