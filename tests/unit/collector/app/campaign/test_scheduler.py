"""What a campaign measures next: triggers, quiet, order, budgets, power cuts."""

import copy
import random
import statistics
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from road import Road, campaign, step

from tandem.app.campaign.scheduler import MOST_ATTEMPTS, Done, ProbeState, Spending, Start, Wait
from tandem.app.daemon.accounts import reset_after, reset_before
from tandem.schema.campaign import Budget
from tandem.schema.zones import zone


def reasons(said):
    assert isinstance(said, Wait)
    return " ".join(said.reasons.values())


def test_runs_follow_each_other_in_the_stored_order_until_all_are_made():
    made = campaign(step(repetitions=4, more="[step.parameters]\nbytes = [1, 2, 3]"))
    road = Road(made)
    said = road.seconds(100)
    assert isinstance(said[-1], Done)
    assert [s.item.number for _, s in road.log] == list(range(12))
    assert sorted((s.item.repetition, s.item.parameters["bytes"]) for _, s in road.log) == [
        (r, b) for r in range(4) for b in (1, 2, 3)
    ]
    assert road.starts == [1.0 + 5 * n for n in range(12)]
    assert road.scheduler.made() == {"s": (12, 12)}


def test_it_is_quiet_before_each_run_and_maintenance_waits():
    road = Road(campaign(step(), "quiet_s = 7"))
    said = road.seconds(30)
    assert road.starts == [1.0, 13.0, 25.0]
    assert all(s.hold for s in said if isinstance(s, Wait))
    assert "quiet for" in reasons(said[7])


def test_a_start_of_mobility_begins_one_run_and_a_stale_one_none():
    road = Road(campaign(step(more='[step.trigger]\non = "mobility_start"\nwithin_s = 3')))
    assert "waits for mobility_start" in reasons(road.seconds(5)[-1])
    road.happens("mobility_start")
    road.seconds(20)
    assert road.starts == [6.0]  # one event, one run, though it is remembered
    road.happens("signal_drop")
    road.seconds(2)
    road.probe = ProbeState(paths_up=frozenset({"a"}))
    road.happens("mobility_start")
    assert "1 of 2 paths are up; down: b" in reasons(road.second())
    road.seconds(4)
    road.probe = ProbeState(paths_up=frozenset({"a", "b"}))
    road.seconds(5)
    assert road.starts == [6.0]  # too late


def test_any_of_several_events_and_something_else_that_measures_is_waited_for():
    road = Road(campaign(step(more='[step.trigger]\non = "event"\nevent = ["handover", "signal_drop"]')))
    assert road.second().reasons == {"s": "waits for handover or signal_drop"}
    road.happens("signal_drop")
    road.seconds(8)
    road.happens("handover")
    road.seconds(2)
    assert road.starts == [2.0, 10.0]
    road = Road(campaign(step()))
    road.probe = ProbeState(paths_up=frozenset("ab"), busy=True)
    assert "something else" in reasons(road.second())


def test_periodic_is_from_start_to_start_and_missed_slots_are_not_made_up_for():
    road = Road(campaign(step(repetitions=5, more='[step.trigger]\non = "periodic"\nevery_s = 10')))
    road.seconds(25)
    road.probe = ProbeState(paths_up=frozenset())
    road.seconds(40)
    road.probe = ProbeState(paths_up=frozenset({"a", "b"}))
    road.seconds(20)
    assert road.starts == [1.0, 11.0, 21.0, 66.0, 76.0]


def test_poisson_has_the_mean_asked_for_and_the_seed_says_when():
    text = step(repetitions=400, more='[step.trigger]\non = "poisson"\nmean_s = 30')
    road = Road(campaign(text), takes_s=1.0)
    road.seconds(20_000)
    gaps = [b - a for a, b in zip([0.0, *road.starts], road.starts, strict=False)]
    assert len(gaps) == 400
    assert statistics.mean(gaps) == pytest.approx(30, rel=0.15)
    assert statistics.stdev(gaps) == pytest.approx(30, rel=0.2)  # as wide as it is long: not periodic
    again = Road(campaign(text), takes_s=1.0)
    again.seconds(2000)
    assert again.starts == road.starts[: len(again.starts)]
    other = Road(campaign(text, "seed = 2"), takes_s=1.0)
    other.seconds(2000)
    assert other.starts != again.starts


