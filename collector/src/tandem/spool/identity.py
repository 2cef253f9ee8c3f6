"""``identity.json``: which spool this is. A new card, or an emptied folder, is another one and counts from 1 again; the server's
ledger has to tell them apart."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from tandem.spool.durable import write_durably

_ID = re.compile(r"[0-9a-f]{12}\Z")


@dataclass(frozen=True, slots=True)
class Identity:
    """``first``: the first number that ``id`` holds for; above 1 where a spool got its id (again) when it had numbers already."""

    id: str
    first: int


def identity(folder: Path, last: int) -> Identity:
    """The identity in ``folder``; made where there is none that can be read. ``last``: the last number given out. OSError."""
    path = folder / "identity.json"
    try:
        told = json.loads(path.read_bytes())
        found = Identity(told["id"], told["first"])
        if (
            isinstance(found.id, str)
            and _ID.match(found.id)
            and type(found.first) is int
            and 1 <= found.first <= last + 1
        ):
            return found
    except (FileNotFoundError, ValueError, KeyError, TypeError, RecursionError):
        pass  # none, or a damaged one: what was counted under it stays with it
    made = Identity(os.urandom(6).hex(), last + 1)
    write_durably(path, json.dumps({"id": made.id, "first": made.first}).encode())
    return made
