"""The difference between two successive polls of one modem, which the published rule is made of; signal drops."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.mobility.levels import family
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

INSTEAD = {"rsrp_dbm": "rscp_dbm"}
"""On 3G the pilot's level is RSCP; never compared with RSRP, since the radio technology changed in between."""


@dataclass(frozen=True, slots=True)
class Change:
    """``change_db`` of ``quantity`` in the poll at ``monotonic_ns`` against the one before it, on ``path``."""

    path: str
    operator: str | None
    monotonic_ns: int
    change_db: float
    quantity: str


@dataclass(frozen=True, slots=True)
class _Value:
    monotonic_ns: int
    level_db: float
    of: tuple[str, str | None]


class Changes:
    """Remembers the last level of each path.

    No change is told when the polls are further apart than ``successive_ns``, when the radio technology changed in between
    (its levels measure something else; LTE with and without a 5G carrier is one), or for a stale poll, which says nothing about
    now. A poll without the quantity is passed over.
    """

    def __init__(self, quantity: str, successive_ns: int) -> None:
        self._quantity = quantity
        self._successive_ns = successive_ns
        self._last: dict[str, _Value] = {}

    def feed(self, record: Record) -> Change | None:
        """The change that this record shows; None when it shows none."""
        quantity = self._quantity if self._quantity in record.fields else INSTEAD.get(self._quantity, self._quantity)
        level = record.fields.get(quantity)
        path = record.tags.get("path")
        if record.measurement != "radio" or path is None or record.fields.get("stale") is True:
            return None
        if not isinstance(level, (int, float)):
            return None
        before = self._last.get(path)
        now = _Value(record.monotonic_ns, float(level), (quantity, family(record.tags.get("rat"))))
        if before is not None and now.monotonic_ns <= before.monotonic_ns:
            return None  # told twice, or out of order within one modem: not a later poll
        self._last[path] = now
        if before is None or before.of != now.of or now.monotonic_ns - before.monotonic_ns > self._successive_ns:
            return None
        change_db = round(now.level_db - before.level_db, 3)
        return Change(path, record.tags.get("operator"), now.monotonic_ns, change_db, quantity)


class SignalDropDetector:
    """A ``signal_drop`` for every change of −``threshold_db`` or less, which Mohan et al. (section 4) find to matter; ``change_db`` is
    negative. Each path on its own."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changes = Changes(settings.quantity, settings.successive_ns)

    def feed(self, record: Record) -> list[Record]:
        """The event that this record shows, if any."""
        change = self._changes.feed(record)
        if change is None or change.change_db > -self._settings.threshold_db:
            return []
        return [
            Record.make(
                "event",
                {"kind": "signal_drop", "path": change.path, "operator": change.operator},
                {"quantity": change.quantity, "change_db": change.change_db},
                change.monotonic_ns,
            )
        ]
