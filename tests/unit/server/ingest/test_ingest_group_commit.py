"""Many requests in one write: each is told of its own lines, and only after they are stored."""

import asyncio
import sqlite3
import threading

import pytest
from fake_database import FakeDatabase
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.ingest.group_commit import GroupCommit, LateNotes
from tandem_server.registry import LATE_S, late_hours
from tandem_server.store import LinesRefused, Rejected, StoreDown


def together(commit, requests):
    async def run():
        asked = (commit.store(f"probe-{i}", lines, sum(map(len, lines))) for i, lines in enumerate(requests))
        return await asyncio.gather(*asked, return_exceptions=True)

    return asyncio.run(run())


LINES = st.lists(st.sampled_from(["good-1", "good-2", "bad-1", "bad-2"]), max_size=4)


@given(st.lists(LINES, max_size=12), st.integers(1, 60))
def test_each_is_told_of_its_own_lines(requests, most_bytes):
    database = FakeDatabase()
    answers = together(GroupCommit(database.write, wait_s=0.0, most_bytes=most_bytes), requests)
    for lines, rejected in zip(requests, answers, strict=True):
        assert [(one.index, one.reason) for one in rejected] == [
            (i, f"why {x}") for i, x in enumerate(lines) if x[0] == "b"
        ]
    assert sorted(database.lines) == sorted(x for lines in requests for x in lines if x[0] == "g")
    for call in database.calls:
        assert sum(map(len, call)) <= most_bytes or call in requests


def test_requests_go_together_and_one_that_the_database_blames_costs_the_others_nothing():
    database = FakeDatabase()
    assert together(GroupCommit(database.write), [["a"], ["b"], ["c"]]) == [[], [], []]
    assert database.calls == [["a", "b", "c"]]
    database = FakeDatabase()
    first, second, third = together(GroupCommit(database.write), [["a"], ["b", "odd"], ["c", "bad"]])
    assert (first, isinstance(second, LinesRefused), third) == ([], True, [Rejected(1, "why bad")])
    assert sorted(database.lines) == ["a", "c"]
    database = FakeDatabase()
    database.away = True
    commit = GroupCommit(database.write, most_bytes=2)
    assert all(isinstance(one, StoreDown) for one in together(commit, [["a"], ["b"], ["c"], ["d"]]))
    database.away = False
    assert together(commit, [["a"], ["b"], ["c"], ["d"]]) == [[], [], [], []]
    assert sorted(database.lines) == ["a", "b", "c", "d"]


def test_nobody_is_told_before_the_write_has_ended():
    database = FakeDatabase()
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


S = 10**9
NOW = 1_700_003_700 * S  # a hundred seconds into an hour
names = st.sampled_from(["radio", "position", "subflow", "phase", "usage"])
ages_ns = st.integers(-600 * S, 5 * 365 * 86_400 * S)


@given(st.lists(st.tuples(names, ages_ns), max_size=30))
def test_the_hours_of_late_lines_and_of_no_others(made):
    lines = [f'{name},boot=b,probe=p-1 seq=1i,detail="a, b {NOW}" {NOW - age}' for name, age in made]
    expected = {
        ("p-1", name, (NOW - age) // S // 3600 * 3600)
        for name, age in made
        if NOW - age < NOW - LATE_S * S and name != "phase"
    }
    assert late_hours("p-1", lines, NOW) == expected


def radio(utc_ns):
    return f"radio,boot=b,probe=p1 seq=1i {utc_ns}"


class Disk:
    """Stands for the registry's table: keeps what was written, each call by itself."""

    def __init__(self):
        self.calls, self.fails, self.go = [], False, threading.Event()
        self.go.set()

    def note(self, hours, _now):
        self.go.wait()
        if self.fails:
            raise sqlite3.OperationalError("disk I/O error")
        self.calls.append(hours)


OLD = 1_700_000_000 * S


def test_a_note_is_written_before_it_is_told_and_not_again_at_once():
    async def go():
        disk = Disk()
        notes = LateNotes(disk.note)
        disk.fails = True
        with pytest.raises(sqlite3.OperationalError):  # one that fails is told and written the next time
            await notes.note("p1", [radio(OLD)])
        disk.fails = False
        await notes.note("p1", [radio(OLD), radio(OLD + 1)])
        assert disk.calls == [{("p1", "radio", OLD // S // 3600 * 3600)}]
        await notes.note("p1", [radio(OLD + 2)])
        assert len(disk.calls) == 1
        await notes.note("p2", [radio(OLD)])
        await notes.note("p1", [radio(OLD - 7200 * S)])
        assert len(disk.calls) == 3

    asyncio.run(go())


def test_what_comes_while_one_is_written_goes_together_in_the_next():
    async def go():
        disk = Disk()
        notes = LateNotes(disk.note)
        disk.go.clear()
        first = asyncio.create_task(notes.note("p0", [radio(OLD)]))
        await asyncio.sleep(0)
        others = [asyncio.create_task(notes.note(f"p{n}", [radio(OLD)])) for n in range(1, 6)]
        while len(notes._waiting) < 5:
            await asyncio.sleep(0)
        assert not any(one.done() for one in (first, *others))
        disk.go.set()
        await asyncio.gather(first, *others)
        assert sum(map(len, disk.calls)) == 6
        assert len(disk.calls) <= 2

    asyncio.run(go())
