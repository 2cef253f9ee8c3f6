"""Multipath TCP against TCP over each path alone: pairs of downloads, aggregation, verdicts, shares."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_dashboards.expressions import Condition, Expression, chosen, equal, last, mean, total, value
from tandem_dashboards.influxql import ROLLED, Select, select, windowed
from tandem_dashboards.kinds import bar_chart, state_timeline, table, time_series
from tandem_dashboards.overrides import Override, cell, shown, to_board
from tandem_dashboards.panel import Panel, Query, series

WHERE = (chosen("probe"), chosen("campaign"), chosen("operator"))
_MPTCP = equal("kind", "mptcp")
_CAPTURED = (chosen("probe"), chosen("operator"), _MPTCP)
NATIVE = equal("fallback", "false")
"""A pair whose Multipath TCP run stayed one: what fell back says nothing of two paths. It is counted apart."""

_PAIR = (
    " Of pairs of downloads: Multipath TCP over all paths, and TCP over each path alone. Pairs that fell back to TCP are left out. "
    "Made by the server when all runs of a pair are in; a point a day in ranges of more than seven days. Empty: no whole pair ended in "
    "this time."
)
GOODPUTS = {
    "mptcp_goodput_bit_per_s": Override("Multipath TCP", colour="good"),
    "best_goodput_bit_per_s": Override("the best path alone", colour="notice"),
    "worst_goodput_bit_per_s": Override("the worst path alone", colour="quiet"),
    "sum_goodput_bit_per_s": Override("sum of the paths", colour="#B877D9"),
}
_WORDS = {"operator": "primary operator", "mobility": "mobility state"}


def _mean(name: str, of: str, unit: str) -> Expression:
    return (total(name) / total(of)).in_unit(unit).named(name)


_GOODPUT_MEANS = tuple(_mean(name, "pairs", "bit/s") for name in GOODPUTS)
_BENEFIT = _mean("benefit", "benefits", "")
_SHARES = (_mean("primary_share", "shares", "share"), _mean("most_loaded_share", "shares", "share"))


def _pairs(
    *columns: Expression, by: tuple[str, ...] = (), over_time: bool = False, which: Condition = NATIVE
) -> Select:
    where = [*WHERE, which]
    if over_time:
        return windowed(*columns, of="pair_day", policy=ROLLED, where=where, fill="none")
    return select(*columns, of="pair_day", policy=ROLLED, where=where, by=by)


def _means_over_time(names: Sequence[str], of: str, unit: str) -> Select:
    """Sums first, once each, then their quotients: half as many functions as quotients of sums."""
    sums = _pairs(*(total(name) for name in (*names, of)), over_time=True)
    return select(*((value(name) / value(of)).in_unit(unit).named(name) for name in names), of=sums)


def goodputs() -> Panel:
    """Goodput of Multipath TCP and of the paths, over time."""
    return time_series(
        "Goodput: Multipath TCP against the best single path",
        "Means over the pairs of each stretch; the worst path and the sum of all are shown by mobility state, and with each of the "
        "newest pairs." + _PAIR,
        series(_means_over_time(tuple(GOODPUTS)[:2], "pairs", "bit/s"), "$col"),
        overrides=GOODPUTS,
        style="points",
        sums=("mean",),
        cadence="1m",
        points=180,
        size=(24, 10),
    )


def goodput_by_mobility() -> Panel:
    """The same by mobility state, as the papers have it."""
    return bar_chart(
        "Goodput by mobility state",
        "Mean goodput of Multipath TCP, of the best and of the worst path alone, standing, on foot, driving (the state during most of "
        "the Multipath TCP run)." + _PAIR,
        _pairs(*_GOODPUT_MEANS, by=("mobility",)),
        across="mobility",
        overrides=GOODPUTS,
    )


def summary(across: str = "operator") -> Panel:
    """Gain and benefit by primary operator or mobility state."""
    word = _WORDS[across]
    gain = (total("mptcp_goodput_bit_per_s") / total("best_goodput_bit_per_s")).in_unit("").named("gain")
    lower = total("lower").part_of(total("pairs"), "lower")
    figures = (total("pairs"), gain, lower, _BENEFIT, _SHARES[0])
    return table(
        f"Gain and benefit by {word}",
        "Gain: mean goodput of Multipath TCP by that of the best path alone; above 1 it pays. Lower: share of pairs in which Multipath "
        "TCP had less than the best path alone. Benefit (Kaspar, Cordero): 0 like the best path, 1 like all paths together, below 0 "
        "worse than the best path; not of simultaneous pairs." + _PAIR,
        _pairs(*figures, by=(across,)),
        _pairs(total("pairs").named("fell_back"), by=(across,), which=equal("fallback", "true")),
        joined_by=across,
        show={
            across: Override(word.capitalize()),
            "pairs": Override("Pairs"),
            "gain": Override("Gain", decimals=2),
            "lower": Override("Lower than the best path"),
            "benefit": Override("Benefit, mean", decimals=2),
            "primary_share": Override("Share over the primary path", unit="share"),
            "fell_back": Override("Pairs that fell back to TCP"),
        },
    )


def benefit_over_time() -> Panel:
    """Aggregation benefit over time, of pairs and of bandwidth and delay experiments."""
    of_pairs = _pairs(_BENEFIT, over_time=True)
    measured = windowed(mean("benefit"), of="aggregation", where=WHERE, by=["experiment"], fill="none")
    return time_series(
        "Aggregation benefit",
        "0: like the best path alone; 1: like all paths together, perfectly used; below 0: worse than the best path alone. Of pairs of "
        "downloads against the sum of the paths; of bandwidth and delay experiments against what the paths carry at once, measured. "
        "Means of each stretch; no point: none ended then.",
        series(of_pairs, "pairs of downloads"),
        series(measured, "experiment: $tag_experiment"),
        override=Override(low=-1, high=1, decimals=2),
        style="points",
        cadence="1m",
        points=180,
    )


def disjointivity() -> Panel:
    """TDI over time."""
    return time_series(
        "Transport disjointivity (TDI)",
        "What the paths carry at once, by the sum of what each carries alone: 1 when they share nothing, 0.5 when two equal paths "
        "share all. From bandwidth experiments, uploads (oneway) and downloads (reqresp). Means of each stretch; no point: no such "
        "experiment ended then.",
        series(windowed(mean("tdi"), of="aggregation", where=WHERE, by=["mode"], fill="none"), "$tag_mode"),
        override=Override(low=0, decimals=2),
        style="points",
        cadence="1m",
        points=180,
    )


def verdicts() -> Panel:
    """What each operator does to Multipath TCP, over time."""
    query = windowed(last("verdict_code"), of="verdict", where=WHERE, by=["operator", "path", "role"], fill="previous")
    return state_timeline(
        "Verdict of each operator",
        "Whether Multipath TCP gets through: native, or where it is lost (options stripped, fallback to TCP, subflow reset, no "
        "answer); for connections that begin on the path (primary) and subflows that join over it (join). From verdict experiments; a "
        "verdict stands until the next. Empty: none in this time.",
        series(query, "$tag_operator $tag_path $tag_role"),
        cadence="1m",
        points=180,
    )


def verdict_counts() -> Panel:
    """How often each verdict was given."""
    query = select(
        total("records").named("times"), of="verdict", policy=ROLLED, where=WHERE, by=["operator", "role", "verdict"]
    )
    return table(
        "Verdicts",
        "How often the verdict experiments of this time came to each verdict, by operator and role. Empty: there was none.",
        query,
        show=shown(operator="Operator", role="Role", verdict="Verdict", times="Times"),
        sort_by=("operator", False),
    )


def shares() -> Panel:
    """How evenly the paths are used, over time."""
    return time_series(
        "Share of the subflows",
        "Part of the Multipath TCP runs' bytes that came over the primary path, and over the path with most of them: 50 % is even use "
        "of two paths, 100 % of one alone." + _PAIR,
        series(_means_over_time(("primary_share", "most_loaded_share"), "shares", "share"), "$col"),
        override=Override(unit="share", low=0, high=1),
        overrides=_SHARE_OVERRIDES,
        style="points",
        cadence="1m",
        points=180,
        size=(24, 8),
    )


def shares_by_mobility() -> Panel:
    """Evenness of use by mobility state."""
    return bar_chart(
        "Share of the subflows by mobility state",
        "Mean part of the Multipath TCP runs' bytes on their primary path, and on the path with most of them: 50 % is even use of two "
        "paths." + _PAIR,
        _pairs(*_SHARES, by=("mobility",)),
        across="mobility",
        override=Override(unit="share", low=0, high=1),
        overrides=_SHARE_OVERRIDES,
    )


_SHARE_OVERRIDES = {
    "primary_share": Override("primary path", unit="share"),
    "most_loaded_share": Override("most loaded path", unit="share"),
}


def newest() -> Panel:
    """The newest pairs, each with a link to its run."""
    fields = ("run", *GOODPUTS, "gain", "benefit", "primary_share", "best_operator", "failed")
    query = select(
        *fields,
        of="pair",
        where=WHERE,
        by=("probe", "operator", "mobility", "pairing", "fallback"),
        recent="2d",
        newest_first=True,
        limit=20,
    )
    link = to_board("tandem-run", "This run", run=cell("run"), probe=cell("probe"))
    return table(
        "Newest pairs",
        "Pairs of downloads of the last two days, the newest first; a click on a run opens it. Those that fell back to TCP are here, "
        "too. Empty: no whole pair ended in this time.",
        query,
        show=shown(
            Time="Ended", probe=Override("Probe", links=(to_board("tandem-probe", "Live", probe=cell("probe")),))
        )
        | shown(run=Override("Multipath TCP run", links=(link,)), operator="Primary operator", mobility="Mobility")
        | shown(pairing="Pairing")
        | {name: Override(its.title) for name, its in GOODPUTS.items()}
        | shown(gain=Override("Gain", decimals=2), benefit=Override("Benefit", decimals=2))
        | shown(primary_share=Override("Share over the primary path", unit="share"), best_operator="Best operator")
        | shown(fallback=Override("Fell back", cell="text"), failed="Runs that failed"),
        sort_by=("Time", True),
        size=(24, 10),
    )


def recoveries() -> Panel:
    """t_R of each run's subflows."""
    query = select("t_r_median_s", of="run_trace", where=_CAPTURED, by=("path", "operator"))
    return time_series(
        "Time until the RTT is back (t_R), of each run",
        "From the runs' captures: how long after a handover or a drop of signal the round-trip time of that path's subflow was back, "
        "the median of each run. A point a subflow. Empty: no captures, or no event that stands apart while one ran.",
        series(query, "$tag_path ($tag_operator)"),
        overrides={"t_r_median_s": Override(as_points=True)},
    )


