"""Read what can still be read of a damaged file of the spool, and what its counts must then have been."""

from __future__ import annotations

import sqlite3
from collections import deque
from contextlib import closing, suppress
from pathlib import Path

from tandem.spool.counts import Tally
from tandem.spool.dayfile import Row
from tandem.spool.errors import DamagedError

_QUERY = "SELECT id, records, kept, written_utc_ns, body FROM blob WHERE id > ? AND id < ? ORDER BY id {}"
_STEPS = 100_000
_ROUNDS = 2_000
"""SQLite's steps after which a scan of a damaged tree, whose pages may name each other in circles, is given up: a day has a tenth."""

_SEEKS = 400
"""Places at which a tree is entered anew behind a damaged page."""

_END = 2**62


def salvage(path: Path, first: int, top: int | None) -> tuple[list[Row], Tally | None]:
    """The whole blobs in ``path`` by number, and its counts when they are readable. Never raises for the file's content.

    A damaged page stops a scan, so what lies between is entered from both ends, and in the middle of what is left, again and again; blobs
    whose checksum fails are left out, and so are those whose numbers are not between ``first`` and the counts' last, or ``top`` where
    those are unreadable (None: without end).
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        rounds = iter(range(_ROUNDS))
        db.set_progress_handler(lambda: next(rounds, None) is None, _STEPS)
        tally = _counts(db, first)
        if tally is not None:
            top = tally.last
        rows: dict[int, Row] = {}
        gaps = deque([(first - 1, _END if top is None else top + 1)])
        for _ in range(_SEEKS):
            if not gaps:
                break
            low, high = gaps.popleft()
            low, whole = _scan(db, rows, low, high, "ASC")
            if not whole:
                high, whole = _scan(db, rows, low, high, "DESC")
            if not whole and high - low > 2 and high != _END:
                gaps += [(low, (low + high) // 2), ((low + high) // 2, high)]
    return _apart([row for row in rows.values() if top is None or row.id + row.records - 1 <= top]), tally


def _scan(db: sqlite3.Connection, rows: dict[int, Row], low: int, high: int, order: str) -> tuple[int, bool]:
    """Read between the numbers ``low`` and ``high``; the last number reached, and whether all between was there to be read."""
    reached = low if order == "ASC" else high
    with suppress(sqlite3.Error, OverflowError, UnicodeDecodeError):  # the damage
        for found in db.execute(_QUERY.format(order), (low, high)):
            row = _whole(*found)
            if row is None:
                continue
            if not (reached < row.id < high if order == "ASC" else low < row.id < reached):
                return reached, False  # the tree is out of order: the scan runs in circles
            reached = row.id
            rows[row.id] = row
        return reached, True
    return reached, False


def _counts(db: sqlite3.Connection, first: int) -> Tally | None:
    try:
        tally = Tally.of_rows(db.execute("SELECT name, value FROM count").fetchall())
    except (sqlite3.Error, ValueError, OverflowError):
        return None
    return tally if tally.first == first and tally.last >= first - 1 and tally.pending >= 0 else None


def _whole(i: object, n: object, kept: object, written: object, body: object) -> Row | None:
    if not (type(i) is int and type(n) is int and type(written) is int and isinstance(body, bytes)):
        return None
    row = Row(i, n, bool(kept), written, body)
    try:
        row.items()
    except DamagedError:
        return None
    return row


def _apart(rows: list[Row]) -> list[Row]:
    """In order, without those whose numbers another has already."""
    kept: list[Row] = []
    for row in sorted(rows, key=lambda row: row.id):
        if not kept or row.id >= kept[-1].id + kept[-1].records:
            kept.append(row)
    return kept


def reckon(first: int, rows: list[Row], tally: Tally | None, top: int, elsewhere: int) -> tuple[Tally, int]:
    """The counts of a damaged file of which ``rows`` are left, and how many records are lost.

    ``tally``: its counts where they are readable; ``top``: else the highest number that can have been in it; ``elsewhere``: records
    that the caller has in memory or has settled, which are not lost.
    """
    highest = max((row.id + row.records - 1 for row in rows), default=first - 1)
    if tally is None:
        # Nobody can tell what was sent; no number given out may be given out again.
        told = Tally(first, max(highest, top, first - 1))
    else:
        told = tally.copy()
        told.last = max(told.last, highest)
    return told, told.hold(sum(row.records for row in rows) + elsewhere)
