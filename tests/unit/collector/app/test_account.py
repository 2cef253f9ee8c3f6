"""What each path's network carried, by day: counted once, whatever restarts, replugs and clocks do."""

import json
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.app.config_schema import PathConfig, PlanConfig
from tandem.app.daemon import accounts
from tandem.app.daemon.accounts import NAME, UNDATED, Account, Counter, Ledger, day_of, forecast, parse

DAY, NEXT = "2026-11-21", "2026-11-22"


def counter(received: int, sent: int = 0, index: int = 3, boot: str = "one", interface: str = "wwan0") -> Counter:
    return Counter(interface, index, boot, received, sent)


def test_a_new_boot_and_an_interface_made_since_began_at_nothing_and_one_there_all_along_was_anothers():
    ledger = Ledger()
    ledger.seen("a", counter(100), DAY)
    assert ledger.seen("a", counter(40, boot="two"), DAY) == (40, 0)
    assert ledger.seen("a", counter(30, index=9, boot="two", interface="wwan1"), DAY) == (30, 0)
    set_back = counter(10, index=9, boot="two", interface="wwan1")
    assert ledger.seen("a", set_back, DAY) == (10, 0), "by its driver"
    ledger = Ledger()
    assert ledger.seen("b", counter(100, 7), DAY, made_since=True) == (100, 7)
    ledger.seen("a", counter(100, index=9), DAY)
    assert ledger.seen("a", counter(10**9, index=2, interface="eth0"), DAY) == (0, 0)
    assert ledger.seen("a", counter(10**9 + 5, index=2, interface="eth0"), DAY) == (5, 0)


def test_bytes_without_a_day_count_against_every_day_and_go_to_the_first():
    assert [day_of(1_795_219_200_000_000_000 + ns) for ns in (-1_000_000, 0)] == ["2026-11-20", DAY], "a day is UTC's"
    assert day_of(None) is None
    ledger = Ledger()
    ledger.seen("a", counter(0), None)
    ledger.seen("a", counter(50), None)
    assert ledger.spent("a", DAY) == ledger.spent("a", NEXT) == 50
    ledger.seen("a", counter(60), NEXT)
    assert UNDATED not in ledger.days["a"]
    assert (ledger.spent("a", DAY), ledger.spent("a", NEXT)) == (0, 60)


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=20))
def test_the_first_sight_is_a_beginning_and_in_one_boot_the_sum_is_what_grew(steps):
    ledger, received, sent = Ledger(), 5_000_000, 70
    assert ledger.seen("a", counter(received, sent), DAY) == (0, 0)
    for more, up in steps:
        received, sent = received + more, sent + up
        assert ledger.seen("a", counter(received, sent), DAY) == (more, up)
    assert ledger.spent("a", DAY) == received + sent - 5_000_070
    assert ledger.spent("a", NEXT) == ledger.spent("b", DAY) == 0


@given(
    st.text(max_size=60)
    | st.recursive(st.none() | st.integers() | st.text(max_size=5), st.lists, max_leaves=5).map(str)
)
def test_a_file_that_is_no_account_is_refused_by_one_kind_of_error(text):
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def reading(monkeypatch: pytest.MonkeyPatch, folder: Path, received: int, sent: int) -> None:
    file = folder / "net_dev"
    row = f"{received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0"
    file.write_text(f"Inter-|\n face |\n    lo: {row}\n")
    monkeypatch.setattr(accounts, "NET_DEV", file)


def test_it_outlives_the_collector_and_counts_what_went_meanwhile(tmp_path, monkeypatch):
    interfaces = {"a": "lo", "b": None, "c": "nosuch0"}

    def life() -> Account:
        return Account(tmp_path, interfaces, "boot", lambda: 1_795_219_200_000_000_000)

    first = life()
    reading(monkeypatch, tmp_path, 1000, 10)
    first.update()
    reading(monkeypatch, tmp_path, 3000, 20)
    first.update()
    first.save()
    reading(monkeypatch, tmp_path, 3500, 30)  # while nobody ran
    second = life()
    assert second.spent("a", DAY) == 2010
    assert second.update() == dict.fromkeys(interfaces, (0, 0))  # since its start
    assert second.spent("a", DAY) == 2520
    reading(monkeypatch, tmp_path, 3600, 35)
    assert second.update()["a"] == (100, 5)
    reading(monkeypatch, tmp_path, 40, 5)  # set back by its driver
    assert second.update()["a"] == (140, 10)
    assert second.today() == {"a": 2670, "b": 0, "c": 0}
    second.save()
    told = json.loads((tmp_path / NAME).read_text())
    assert told["paths"] == {"a": {DAY: {"received": 2640, "sent": 30}}}


def test_what_a_sim_may_still_carry_today_is_the_less_of_its_day_and_its_plan(tmp_path):
    rows = {"2026-10-31": 5000, "2026-11-01": 200, DAY: 100}
    days = {day: {"received": count, "sent": 0} for day, count in rows.items()}
    (tmp_path / NAME).write_text(json.dumps({"format": accounts.FORMAT, "paths": {"a": days}, "counters": {}}))
    account = Account(tmp_path, {"a": "lo"}, "boot", lambda: 1_795_219_200_000_000_000)

    def left(day: int | None, plan: int) -> int | None:
        return account.left_today(PathConfig("a", interface="lo", day_bytes=day, plan=PlanConfig(plan, 1, 1.0)))

    assert left(1000, 5000) == 900
    assert left(1000, 350) == 50, "the plan began anew on the first"
    assert left(1000, 300) == left(60, 5000) == 0


def test_a_broken_file_is_put_aside(tmp_path):
    (tmp_path / NAME).write_text("{")
    assert Account(tmp_path, {}, "boot", lambda: None).spent("a", DAY) == 0
    assert (tmp_path / f"{NAME}.broken").read_text() == "{"


# --- what a SIM's plan will have carried at its end

GB = 10**9
PLAN = PlanConfig(10 * GB, 1, 1.0)


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def days(first: str, counts: list[int]) -> dict[str, int]:
    begin = date.fromisoformat(first)
    return {(begin + timedelta(days=n)).isoformat(): count for n, count in enumerate(counts)}


def test_weekends_without_commutes_weigh_as_weekends():
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
    assert heavy.rate_bytes == (7 * (GB // 10) + 3 * GB) / 8, "one whole week, and today"
    assert heavy.sure
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
def test_a_forecast_never_contradicts_itself(by_day, size, reset_day, now):
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