def test_a_window_over_midnight():
    road = Road(campaign(step(repetitions=50, more='[step.trigger]\non = "window"\nbetween = "23:00-00:01"')))
    road.seconds(120)
    assert road.starts[0] == 1.0
    assert max(road.starts) < 60
    assert "waits for 23:00 UTC" in reasons(road.second())
    road.t = 23 * 3600.0
    assert isinstance(road.second(), Start)
    road.utc = False
    road.seconds(6)
    assert "not synchronised" in reasons(road.second())


def test_a_speed_class_and_a_place():
    road = Road(campaign(step(more='[step.trigger]\non = "speed_class"\nspeed_class = "high"')))
    assert "speed class high" in reasons(road.second())
    road.probe = ProbeState(mobile=True, speed_class="high", paths_up=frozenset("ab"))
    assert isinstance(road.second(), Start)
    there = 'on = "place"\nlatitude_deg = 60.17\nlongitude_deg = 24.94\nradius_m = 500'
    road = Road(campaign(step(more=f"[step.trigger]\n{there}")))
    assert "is not known" in reasons(road.second())
    road.probe = ProbeState(position=(60.18, 24.94), paths_up=frozenset("ab"))  # 1.1 km north
    assert "not at its place" in reasons(road.second())
    road.probe = ProbeState(position=(60.173, 24.945), paths_up=frozenset("ab"))
    assert isinstance(road.second(), Start)


def test_by_hand_takes_only_its_labels_and_one_run_each_time():
    road = Road(campaign(step(more='[step.trigger]\non = "hand"\nlabels = ["walk", "drive"]')))
    assert "by hand" in reasons(road.second())
    with pytest.raises(ValueError, match="none of drive, walk"):
        road.scheduler.tell("swim")
    road.scheduler.tell("walk")
    road.seconds(20)
    assert [s.label for _, s in road.log] == ["walk"]
    road.scheduler.tell("drive")
    road.scheduler.tell("walk")
    road.seconds(20)
    assert [s.label for _, s in road.log] == ["walk", "drive", "walk"]
    with pytest.raises(ValueError, match="no step"):
        Road(campaign(step())).scheduler.tell("walk")


def test_the_highest_priority_first_and_conditions_of_each_step():
    made = campaign(
        step("low", 2, "priority = 10") + step("high", 2, "priority = 90\n[step.conditions]\nmobile = true")
    )
    road = Road(made)
    road.seconds(1)
    road.probe = ProbeState(mobile=True, paths_up=frozenset("ab"))
    road.seconds(30)
    assert [s.item.step for _, s in road.log] == ["low", "high", "high", "low"]


def test_failures_in_a_row_are_results_and_make_pauses():
    road = Road(campaign(step(repetitions=6)), ok=lambda _: False)
    said = road.seconds(400)
    assert isinstance(said[-1], Done)
    gaps = [b - a for a, b in zip(road.starts, road.starts[1:], strict=False)]
    assert gaps == [5.0, 5.0, 35.0, 65.0, 125.0]
    assert road.scheduler.counts == {"failed": 6}


# --- budgets -------------------------------------------------------------------------------------------------------------


