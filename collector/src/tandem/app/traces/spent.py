"""What uploads cost each metered path, by day, kept across restarts. Noted before it is spent, so that no crash makes it forgotten."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

FORMAT = "tandem-uploads/1"
_DAYS = 2
"""How many are remembered."""


class Spent:
    """``file``: where it is kept. For one thread; ``of`` from any."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._days = _read(file)
        self._reserved: dict[str, tuple[str, int]] = {}

    def of(self, path: str, day: str) -> int:
        """Bytes of a day (UTC, ``2026-11-21``), without what is reserved just now."""
        return self._days.get(day, {}).get(path, 0)

    def reserve(self, path: str, day: str, count: int) -> None:
        """``count`` bytes are about to go. OSError when the disk takes no note of it: then nothing may go."""
        self._write(path, day, count)
        self._reserved[path] = (day, count)

    def settle(self, path: str, used: int) -> None:
        """So many went. A disk that does not take it leaves what was reserved, which is more."""
        day, count = self._reserved.pop(path)
        row = self._days.setdefault(day, {})
        try:
            self._write(path, day, used)
            row[path] = row.get(path, 0) + used
        except OSError as error:
            row[path] = row.get(path, 0) + max(count, used)
            log.error("%s: %s; mend: free disk space", self._file, error.strerror)

    def _write(self, path: str, day: str, more: int) -> None:
        days = {name: dict(row) for name, row in sorted(self._days.items())[-_DAYS:]}
        row = days.setdefault(day, {})
        row[path] = row.get(path, 0) + more
        self._file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(self._file, (json.dumps({"format": FORMAT, "days": days}) + "\n").encode())


def _read(file: Path) -> dict[str, dict[str, int]]:
    try:
        return parse(file.read_text())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        log.error("%s: %s; the account of uploads begins anew", file, error)
        return {}


def parse(text: str) -> dict[str, dict[str, int]]:
    """Bytes by day and path; ValueError when that is not what it says."""
    told: Any = json.loads(text)
    days = told.get("days") if isinstance(told, dict) and told.get("format") == FORMAT else None
    if not isinstance(days, dict):
        raise ValueError(f"no {FORMAT}")
    for row in days.values():
        if not isinstance(row, dict) or any(type(count) is not int or count < 0 for count in row.values()):
            raise ValueError("a day that is none")
    return days