def reordering() -> Panel:
    """The data-level queue of each run."""
    query = select("reorder_queue_max_bytes", of="run_trace", where=[chosen("probe"), _MPTCP], by=("probe",))
    return time_series(
        "Reordering: most that waited in a run",
        "From the captures of Multipath TCP runs: the greatest amount of data that had come and waited for what was missing. A point a "
        "run. Empty: no captures of such runs have arrived and been analysed in this time.",
        series(query, "$tag_probe"),
        overrides={"reorder_queue_max_bytes": Override(as_points=True)},
    )


def came_again() -> Panel:
    """What came again of each run's subflows."""
    query = select("again_percent", of="run_trace", where=_CAPTURED, by=("path", "operator"))
    return time_series(
        "Share of bytes that came again, of each run",
        "From the captures of Multipath TCP runs: bytes seen twice, and bytes that filled a hole behind them, by all that came over "
        "each path. A point a subflow. Empty: no captures of such runs have arrived and been analysed in this time.",
        series(query, "$tag_path ($tag_operator)"),
        overrides={"again_percent": Override(as_points=True)},
        size=(24, 8),
    )


_BY_SECOND = (
    " A point a second (of long runs one of several), of the last day at most. Empty: no captures of such runs have arrived and been "
    "analysed."
)


def _by_second(field: str, *by: str) -> Query:
    where = _CAPTURED if by else [chosen("probe"), _MPTCP]
    query = select(field, of="run_trace_second", where=where, by=by or ("probe",), recent="1d")
    return series(query, "$tag_path ($tag_operator)" if by else "$tag_probe")


def recoveries_by_second() -> Panel:
    """t_R of each event."""
    return time_series(
        "t_R of each event, the last day",
        "From the captures of Multipath TCP runs: how long after each handover or drop of signal the round-trip time of that path's "
        "subflow was back, at the second of the event." + _BY_SECOND,
        _by_second("t_r_s", "path", "operator"),
        overrides={"t_r_s": Override(as_points=True)},
        size=(8, 8),
    )


def reordering_by_second() -> Panel:
    """The data-level queue."""
    return time_series(
        "Reordering queue, the last day",
        "From the captures of Multipath TCP runs: the most that had come and waited for what was missing." + _BY_SECOND,
        _by_second("reorder_queue_max_bytes"),
        overrides={"reorder_queue_max_bytes": Override(as_points=True)},
        size=(8, 8),
    )


def came_again_by_second() -> Panel:
    """What came again."""
    return time_series(
        "Came again, the last day",
        "From the captures of Multipath TCP runs: bytes seen twice, and bytes that filled a hole behind them, on each path."
        + _BY_SECOND,
        _by_second("again_bit_per_s", "path", "operator"),
        overrides={"again_bit_per_s": Override(as_points=True)},
        size=(8, 8),
    )