def test_a_days_runs_and_bytes_as_they_were_measured():
    road = Road(campaign(step(repetitions=9), "[budget]\nday_runs = 2"))
    said = road.seconds(20)
    assert len(road.log) == 2
    assert "the day's 2 runs are made" in reasons(said[-1])
    assert said[-1].in_s == pytest.approx(86400 - 20)
    road.t = 86400.0
    road.seconds(20)
    assert len(road.log) == 4
    road = Road(campaign(step(repetitions=9), "[budget]\nday_bytes = 2500"))
    assert "a: the day's budget has 500 bytes left, the run takes 1000" in reasons(road.seconds(30)[-1])
    assert len(road.log) == 2
    road = Road(campaign(step(repetitions=9), "[budget]\npath_bytes = 5000"), measured=2000)
    assert "a: the plan has 1000 bytes left" not in reasons(road.seconds(30)[-1])
    assert len(road.log) == 3  # 2000 + 2000, and 1000 are thought to fit
    assert road.scheduler.forecast(road.now())["a"]["used_bytes"] == 6000


@given(st.integers(1, 31), st.integers(500, 20_000), st.integers(0, 3000), st.integers(1, 1500), st.integers(0, 9))
def test_no_plan_is_overdrawn_by_what_runs_are_thought_to_take(reset_day, limit, day_limit, size, seed):
    made = campaign(
        step(repetitions=200, more='[step.trigger]\non = "periodic"\nevery_s = 3600'),
        f"[budget]\npath_bytes = {limit}\nday_bytes = {day_limit + 1000}\nreset_day = {reset_day}",
    )
    road, chance = Road(made, bytes_=size), random.Random(seed)
    while road.t < 35 * 86400 and not isinstance(road.second(), Done):
        road.t += chance.choice([600, 4000, 9000])
        if chance.random() < 0.02:
            road.restart()
        plan = road.scheduler.forecast(road.now())["a"]
        assert plan["used_bytes"] <= limit
        assert plan["used_today_bytes"] <= day_limit + 1000
    assert (len(road.log) > 0) == (size <= min(limit, day_limit + 1000))


# --- power cuts ------------------------------------------------------------------------------------------------------------


def cut(road):
    """The power goes while a run is under way, and comes back after a minute in another boot."""
    road.boot, road.t = f"boot-{road.t}", road.t + 60
    road.restart()


def test_after_power_cuts_it_goes_on_without_a_clock_and_not_for_ever():
    road = Road(campaign(step(repetitions=2)))
    for _ in range(MOST_ATTEMPTS + 3):
        road.seconds(2)
        cut(road)
    numbers = [s.item.number for _, s in road.log]
    assert numbers == [0] * MOST_ATTEMPTS + [1] * MOST_ATTEMPTS
    made = campaign(step(repetitions=3, more='[step.trigger]\non = "periodic"\nevery_s = 300'))
    road = Road(made, utc=False)
    road.seconds(10)
    cut(road)
    assert isinstance(road.second(), Start)


@given(
    st.sampled_from(["repeat", "count"]), st.lists(st.integers(1, 40), max_size=8), st.booleans(), st.integers(0, 99)
)
def test_power_cuts_anywhere_lose_no_run_and_make_none_twice(on_interrupt, cuts, utc, seed):
    made = campaign(
        step("s", 4, "[step.parameters]\nbytes = [1, 2]") + step("t", 3, "priority = 60"),
        f'seed = {seed}\non_interrupt = "{on_interrupt}"',
    )
    road = Road(made, utc=utc)
    for seconds in cuts:
        road.seconds(seconds)
        road.entries = copy.deepcopy(road.entries)  # as read from disk
        cut(road)
    road.seconds(200)
    assert isinstance(road.second(), Done)
    finished = [(e.step, e.number) for e in road.entries if e.ended is not None]
    cut_off = [(e.step, e.number) for e in road.entries if e.ended is None]
    assert len(set(finished)) == len(finished)
    everything = {("s", n) for n in range(8)} | {("t", n) for n in range(3)}
    lost = everything - set(finished)
    allowed = (
        set(cut_off) if on_interrupt == "count" else {key for key in cut_off if cut_off.count(key) >= MOST_ATTEMPTS}
    )
    assert lost == (allowed if on_interrupt == "count" else lost & allowed)
    orders = [(s.item.step, s.item.number, tuple(s.item.parameters.items())) for _, s in road.log]
    fresh = Road(made)
    fresh.seconds(200)
    planned = {(s.item.step, s.item.number): tuple(s.item.parameters.items()) for _, s in fresh.log}
    assert all(planned[name, number] == parameters for name, number, parameters in orders)


