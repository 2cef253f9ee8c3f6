"""Plans: when they begin anew, what is left, and what is to come."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.campaign.budget import Spending
from tandem.app.plan_period import reset_after, reset_before
from tandem.schema.campaign import Budget
from tandem.schema.zones import zone

DAYS = st.dates(date(2024, 1, 1), date(2032, 12, 31))


def utc_s(*parts):
    return datetime(*parts, tzinfo=UTC).timestamp()


@given(DAYS, st.integers(1, 31))
def test_a_plan_begins_anew_once_a_month(today, reset_day):
    last, following = reset_before(today, reset_day), reset_after(today, reset_day)
    assert last <= today < following
    assert 28 <= (following - last).days <= 31
    assert reset_before(following, reset_day) == following


@pytest.mark.parametrize(
    ("today", "day", "last", "following"),
    [
        (date(2026, 3, 1), 31, date(2026, 2, 28), date(2026, 3, 31)),
        (date(2028, 2, 29), 30, date(2028, 2, 29), date(2028, 3, 30)),
        (date(2026, 1, 5), 10, date(2025, 12, 10), date(2026, 1, 10)),
        (date(2026, 12, 31), 1, date(2026, 12, 1), date(2027, 1, 1)),
    ],
)
def test_in_months_without_that_day_on_their_last(today, day, last, following):
    assert (reset_before(today, day), reset_after(today, day)) == (last, following)


def test_the_forecast_goes_on_at_the_pace_so_far():
    spending = Spending(Budget(path_bytes=10_000, reset_day=1), ("a",))
    spending.add({"a": 2000}, utc_s(2026, 6, 1, 12))
    spending.add({"a": 2000}, utc_s(2026, 6, 10, 12))
    plan = spending.forecast("a", utc_s(2026, 6, 11, 12))
    assert (plan.used_bytes, plan.left_bytes, plan.reset) == (4000, 6000, date(2026, 7, 1))
    assert plan.at_reset_bytes == pytest.approx(4000 + 400 * 19.5)  # ten days since the first run: 400 a day
    assert plan.exceeds
    later = spending.forecast("a", utc_s(2026, 7, 1))
    assert (later.used_bytes, later.left_bytes) == (0, 10_000)


def test_what_was_spent_at_an_unknown_time_counts_as_now():
    spending = Spending(Budget(path_bytes=1000, day_bytes=800), ("a",))
    spending.add({"a": 600}, None)
    assert "200 bytes left" in spending.refuses({"a": 300}, utc_s(2026, 6, 1))[0]
    assert spending.refuses({"a": 200}, utc_s(2026, 6, 1)) is None
    held = spending.refuses({"a": 200}, utc_s(2026, 6, 1), {"a": 199})
    assert held == ("a: its SIM's day_bytes have 199 left, the run takes 200", 86400.0)
    assert spending.forecast("a", None).at_reset_bytes is None


def test_without_a_clock_nothing_is_spent_twice():
    spending = Spending(Budget(day_bytes=800), ("a",))
    spending.add({"a": 700}, utc_s(2026, 6, 1, 12))
    refused = spending.refuses({"a": 200}, None)
    assert refused[1] is None


def test_a_days_runs_are_of_the_local_day_its_bytes_of_the_sims():
    spending = Spending(Budget(day_bytes=800, day_runs=1), ("a",), zone("America/Los_Angeles"))
    spending.add({"a": 700}, utc_s(2026, 6, 1, 6))  # 23:00 of 31 May there
    refused = spending.refuses({"a": 50}, utc_s(2026, 6, 1, 6, 30))
    assert refused == ("the day's 1 runs are made", 1800.0)
    assert spending.refuses({"a": 50}, utc_s(2026, 6, 1, 7)) is None
    assert "day's budget has 100 bytes left" in spending.refuses({"a": 200}, utc_s(2026, 6, 1, 7))[0]


def test_single_paths_have_their_own_budgets():
    budget = Budget(path_bytes=1000, by_role={"b": 10})
    assert Spending(budget, ("a", "b")).refuses({"a": 500, "b": 5}, utc_s(2026, 6, 1)) is None
    assert (
        Spending(budget, ("a", "b")).refuses({"a": 500, "b": 11}, utc_s(2026, 6, 1))[0].startswith("b: the plan has 10")
    )
