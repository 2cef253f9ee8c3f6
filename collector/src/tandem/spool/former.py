"""Takes over a spool of the format before this one: daily files ``NUMBER-DAY.sqlite``, ``account.json``, ``identity.json``. Its records
keep their numbers and the spool its id, so the server sees no change."""

from __future__ import annotations

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from tandem.spool.database import SUFFIXES, Counts, Identity, make

_DAY = re.compile(r"[0-9]{12}-[0-9]{8}(-[0-9]{1,6})?\.sqlite\Z")


def daily_files(folder: Path) -> list[Path]:
    """Those of the former format, in the order of their numbers."""
    return sorted(path for path in folder.glob("*.sqlite") if _DAY.match(path.name))


def former_files(folder: Path) -> list[Path]:
    """All that the former format has and this one has not."""
    daily = [file.with_name(file.name + suffix) for file in daily_files(folder) for suffix in SUFFIXES]
    return [*daily, *(folder / name for name in ("account.json", "account.copy.json", "identity.json"))]


def take_over(folder: Path, path: Path) -> Counts:
    """Make ``path`` of what the former files in ``folder`` hold; its counts. They stay where they are, so that a power cut loses nothing.
    What counts as neither sent nor rejected and is in no file counts as dropped. sqlite3.Error, OSError, ValueError, KeyError or TypeError
    when they cannot be read, or the disk takes nothing."""
    account = json.loads((folder / "account.json").read_bytes())
    identity = json.loads((folder / "identity.json").read_bytes())
    files = [file for file in daily_files(folder) if file.name not in account["gone"]]
    totals, last, pending = Counter[str](account["folded"]), int(account["folded"]["last"]), 0
    for file in files:
        with closing(sqlite3.connect(file)) as db:
            counted = dict(db.execute("SELECT name, value FROM count"))
            pending += db.execute("SELECT total(records) FROM blob").fetchone()[0]
        totals.update(counted)
        last = max(last, counted["last"])
    made = {name.removeprefix("made."): count for name, count in totals.items() if name.startswith("made.")}
    dropped = last - totals["sent"] - totals["rejected"] - int(pending)
    if dropped < 0:
        raise ValueError("its counts are not those of its records")
    counts = Counts(last, totals["sent"], totals["rejected"], dropped, made)
    make(path, Identity(identity["id"], identity["first"]), counts, _bodies(files))
    return counts


def _bodies(files: list[Path]) -> Iterator[tuple[int, int, int, bytes]]:
    for file in files:
        with closing(sqlite3.connect(file)) as db:
            yield from db.execute("SELECT id, records, kept, body FROM blob ORDER BY id")