DAYS = st.dates(date(2024, 1, 1), date(2032, 12, 31))


def utc_s(*parts):
    return datetime(*parts, tzinfo=UTC).timestamp()


@given(DAYS, st.integers(1, 31))
def test_a_plan_begins_anew_once_a_month_in_months_without_that_day_on_their_last(today, reset_day):
    last, following = reset_before(today, reset_day), reset_after(today, reset_day)
    assert last <= today < following
    assert 28 <= (following - last).days <= 31
    assert reset_before(following, reset_day) == following
    for now, day, before, after in (
        (date(2026, 3, 1), 31, date(2026, 2, 28), date(2026, 3, 31)),
        (date(2028, 2, 29), 30, date(2028, 2, 29), date(2028, 3, 30)),
        (date(2026, 1, 5), 10, date(2025, 12, 10), date(2026, 1, 10)),
    ):
        assert (reset_before(now, day), reset_after(now, day)) == (before, after)


def test_the_forecast_goes_by_the_days_before_and_a_days_runs_are_of_the_local_day():
    spending = Spending(Budget(path_bytes=10_000, reset_day=1), ("a",))
    spending.add({"a": 1000}, utc_s(2026, 6, 1, 12))
    spending.add({"a": 3500}, utc_s(2026, 6, 10, 12))
    plan = spending.forecast("a", utc_s(2026, 6, 11, 12))
    assert (plan["used_bytes"], plan["left_bytes"], plan["reset"]) == (4500, 5500, "2026-07-01")
    assert plan["at_reset_bytes"] == pytest.approx(4500 + 500 * 19.5)  # of the last whole week: 500 a day
    assert plan["exceeds"]
    later = spending.forecast("a", utc_s(2026, 7, 1))
    assert (later["used_bytes"], later["left_bytes"]) == (0, 10_000)
    spending = Spending(Budget(day_bytes=800, day_runs=1), ("a",), zone("America/Los_Angeles"))
    spending.add({"a": 700}, utc_s(2026, 6, 1, 6))  # 23:00 of 31 May there
    refused = spending.refuses({"a": 50}, utc_s(2026, 6, 1, 6, 30))
    assert refused == ("the day's 1 runs are made", 1800.0)
    assert spending.refuses({"a": 50}, utc_s(2026, 6, 1, 7)) is None
    assert "day's budget has 100 bytes left" in spending.refuses({"a": 200}, utc_s(2026, 6, 1, 7))[0]


def test_what_was_spent_at_an_unknown_time_counts_as_now_and_without_a_clock_nothing_is_spent_twice():
    spending = Spending(Budget(path_bytes=1000, day_bytes=800), ("a",))
    spending.add({"a": 600}, None)
    assert "200 bytes left" in spending.refuses({"a": 300}, utc_s(2026, 6, 1))[0]
    assert spending.refuses({"a": 200}, utc_s(2026, 6, 1)) is None
    held = spending.refuses({"a": 200}, utc_s(2026, 6, 1), {"a": 199})
    assert held == ("a: its SIM's day_bytes have 199 left, the run takes 200", 86400.0)
    assert spending.forecast("a", None)["at_reset_bytes"] is None
    spending = Spending(Budget(day_bytes=800), ("a",))
    spending.add({"a": 700}, utc_s(2026, 6, 1, 12))
    assert spending.refuses({"a": 200}, None)[1] is None
    each = Spending(Budget(path_bytes=1000, by_role={"b": 10}), ("a", "b"))
    assert each.refuses({"a": 500, "b": 5}, utc_s(2026, 6, 1)) is None
    assert each.refuses({"a": 500, "b": 11}, utc_s(2026, 6, 1))[0].startswith("b: the plan has 10")
