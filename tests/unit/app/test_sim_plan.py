"""What a SIM's plan will have carried at its end."""

from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config_plan import PlanConfig
from tandem.app.sim_plan import forecast

GB = 10**9
PLAN = PlanConfig(10 * GB, 1, 1.0)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def days(first: str, counts: list[int]) -> dict[str, int]:
    begin = date.fromisoformat(first)
    return {(begin + timedelta(days=n)).isoformat(): count for n, count in enumerate(counts)}


def test_weekends_without_commutes_weigh_as_weekends() -> None:
    """Two whole weeks of Monday to Friday (2026-11-02 is a Monday): 5 days in 7, whatever the weekday now."""
    week = [GB // 2] * 5 + [0, 0]
    by_day = {d: c for d, c in days("2026-11-02", week * 2 + week[:4]).items() if c}  # a quiet day has no entry
    told = forecast(PLAN, by_day, at("2026-11-20T00:00:00"))
    assert told.basis_days == 14
    assert told.rate_bytes == 10 * (GB // 2) / 14
    assert told.used_bytes == 14 * (GB // 2)
    assert told.used_up_utc_s is not None
    assert at("2026-11-28T00:00:00") < told.used_up_utc_s < at("2026-11-30T00:00:00")


def test_what_the_forecast_goes_by():
    few = forecast(PLAN, {"2026-11-10": 200_000_000}, at("2026-11-10T00:05:00"))
    assert (few.basis_days, few.sure, few.rate_bytes) == (0, False, 200_000_000), "minutes are not extrapolated"
    assert few.counted_from == date(2026, 11, 10)
    before = forecast(PLAN, days("2026-10-20", [GB] * 12), at("2026-11-01T00:01:00"))
    assert (before.used_bytes, before.basis_days) == (0, 7), "the days before the reset tell of the days after"
    assert (before.since, before.reset) == (date(2026, 11, 1), date(2026, 12, 1))
    assert before.expected_bytes > 29 * GB
    assert abs((before.used_up_utc_s or 0) - at("2026-11-11T00:01:00")) < 1
    heavy = forecast(PLAN, days("2026-11-01", [GB // 10] * 13 + [3 * GB]), at("2026-11-14T20:00:00"))
    assert heavy.used_bytes == 13 * (GB // 10) + 3 * GB
    assert heavy.rate_bytes == (7 * (GB // 10) + 3 * GB) / 8, (
        "one whole week, and today: a heavy day is one of the days"
    )
    odd = forecast(PLAN, {"undated": 5, "2027-11-05": 7, "2026-11-05": 1}, at("2026-11-05T12:00:00"))
    assert (odd.used_bytes, odd.counted_from) == (13, date(2026, 11, 5)), "no day, and days to come, count as today"
    over = forecast(PLAN, {"2026-11-04": 11 * GB}, at("2026-11-05T12:00:00"))
    assert (over.left_bytes, over.used_up_utc_s) == (0, at("2026-11-05T12:00:00"))


@given(
    st.dictionaries(st.dates(date(2026, 1, 1), date(2027, 12, 31)).map(date.isoformat), st.integers(0, 10**12)),
    st.integers(1, 10**15),
    st.integers(1, 31),
    st.floats(at("2026-01-01T00:00:00"), at("2028-01-01T00:00:00")),
)
def test_a_forecast_never_contradicts_itself(by_day: dict[str, int], size: int, reset_day: int, now: float) -> None:
    plan = PlanConfig(size, reset_day, 1.0)
    told = forecast(plan, by_day, now)
    assert told.since <= datetime.fromtimestamp(now, UTC).date() < told.reset
    assert 27 < (told.reset - told.since).days < 32
    assert told.expected_bytes >= told.used_bytes >= 0
    assert told.left_bytes == max(0, size - told.used_bytes)
    assert told.basis_days <= 28
    if told.used_up_utc_s is None:
        assert told.expected_bytes <= size + 1
    else:
        assert told.expected_bytes >= size - 1
        assert now <= told.used_up_utc_s <= at(f"{told.reset}T00:00:00")
