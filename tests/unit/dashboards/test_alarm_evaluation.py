"""Server-side expressions as Grafana evaluates them: answers to series, the newest value, math, threshold, outcome and state for each label
set."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.grafana_alerting import (
    ExpressionError,
    Query,
    Result,
    Rule,
    calculated,
    compared,
    evaluate,
    last,
    read,
)
from tandem_dashboards.alarms.alarm import Last, Math, Threshold

P1, P2 = (("probe", "p1"),), (("probe", "p2"),)
P1A, P2A = (("path", "a"), ("probe", "p1")), (("path", "a"), ("probe", "p2"))


def answer(*series, columns=("time", "x")):
    return {
        "results": [{"series": [{"name": "m", "tags": t, "columns": list(columns), "values": v} for t, v in series]}]
    }


def test_an_answer_becomes_a_series_for_each_group_of_numbers() -> None:
    told = answer(({"probe": "p1"}, [[5, 1], [6, 2.5]]), ({"probe": "p2"}, [[6, None]]))
    assert read(told) == [(P1, [1.0, 2.5]), (P2, [None])]
    for nothing in (answer(({}, [[5, True], [6, False]])), answer(({}, [[5, None], [6, "lost"]])), {"results": [{}]}):
        assert read(nothing) is None
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
        series = read(told)
    except ExpressionError:
        return
    assert all(cell is None or isinstance(cell, float) for _, cells in series or () for cell in cells)


def test_the_newest_value_leaves_nulls_out_and_a_series_of_nulls_has_one() -> None:
    assert last([(P1, [1.0, 2.0, None]), (P2, [None, None])]) == [(P1, 2.0), (P2, None)]
    assert last(None) is None


@pytest.mark.parametrize(
    ("expression", "a", "wanted"),
    [
        ("$A / 4 + 1", 8, 3), ("($A >= 3) * 10", 3, 10), ("$A * ($A == 3)", 4, 0), ("$A / 0", 1, math.inf), ("$A / 0", 0, math.nan),
        ("$A + 1", math.nan, math.nan), ("$A - 1", None, None), ("2 + 3 * $A", 1, 5), ("8 - 2 - $A", 1, 5),
    ],
)  # fmt: skip
def test_math(expression, a, wanted) -> None:
    ((labels, made),) = calculated(expression, {"A": [(P1, a if a is None else float(a))]})
    assert labels == P1
    assert made == wanted or (wanted is not None and math.isnan(wanted) and math.isnan(made))


def test_operands_meet_by_labels_and_what_meets_nothing_is_dropped() -> None:
    other = (("path", "b"), ("probe", "p3"))
    known = {"A": [(P1A, 10.0), (P2A, 20.0), (other, 30.0)], "B": [(P1, 1.0), (P2, 2.0)]}
    assert calculated("$A - $B", known) == [(P1A, 9), (P2A, 18)]
    assert calculated("$B - $A", known) == [(P1A, -9), (P2A, -18)]
    assert calculated("$A * 2", known)[2] == (other, 60)
    # One against one of other labels meets all the same, and loses them.
    assert calculated("$A + $B", {"A": [(P1, 1.0)], "B": [(P2, 2.0)]}) == [((), 3)]
    # No data on one side is no data of the whole.
    assert calculated("$A + $B", {**known, "A": None}) is None
    assert calculated("$B > 0", {"B": None}) is None


@pytest.mark.parametrize("text", ["1 +", "$1", "(1", "nan(", "$A $B", "quux($A)", "1 & 2", "§", "", "-", "$A < > 1"])
def test_what_is_no_expression_is_an_error(text) -> None:
    with pytest.raises(ExpressionError):
        calculated(text, {"A": [(P1, 1.0)]})


@given(st.text(alphabet='$AB01.()+-*/%<>=!&|, nalu"', max_size=40) | st.text())
def test_a_text_is_an_expression_or_an_expression_error(text) -> None:
    try:
        calculated(text, {"A": [(P1, 1.0)], "B": [(P1, 2.0)]})
    except ExpressionError:
        return


@pytest.mark.parametrize(("kind", "fires"), [("gt", (3,)), ("lt", (1,)), ("gte", (2, 3)), ("eq", (2,))])
def test_a_threshold_keeps_null(kind, fires) -> None:
    for value in (1, 2, 3):
        assert compared(Threshold("A", kind, 2), [(P1, float(value))]) == [(P1, float(value in fires))]
    assert compared(Threshold("A", kind, 2), [(P1, None), (P2, math.nan)]) == [(P1, None), (P2, 0.0)]


NODES = {"A": Query("SELECT x FROM m WHERE $timeFilter", 300), "B": Last("A"), "C": Threshold("B", "gt", 1)}


def outcomes(told, nodes=NODES, condition="C"):
    return {r.labels: (r.outcome, dict(r.values)) for r in evaluate(nodes, condition, lambda _: told, 0)}


def test_each_label_set_has_an_outcome_and_nulls_are_no_data_of_their_labels() -> None:
    told = answer(({"probe": "p1"}, [[1, 5]]), ({"probe": "p2"}, [[1, 1]]))
    assert outcomes(told) == {P1: ("Alerting", {"B": 5, "C": 1}), P2: ("Normal", {"B": 1, "C": 0})}
    told = answer(({"probe": "p1"}, [[1, None]]), ({"probe": "p2"}, [[1, 1]]))
    assert outcomes(told)[P1][0] == "NoData"
    assert outcomes(answer()) == {(): ("NoData", {})}
    dropped = {**NODES, "F": Query("other", 1), "E": Last("F"), "D": Math("$B + $E")}

    def ask(text):
        a, b = ("p1", "p2") if text.startswith("SELECT") else ("p3", "p4")
        return answer(({"probe": a}, [[1, 1]]), ({"probe": b}, [[1, 1]]))

    (result,) = evaluate(dropped, "D", ask, 0)
    assert result.outcome == "NoData"


def test_faults_are_results_too() -> None:
    good = answer(({}, [[1, 1]]))
    two_columns = answer(({"probe": "p1"}, [[1, 1, 2]]), columns=("time", "x", "y"))
    twice = answer(({"probe": "p1"}, [[1, 1]]), ({"probe": "p1"}, [[1, 2]]))
    for told, nodes, condition in (
        ({"results": [{"error": "database is locked"}]}, NODES, "C"),
        (good, NODES, "A"),
        (good, NODES, "Z"),
        (good, {**NODES, "C": Math("$B + $Q")}, "C"),
        (good, {"A": Math("$B"), "B": Math("$A")}, "A"),
        (two_columns, NODES, "C"),
        (twice, NODES, "C"),
    ):
        (result,) = evaluate(nodes, condition, lambda _, told=told: told, 0)
        assert (result.outcome, bool(result.error)) == ("Error", True)


def test_the_macro_is_expanded_as_the_data_source_does() -> None:
    query = Query("SELECT x FROM m WHERE $timeFilter", 300)
    assert query.expanded(1_000_000) == "SELECT x FROM m WHERE time >= 700000ms and time <= 1000000ms"


RULE = Rule("u", "t", "C", NODES, {}, {}, 0, 60, "KeepLast", "KeepLast")


def watching(for_s=0, **words):
    return replace(RULE, for_s=for_s, **words).watch()


def minutes(watch, *rounds, start=0):
    """Evaluate once a minute; a round is {labels: outcome}, or one outcome of the whole. Names of states after each."""
    seen = []
    for minute, told in enumerate(rounds, start):
        results = [Result((), told)] if isinstance(told, str) else [Result(k, v, {"x": 1.0}) for k, v in told.items()]
        watch.take(results, minute * 60_000)
        seen.append({labels: state.name for labels, state in watch.states.items()})
    return seen


def of(watch, *rounds, labels=P1, start=0):
    return [names.get(labels) for names in minutes(watch, *rounds, start=start)]


FIRES, FINE = {P1: "Alerting"}, {P1: "Normal"}


def test_pending_until_it_has_been_so_for_the_rules_time_then_told_once_and_its_end_once() -> None:
    assert of(watching(120), FIRES, FIRES, FIRES, FIRES) == ["Pending", "Pending", "Alerting", "Alerting"]
    assert of(watching(), FINE, FIRES, FINE) == ["Normal", "Alerting", "Normal"]
    assert of(watching(120), FIRES, FIRES, FINE, FIRES, FIRES) == ["Pending", "Pending", "Normal", "Pending", "Pending"]
    watch = watching()
    (change,) = watch.take([Result(P1, "Alerting")], 0)
    assert (change.before, change.after, change.resolved) == ("Normal", "Alerting", False)
    assert watch.take([Result(P1, "Alerting")], 60_000) == []
    (over,) = watch.take([Result(P1, "Normal")], 120_000)
    assert over.resolved
    assert watch.firing == frozenset()


def test_a_series_that_vanishes_while_others_are_there_is_resolved_after_two_evaluations() -> None:
    """Why a silent probe needs a series of its own: a rule over what it sends takes back its alarm when it stops sending."""
    watch = watching()
    assert of(watch, {P1: "Alerting", P2: "Normal"}, {P2: "Normal"}) == ["Alerting", "Alerting"]
    (resolved,) = watch.take([Result(P2, "Normal")], 120_000)
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
    watch = watching(no_data=word, on_error=word)
    names = minutes(watch, {P1: before, P2: "Normal"}, outcome, outcome, outcome)
    assert names[-1][P1] == after
    assert names[-1].keys() == {P1, P2}


def test_no_data_of_one_label_set_leaves_others_alone() -> None:
    watch = watching()
    names = minutes(watch, {P1: "Alerting", P2: "Normal"}, {P1: "NoData", P2: "Alerting"})
    assert names[-1] == {P1: "Alerting", P2: "Alerting"}
    assert watch.states[P1].reason == "NoData, KeepLast"


def test_through_no_data_the_last_state_is_kept_with_its_values_and_goes_on_counting() -> None:
    assert of(watching(), "NoData", "NoData", labels=()) == ["Normal", "Normal"]
    alerting = of(watching(120, no_data="Alerting"), "NoData", "NoData", "NoData", labels=())
    assert alerting == of(watching(120), FIRES, "NoData", "NoData") == ["Pending", "Pending", "Alerting"]
    watch = watching()
    minutes(watch, FIRES, "NoData")
    assert dict(watch.states[P1].values) == {"x": 1.0}
