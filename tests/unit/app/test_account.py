"""What each path's network carried, by day: counted once, whatever restarts, replugs and clocks do."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.app import account
from tandem.app.account import NAME, UNDATED, Account, Counter, Ledger, day_of, parse

DAY, NEXT = "2026-11-21", "2026-11-22"


def counter(received: int, sent: int = 0, index: int = 3, boot: str = "one", interface: str = "wwan0") -> Counter:
    return Counter(interface, index, boot, received, sent)


def test_a_new_boot_and_an_interface_made_since_began_at_nothing() -> None:
    ledger = Ledger()
    ledger.seen("a", counter(100), DAY)
    assert ledger.seen("a", counter(40, boot="two"), DAY) == (40, 0)
    assert ledger.seen("a", counter(30, index=9, boot="two", interface="wwan1"), DAY) == (30, 0)
    assert ledger.seen("a", counter(10, index=9, boot="two", interface="wwan1"), DAY) == (
        10,
        0,
    )  # set back by its driver


def test_an_interface_that_was_there_all_along_was_anothers() -> None:
    ledger = Ledger()
    ledger.seen("a", counter(100, index=9), DAY)
    assert ledger.seen("a", counter(10**9, index=2, interface="eth0"), DAY) == (0, 0)
    assert ledger.seen("a", counter(10**9 + 5, index=2, interface="eth0"), DAY) == (5, 0)


def test_bytes_without_a_day_count_against_every_day_and_go_to_the_first() -> None:
    ledger = Ledger()
    ledger.seen("a", counter(0), None)
    ledger.seen("a", counter(50), None)
    assert ledger.spent("a", DAY) == ledger.spent_since("a", NEXT) == 50
    ledger.seen("a", counter(60), NEXT)
    assert UNDATED not in ledger.days["a"]
    assert (ledger.spent("a", DAY), ledger.spent("a", NEXT)) == (0, 60)


def test_a_plan_counts_from_its_reset_on() -> None:
    ledger = Ledger()
    for n, day in enumerate(("2026-10-31", "2026-11-01", "2026-11-30")):
        ledger.seen("a", counter(100 * n, n), day)
    assert ledger.spent_since("a", "2026-11-01") == 202
    assert ledger.spent_since("a", "2026-11-02") == 101


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 10**12)), min_size=1, max_size=20))
def test_the_first_sight_is_a_beginning_and_in_one_boot_the_sum_is_what_grew(steps: list[tuple[int, int]]) -> None:
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
def test_a_file_that_is_no_account_is_refused_by_one_kind_of_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(text)


def reading(monkeypatch: pytest.MonkeyPatch, folder: Path, received: int, sent: int) -> None:
    file = folder / "net_dev"
    row = f"{received} 1 0 0 0 0 0 0 {sent} 1 0 0 0 0 0 0"
    file.write_text(f"Inter-|\n face |\n    lo: {row}\n")
    monkeypatch.setattr(account, "NET_DEV", file)


def test_it_outlives_the_collector_and_counts_what_went_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    second.update()
    assert second.spent("a", DAY) == 2520
    assert second.today() == {"a": 2520, "b": 0, "c": 0}
    second.save()
    told = json.loads((tmp_path / NAME).read_text())
    assert told["paths"] == {"a": {DAY: {"received": 2500, "sent": 20}}}


def test_a_broken_file_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / NAME).write_text("{")
    assert Account(tmp_path, {}, "boot", lambda: None).spent("a", DAY) == 0
    assert (tmp_path / f"{NAME}.broken").read_text() == "{"


def test_days_are_utc() -> None:
    assert day_of(1_795_219_199_999_000_000) == "2026-11-20"
    assert day_of(1_795_219_200_000_000_000) == DAY
    assert day_of(None) is None
