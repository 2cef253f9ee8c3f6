"""States from evaluation to evaluation: for, no data, errors, keep-firing, and series that vanish."""

from __future__ import annotations

import pytest

from tandem_dashboards.alarms.evaluate.evaluation import Result
from tandem_dashboards.alarms.evaluate.states import Watch

P1, P2 = (("probe", "p1"),), (("probe", "p2"),)


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


def test_pending_until_it_has_been_so_for_the_rules_time() -> None:
    assert of(Watch(120), FIRES, FIRES, FIRES, FIRES) == ["Pending", "Pending", "Alerting", "Alerting"]
    assert of(Watch(0), FINE, FIRES, FINE) == ["Normal", "Alerting", "Normal"]
    assert of(Watch(120), FIRES, FIRES, FINE, FIRES, FIRES) == ["Pending", "Pending", "Normal", "Pending", "Pending"]


def test_firing_is_told_once_and_its_end_once() -> None:
    watch = Watch(0)
    (change,) = watch.told([Result(P1, "Alerting")], 0)
    assert (change.before, change.after, change.resolved) == ("Normal", "Alerting", False)
    assert watch.told([Result(P1, "Alerting")], 60_000) == []
    (over,) = watch.told([Result(P1, "Normal")], 120_000)
    assert over.resolved


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


def test_with_the_states_of_their_own_no_data_and_errors_are_further_label_sets() -> None:
    watch = Watch(0)
    assert minutes(watch, "NoData", "NoData")[-1] == {(): "NoData"}
    assert minutes(watch, FINE, start=2)[-1] == {P1: "Normal"}  # what had no data is gone after one evaluation
    assert of(Watch(0), FINE, "Error", labels=()) == [None, "Error"]


def test_nothing_ever_and_no_data_keeps_nothing_firing() -> None:
    assert of(Watch(0, no_data="KeepLast"), "NoData", "NoData", labels=()) == ["Normal", "Normal"]
    assert of(Watch(120, no_data="Alerting"), "NoData", "NoData", "NoData", labels=()) == [
        "Pending",
        "Pending",
        "Alerting",
    ]


def test_pending_keeps_counting_through_no_data_when_the_last_state_is_kept() -> None:
    assert of(Watch(120, no_data="KeepLast"), FIRES, "NoData", "NoData") == ["Pending", "Pending", "Alerting"]


def test_no_data_of_one_label_set_leaves_the_other_alone() -> None:
    watch = Watch(0, no_data="KeepLast")
    names = minutes(watch, {P1: "Alerting", P2: "Normal"}, {P1: "NoData", P2: "Alerting"})
    assert names[-1] == {P1: "Alerting", P2: "Alerting"}
    assert watch.states[P1].reason == "NoData, KeepLast"


def test_keep_firing_bridges_a_flap() -> None:
    watch = Watch(0, keep_firing_s=120)
    assert of(watch, FIRES, FINE, FIRES, FINE, FINE, FINE) == [
        *("Alerting", "Recovering", "Alerting", "Recovering", "Recovering", "Normal"),
    ]  # fmt: skip
    assert watch.firing == frozenset()


def test_values_stay_those_of_the_last_evaluation_that_had_any() -> None:
    watch = Watch(0, no_data="KeepLast")
    minutes(watch, FIRES, "NoData")
    assert dict(watch.states[P1].values) == {"x": 1.0}
