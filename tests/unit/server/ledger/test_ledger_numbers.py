"""The account of a spool's numbers adds up, whatever was lost, dropped, rejected or is still waiting."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.ledger.numbers import BootCount, Found, account_of, account_unreported, how_many, spools_of
from tandem_server.ledger.states import SpoolReport, report_of
from tandem_server.registry import CountedNumbers


def those(numbers) -> Found:
    found = Found()
    found.add(np.fromiter(numbers, np.int64))
    return found


def report(boot: str, spool: str, made: int, first: int = 1, **counts: int) -> SpoolReport:
    told = {"sent": made - first + 1, "rejected": 0, "dropped": 0, "settled": made, **counts}
    numbers = (told[name] for name in ("sent", "rejected", "dropped", "settled"))
    return SpoolReport("probe-1", boot, 100, spool, first, made, *numbers, None, 0)


@given(st.sets(st.integers(1, 60)), st.integers(1, 20), st.integers(0, 60))
def test_gaps_and_numbers_part_the_whole(found, first, last):
    gaps = those(found).missing(first, last)
    named = {n for a, b in gaps for n in range(a, b + 1)}
    whole = set(range(first, last + 1))
    assert named == whole - found
    assert how_many(gaps) == len(named)
    assert all(a[1] + 1 < b[0] for a, b in itertools.pairwise(gaps))


@given(st.lists(st.lists(st.integers(1, 40), max_size=20), max_size=6), st.integers(1, 10), st.integers(0, 50))
def test_numbers_that_come_in_parts_are_the_same_as_all_at_once(parts, first, last):
    found, every = Found(), [n for part in parts for n in part]
    for part in parts:
        found.add(np.array(part, dtype=np.int64))
    assert (found.counted, len(found), found.lowest) == (len(every), len(set(every)), min(every, default=None))
    assert found.missing(first, last) == those(every).missing(first, last)


@given(st.lists(st.sampled_from(["arrived", "rejected", "dropped", "lost", "waiting"]), max_size=60))
def test_made_is_the_sum_of_what_became_of_it(fates):
    """Fates of numbers 1, 2, …; what waits is above ``settled`` (or nothing is there)."""
    arrived = [n for n, fate in enumerate(fates, 1) if fate == "arrived"]
    counts = {fate: fates.count(fate) for fate in ("rejected", "dropped", "lost", "waiting")}
    settled = next((n - 1 for n, fate in enumerate(fates, 1) if fate == "waiting"), len(fates))
    told = report("b", "s", len(fates), rejected=counts["rejected"], dropped=counts["dropped"], settled=settled)
    below = [n for n in arrived if n <= settled]
    counted = CountedNumbers(settled, 0, len(below), 0, 0, those(below).missing(1, settled))
    account = account_of(told, counted, 1, max(arrived, default=0), len(arrived) - len(below), current=True)
    assert account.made == len(fates)
    parts = (account.arrived, account.rejected, account.dropped, account.waiting, account.unexplained)
    assert sum(parts) == account.made
    assert account.unexplained <= counts["lost"]
    if not counts["waiting"]:
        assert account.unexplained == counts["lost"]
        assert account.lacks(100, 10.0) == bool(counts["lost"] or counts["rejected"] or counts["dropped"])


def test_what_waits_lacks_only_when_it_waits_too_long():
    told = report("b", "s", 10, settled=8)
    account = account_of(told, CountedNumbers(8, 0, 8, 0, 0, ()), 1, 8, 0, current=True)
    assert (account.waiting, account.unexplained) == (2, 0)
    assert [account.lacks(100 + at * 10**9, 60.0) for at in (1, 59, 61)] == [False, False, True]


def test_boots_belong_to_the_spool_that_told_of_them_or_where_their_numbers_fit():
    reports = {"b1": report("b1", "old", 500), "b3": report("b3", "old", 900), "c1": report("c1", "new", 60)}
    boots = {"b1": BootCount(500, 1, 500), "b3": BootCount(200, 701, 900), "c1": BootCount(60, 1, 60)}
    # These told nothing; b2 is between b1 and b3 of the old card, and above all of the new one's.
    boots |= {"b2": BootCount(200, 501, 700), "x": BootCount(40, 20, 60)}
    of = {spool: sorted(names) for spool, names in spools_of(boots, reports).items()}
    assert of == {"old": ["b1", "b3"], "new": ["c1"], None: ["b2", "x"]}
    del reports["c1"], boots["c1"]
    assert {s: sorted(n) for s, n in spools_of(boots, reports).items()} == {"old": ["b1", "b2", "b3"], None: ["x"]}
    assert spools_of(boots, {}) == {None: ["b1", "b3", "b2", "x"]}
    untold = account_unreported("probe-1", [boots["x"]])
    assert (untold.arrived, untold.made, untold.lacks(0, 1.0)) == (40, None, False)


def test_a_report_of_another_version_is_none():
    for more in ({"spool": 3}, {"spool": "a", "first": 1}, {"spool": "a", "first": "1", "made": 1, "sent": 1}):
        assert report_of("p", "b", 1, more) is None, more
