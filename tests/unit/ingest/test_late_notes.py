"""Which lines are late, and that their hours are on the disk before anyone is answered."""

import asyncio
import sqlite3
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.ingest.late_notes import LATE_S, LateNotes, late_hours

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


def test_a_note_that_fails_is_told_and_written_the_next_time():
    async def go():
        disk = Disk()
        notes = LateNotes(disk.note)
        disk.fails = True
        with pytest.raises(sqlite3.OperationalError):
            await notes.note("p1", [radio(OLD)])
        disk.fails = False
        await notes.note("p1", [radio(OLD)])
        assert len(disk.calls) == 1

    asyncio.run(go())
