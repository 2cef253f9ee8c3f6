"""The difference between two successive polls of one modem: what mobility and signal drops are made of."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.record import Record


@dataclass(frozen=True, slots=True)
class Change:
    """``change_db`` of the poll at ``monotonic_ns`` against the one before it, on ``path``."""

    path: str
    operator: str | None
    monotonic_ns: int
    change_db: float


@dataclass(frozen=True, slots=True)
class _Value:
    monotonic_ns: int
    level_db: float
    rat: str | None


class Changes:
    """Remembers the last level of each path.

    No change is told when the polls are further apart than ``successive_ns``, when the radio technology changed in between
    (its levels measure something else), or for a stale poll, which says nothing about now. A poll without the quantity is
    passed over.
    """

    def __init__(self, quantity: str, successive_ns: int) -> None:
        self._quantity = quantity
        self._successive_ns = successive_ns
        self._last: dict[str, _Value] = {}

    def feed(self, record: Record) -> Change | None:
        """The change that this record shows; None when it shows none."""
        level = record.fields.get(self._quantity)
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None or record.fields.get("stale") is True:
            return None
        if not isinstance(level, (int, float)):
            return None
        before = self._last.get(path)
        now = _Value(record.monotonic_ns, float(level), record.tags.get("rat"))
        if before is not None and now.monotonic_ns <= before.monotonic_ns:
            return None  # told twice, or out of order within one modem: not a later poll
        self._last[path] = now
        if before is None or before.rat != now.rat or now.monotonic_ns - before.monotonic_ns > self._successive_ns:
            return None
        return Change(path, record.tags.get("operator"), now.monotonic_ns, round(now.level_db - before.level_db, 3))
