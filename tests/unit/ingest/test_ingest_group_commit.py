"""Many requests in one write: each is told of its own lines, and only after they are stored."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.ingest.budget import Budget, Busy
from tandem_server.ingest.group_commit import GroupCommit
from tandem_server.store import LinesRefused, Rejected, StoreDown


class Writes:
    """A database that takes what is not bad, and holds its writes back until it is let."""

    def __init__(self):
        self.stored, self.calls, self.begun, self.let = [], [], threading.Event(), threading.Event()
        self.down = self.blames = False
        self.let.set()

    def write(self, lines, **_):
        self.begun.set()
        self.let.wait()
        self.calls.append(list(lines))
        if self.down:
            raise StoreDown("away")
        if any(line == "odd" for line in lines):
            raise LinesRefused("says not which")
        self.stored += [line for line in lines if not line.startswith("bad")]
        return [Rejected(i, f"why {line}") for i, line in enumerate(lines) if line.startswith("bad")]


def together(commit, requests):
    async def run():
        asked = (commit.store(f"probe-{i}", lines, sum(map(len, lines))) for i, lines in enumerate(requests))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(run())


LINES = st.lists(st.sampled_from(["good-1", "good-2", "bad-1", "bad-2"]), max_size=4)


@given(st.lists(LINES, max_size=12), st.integers(1, 60))
def test_each_is_told_of_its_own_lines(requests, most_bytes):
    database = Writes()
    answers = together(GroupCommit(database.write, wait_s=0.0, most_bytes=most_bytes), requests)
    for lines, rejected in zip(requests, answers, strict=True):
        assert [(one.index, one.reason) for one in rejected] == [
            (i, f"why {x}") for i, x in enumerate(lines) if x[0] == "b"
        ]
    assert sorted(database.stored) == sorted(x for lines in requests for x in lines if x[0] == "g")
    for call in database.calls:
        assert sum(map(len, call)) <= most_bytes or call in requests


def test_they_go_together():
    database = Writes()
    assert together(GroupCommit(database.write), [["a"], ["b"], ["c"]]) == [[], [], []]
    assert database.calls == [["a", "b", "c"]]


def test_nobody_is_told_before_the_write_has_ended():
    database = Writes()
    database.let.clear()

    async def run():
        commit = GroupCommit(database.write, wait_s=0.0, writers=1)
        first = asyncio.ensure_future(commit.store("one", ["a"], 1))
        await asyncio.to_thread(database.begun.wait, 60)
        second = asyncio.ensure_future(commit.store("two", ["b"], 1))
        await asyncio.sleep(0.02)
        assert not first.done()
        assert not second.done()
        database.let.set()
        assert await asyncio.gather(first, second) == [[], []]

    asyncio.run(run())
    assert database.calls == [["a"], ["b"]]


def test_lines_of_one_that_the_database_blames_without_a_name_cost_the_others_nothing():
    database = Writes()
    answers = together(GroupCommit(database.write), [["a"], ["b", "odd"], ["c", "bad"]])
    assert answers[0] == []
    assert isinstance(answers[1], LinesRefused)
    assert answers[2] == [Rejected(1, "why bad")]
    assert sorted(database.stored) == ["a", "c"]


def test_while_the_database_is_away_all_are_told_and_later_all_are_stored():
    database = Writes()
    database.down = True
    commit = GroupCommit(database.write, most_bytes=2)
    assert all(isinstance(one, StoreDown) for one in together(commit, [["a"], ["b"], ["c"], ["d"]]))
    database.down = False
    assert together(commit, [["a"], ["b"], ["c"], ["d"]]) == [[], [], [], []]
    assert sorted(database.stored) == ["a", "b", "c", "d"]


def test_a_budget_is_never_exceeded_and_always_given_back():
    budget = Budget(100)
    with budget.share() as one, budget.share() as two:
        one.take(60)
        two.take(40)
        with pytest.raises(Busy):
            one.take(1)
        assert budget.held == 100
    assert budget.held == 0
