"""Server-side expressions as Grafana reckons them: answers to series, reduce, math, threshold, outcome for each label set."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_dashboards.alarms.evaluate.evaluation import Query, Result, evaluate
from tandem_dashboards.alarms.evaluate.frames import read
from tandem_dashboards.alarms.evaluate.grammar import Binary, parse, references
from tandem_dashboards.alarms.evaluate.mathematics import Math
from tandem_dashboards.alarms.evaluate.reduction import Reduce
from tandem_dashboards.alarms.evaluate.states import Watch
from tandem_dashboards.alarms.evaluate.threshold import Condition, Threshold
from tandem_dashboards.alarms.evaluate.values import ExpressionError, NoData, Number, Scalar, Series

P1, P2 = (("probe", "p1"),), (("probe", "p2"),)
P1A, P2A = (("path", "a"), ("probe", "p1")), (("path", "a"), ("probe", "p2"))


def answer(*series, columns=("time", "x")):
    return {
        "results": [{"series": [{"name": "m", "tags": t, "columns": list(columns), "values": v} for t, v in series]}]
    }


def series(*cells):
    return {"A": (Series(P1, tuple(enumerate(cells))),)}


def number(value, labels=P1):
    return (Number(labels, value),)


def test_an_answer_becomes_a_series_for_each_group_and_column_of_numbers() -> None:
    told = answer(({"probe": "p1"}, [[5, 1, None], [6, 2.5, 3]]), columns=("time", "x", "y"))
    assert read(told) == (Series(P1, ((5, 1.0), (6, 2.5))), Series(P1, ((5, None), (6, 3.0))))
    assert read(answer(({}, [[5, None]]))) == (Series((), ((5, None),)),)
    for nothing in (answer(({}, [[5, True], [6, False]])), answer(({}, [[5, None], [6, "lost"]])), {"results": [{}]}):
        assert read(nothing) == (NoData(),)
    for none in ([], {}, {"error": "no"}, {"results": []}, {"results": [{"error": "bad field"}]}, None):
        with pytest.raises(ExpressionError):
            read(none)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["results", "series", "tags", "columns", "values", "error"]), inner),
)  # fmt: skip


@given(JSON | JSON.map(lambda x: {"results": [{"series": [x]}]}) | JSON.map(lambda x: answer(({}, [[1, x], x]))))
def test_no_answer_of_a_database_raises_anything_else(told) -> None:
    try:
        values = read(told)
    except ExpressionError:
        return
    assert all(isinstance(value, Series | NoData) for value in values)


@pytest.mark.parametrize(
    ("by", "cells", "mode", "wanted"),
    [
        ("last", (1, 2, None), None, None),
        ("last", (1, 2, None), "dropNN", 2),
        ("last", (1, 2, None), "replaceNN", 7),
        ("last", (), None, math.nan),
        ("last", (None, None), "dropNN", None),
        ("mean", (1, 2, 6), None, 3),
        ("mean", (1, None), None, math.nan),
        ("mean", (1, None), "dropNN", 1),
        ("max", (1, 9, 3), None, 9),
        ("max", (1, math.nan), None, math.nan),
        ("min", (4, 2), None, 2),
        ("min", (math.inf, 2), "dropNN", 2),
        ("sum", (), None, 0),
        ("sum", (1, 2, math.inf), "replaceNN", 10),
        ("count", (1, None), None, 2),
        ("count", (1, None), "dropNN", 1),
        ("median", (5, 1, 3), None, 3),
        ("median", (1, 3), None, 2),
    ],
)
def test_reduce(by, cells, mode, wanted) -> None:
    (made,) = Reduce("A", by, mode, 7.0).execute(series(*cells))
    assert made.labels == P1
    assert made.value == wanted or (wanted is not None and math.isnan(wanted) and math.isnan(made.value))


@pytest.mark.parametrize(
    ("expression", "a", "wanted"),
    [
        ("$A / 4 + 1", 8, 3), ("2 * -$A", 3, -6), ("!$A", 0, 1), ("!$A", 5, 0), ("$A % 5", 7, 2), ("$A ** 2", 3, 9),
        ("$A > 2 && $A < 4", 3, 1), ("$A == 3 || $A == 4", 5, 0), ("($A >= 3) * 10", 3, 10), ("$A / 0", 1, math.inf),
        ("abs($A)", -2, 2), ("$A + 1", math.nan, math.nan), ("$A && 1", math.nan, math.nan), ("0 && $A", math.nan, 0),
        ("$A || 0", math.nan, 1), ("$A - 1", None, None), ("2 + 3 * $A", 1, 5), ("8 - 2 - $A", 1, 5), ("null() + $A", 1, None),
    ],
)  # fmt: skip
def test_math(expression, a, wanted) -> None:
    (made,) = Math(expression).execute({"A": number(a)})
    assert made.value == wanted or (wanted is not None and math.isnan(wanted) and math.isnan(made.value))


def test_operands_meet_by_labels_and_times_and_what_meets_nothing_is_dropped() -> None:
    other = (("path", "b"), ("probe", "p3"))
    known = {"A": (Number(P1A, 10), Number(P2A, 20), Number(other, 30)), "B": (Number(P1, 1), Number(P2, 2))}
    assert Math("$A - $B").execute(known) == (Number(P1A, 9), Number(P2A, 18))
    assert Math("$B - $A").execute(known) == (Number(P1A, -9), Number(P2A, -18))
    assert Math("$A * 2").execute(known)[2] == Number(other, 60)
    # One against one of other labels meets all the same, and loses them.
    assert Math("$A + $B").execute({"A": number(1, P1), "B": number(2, P2)}) == (Number((), 3),)
    # No data on one side is no data of the whole.
    assert Math("$A + $B").execute({**known, "A": (NoData(),)}) == (NoData(),)
    assert Math("$B > 0").execute({"B": (NoData(),)}) == (NoData(),)
    known = {"A": (Series(P1, ((1, 1.0), (2, 2.0))),), "B": (Series(P1, ((2, 10.0), (3, None))),)}
    assert Math("$A + $B").execute(known) == (Series(P1, ((2, 12.0),)),)
    assert Math("$A * 2").execute(known) == (Series(P1, ((1, 2.0), (2, 4.0))),)


def test_what_is_no_expression_is_an_error() -> None:
    for text in ("$A==-1", "1 +", "$1", "(1", "nan(", "$A $B", "quux($A)", "1 & 2", "§", "", "-", "$A < > 1"):
        with pytest.raises(ExpressionError):
            Math(text).execute({"A": number(1)})
    with pytest.raises(ExpressionError):
        parse("(" * 5000 + "1" + ")" * 5000)
    tree = parse("1 + 2 * $A > 3 || $B")
    assert isinstance(tree, Binary)
    assert tree.operator == "||", "the weakest is at the top"


@given(st.text(alphabet='$AB01.()+-*/%<>=!&|, nalu"', max_size=40) | st.text())
def test_a_text_is_an_expression_or_an_expression_error(text) -> None:
    try:
        tree = parse(text)
    except ExpressionError:
        return
    assert set(references(tree)) == set(Math(text).needs)


@pytest.mark.parametrize(
    ("kind", "limits", "fires"),
    [
        ("gt", (2,), (3,)), ("lt", (2,), (1,)), ("gte", (2,), (2, 3)), ("lte", (2,), (1, 2)), ("eq", (2,), (2,)), ("ne", (2,), (1, 3)),
        ("within_range", (1, 3), (2,)), ("outside_range", (1, 2), (3,)), ("within_range_included", (1, 2), (1, 2)),
        ("outside_range_included", (1, 2), (1, 2, 3)),
    ],
)  # fmt: skip
def test_threshold(kind, limits, fires) -> None:
    for value in (1, 2, 3):
        (made,) = Threshold("A", Condition(kind, limits)).execute({"A": number(value)})
        assert made == Number(P1, float(value in fires))


def test_a_threshold_keeps_null_and_with_a_recovery_threshold_fires_until_that_holds() -> None:
    rule = Threshold("A", Condition("gt", (1,)))
    assert rule.execute({"A": number(None)}) == (Number(P1, None),)
    assert rule.execute({"A": number(math.nan)}) == (Number(P1, 0.0),)
    assert rule.execute({"A": (Scalar(3.0),)}) == (Scalar(1.0),)
    with pytest.raises(ExpressionError):
        Threshold("A", Condition("within_range", (1,))).execute({"A": number(1)})
    rule = Threshold("A", Condition("gt", (80,)), Condition("lt", (70,)))
    both = {"A": (Number(P1, 75), Number(P2, 75))}
    assert rule.execute(both) == (Number(P1, 0.0), Number(P2, 0.0))
    assert rule.told(frozenset({P1})).execute(both) == (Number(P1, 1.0), Number(P2, 0.0))
    assert rule.told(frozenset({P1})).execute({"A": number(69)}) == (Number(P1, 0.0),)


NODES = {
    "A": Query("SELECT x FROM m WHERE $timeFilter", 300),
    "B": Reduce("A", "last", "dropNN"),
    "C": Threshold("B", Condition("gt", (1,))),
}


def outcomes(told, nodes=NODES, condition="C"):
    return {r.labels: (r.outcome, dict(r.values)) for r in evaluate(nodes, condition, lambda _: told, 0)}


def test_each_label_set_has_an_outcome_and_nulls_are_no_data_of_their_labels() -> None:
    told = answer(({"probe": "p1"}, [[1, 5]]), ({"probe": "p2"}, [[1, 1]]))
    assert outcomes(told) == {P1: ("Alerting", {"B": 5, "C": 1}), P2: ("Normal", {"B": 1, "C": 0})}
    told = answer(({"probe": "p1"}, [[1, None]]), ({"probe": "p2"}, [[1, 1]]))
    assert outcomes(told)[P1][0] == "NoData"
    assert outcomes(answer()) == {(): ("NoData", {})}
    dropped = {**NODES, "D": Math("$B + $E"), "E": Reduce("F", "last"), "F": Query("other", 1)}
    asked = {"SELECT x FROM m WHERE $timeFilter": ("p1", "p2"), "other": ("p3", "p4")}

    def ask(text):
        first = text.startswith("SELECT")
        a, b = asked["SELECT x FROM m WHERE $timeFilter" if first else "other"]
        return answer(({"probe": a}, [[1, 1]]), ({"probe": b}, [[1, 1]]))

    (result,) = evaluate(dropped, "D", ask, 0)
    assert result.outcome == "NoData"


def test_faults_are_results_too() -> None:
    good = answer(({}, [[1, 1]]))
    two_columns = answer(({"probe": "p1"}, [[1, 1, 2]]), columns=("time", "x", "y"))
    for told, nodes, condition in (
        ({"results": [{"error": "database is locked"}]}, NODES, "C"),
        (good, NODES, "A"),
        (good, NODES, "Z"),
        (good, {**NODES, "C": Math("$B + $Q")}, "C"),
        (good, {"A": Math("$B"), "B": Math("$A")}, "A"),
        (two_columns, NODES, "C"),
    ):
        (result,) = evaluate(nodes, condition, lambda _, told=told: told, 0)
        assert (result.outcome, bool(result.error)) == ("Error", True)


def test_macros_are_expanded_as_the_data_source_does() -> None:
    query = Query("SELECT x FROM m WHERE $timeFilter GROUP BY time($__interval)", 300, 60)
    assert query.expanded(1_000_000) == "SELECT x FROM m WHERE time >= 700000ms and time <= 940000ms GROUP BY time(1s)"
    assert json.loads(json.dumps(query.text)) == query.text


def minutes(watch, *rounds, start=0):
    """Evaluate once a minute; a round is {labels: outcome}, or one outcome of the whole. Names of states after each."""
    seen = []
    for minute, told in enumerate(rounds, start):
        results = [Result((), told)] if isinstance(told, str) else [Result(k, v, {"x": 1.0}) for k, v in told.items()]
        watch.told(results, minute * 60_000)
        seen.append({labels: state.name for labels, state in watch.states.items()})
    return seen


def of(watch, *rounds, labels=P1, start=0):
    return [names.get(labels) for names in minutes(watch, *rounds, start=start)]


FIRES, FINE = {P1: "Alerting"}, {P1: "Normal"}


def test_pending_until_it_has_been_so_for_the_rules_time_then_told_once_and_its_end_once() -> None:
    assert of(Watch(120), FIRES, FIRES, FIRES, FIRES) == ["Pending", "Pending", "Alerting", "Alerting"]
    assert of(Watch(0), FINE, FIRES, FINE) == ["Normal", "Alerting", "Normal"]
    assert of(Watch(120), FIRES, FIRES, FINE, FIRES, FIRES) == ["Pending", "Pending", "Normal", "Pending", "Pending"]
    watch = Watch(0)
    (change,) = watch.told([Result(P1, "Alerting")], 0)
    assert (change.before, change.after, change.resolved) == ("Normal", "Alerting", False)
    assert watch.told([Result(P1, "Alerting")], 60_000) == []
    (over,) = watch.told([Result(P1, "Normal")], 120_000)
    assert over.resolved
    watch = Watch(0, keep_firing_s=120)
    assert of(watch, FIRES, FINE, FIRES, FINE, FINE, FINE) == [
        *("Alerting", "Recovering", "Alerting", "Recovering", "Recovering", "Normal"),
    ]  # fmt: skip
    assert watch.firing == frozenset()


def test_a_series_that_vanishes_while_others_are_there_is_resolved_after_two_evaluations() -> None:
    """Why a silent probe needs a series of its own: a rule over what it sends takes back its alarm when it stops sending."""
    watch = Watch(0)
    assert of(watch, {P1: "Alerting", P2: "Normal"}, {P2: "Normal"}) == ["Alerting", "Alerting"]
    (resolved,) = watch.told([Result(P2, "Normal")], 120_000)
    assert (resolved.labels, resolved.resolved, resolved.reason) == (P1, True, "MissingSeries")
    assert P1 not in watch.states


@pytest.mark.parametrize(
    ("word", "before", "after"),
    [
        ("KeepLast", "Alerting", "Alerting"), ("KeepLast", "Normal", "Normal"), ("OK", "Alerting", "Normal"),
        ("Alerting", "Normal", "Alerting"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("outcome", ["NoData", "Error"])
def test_no_data_or_an_error_of_the_whole_is_what_the_rule_says_for_every_label_set(
    word, before, after, outcome
) -> None:
    watch = Watch(0, no_data=word, on_error=word)
    names = minutes(watch, {P1: before, P2: "Normal"}, outcome, outcome, outcome)
    assert names[-1][P1] == after
    assert names[-1].keys() == {P1, P2}


def test_with_the_states_of_their_own_no_data_and_errors_are_label_sets_and_leave_others_alone() -> None:
    watch = Watch(0)
    assert minutes(watch, "NoData", "NoData")[-1] == {(): "NoData"}
    assert minutes(watch, FINE, start=2)[-1] == {P1: "Normal"}  # what had no data is gone after one evaluation
    assert of(Watch(0), FINE, "Error", labels=()) == [None, "Error"]
    watch = Watch(0, no_data="KeepLast")
    names = minutes(watch, {P1: "Alerting", P2: "Normal"}, {P1: "NoData", P2: "Alerting"})
    assert names[-1] == {P1: "Alerting", P2: "Alerting"}
    assert watch.states[P1].reason == "NoData, KeepLast"


def test_through_no_data_the_last_state_is_kept_with_its_values_and_goes_on_counting() -> None:
    assert of(Watch(0, no_data="KeepLast"), "NoData", "NoData", labels=()) == ["Normal", "Normal"]
    alerting = of(Watch(120, no_data="Alerting"), "NoData", "NoData", "NoData", labels=())
    assert (
        alerting == of(Watch(120, no_data="KeepLast"), FIRES, "NoData", "NoData") == ["Pending", "Pending", "Alerting"]
    )
    watch = Watch(0, no_data="KeepLast")
    minutes(watch, FIRES, "NoData")
    assert dict(watch.states[P1].values) == {"x": 1.0}
