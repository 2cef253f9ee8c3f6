"""Read what can still be read of a damaged file of the spool."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tandem.spool.blob import BlobError, unpack
from tandem.spool.counts import Tally
from tandem.spool.dayfile import Row

_QUERY = "SELECT id, records, kept, written_utc_ns, body FROM blob WHERE id {} ? ORDER BY id {}"


def salvage(path: Path) -> tuple[list[Row], Tally | None]:
    """The whole blobs in ``path`` by number, and its counts when they are readable. Never raises for the file's content.

    A damaged page stops a scan, so it is read from both ends; blobs whose checksum fails are left out.
    """
    rows: dict[int, Row] = {}
    tally: Tally | None = None
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for query, start in ((_QUERY.format(">", "ASC"), -1), (_QUERY.format("<", "DESC"), 2**62)):
            try:
                for i, n, kept, written, body in db.execute(query, (start,)):
                    if i in rows:
                        break
                    row = _whole(i, n, kept, written, body)
                    if row is not None:
                        rows[i] = row
            except (sqlite3.Error, OverflowError, UnicodeDecodeError):
                continue  # this direction ends at the damage
        try:
            tally = Tally.of_rows(db.execute("SELECT name, value FROM count").fetchall())
        except (sqlite3.Error, KeyError, TypeError, ValueError):
            tally = None
    return sorted(rows.values(), key=lambda row: row.id), tally


def _whole(i: object, n: object, kept: object, written: object, body: object) -> Row | None:
    if not (isinstance(i, int) and isinstance(written, int) and isinstance(body, bytes)):
        return None
    try:
        items = unpack(body)
    except BlobError:
        return None
    if not items or items[0].seq != i or len(items) != n:
        return None
    return Row(i, len(items), bool(kept), written, body)
