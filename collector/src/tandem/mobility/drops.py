"""Signal drops: the falls between two successive polls that Mohan et al. (section 4) find to matter, with their sizes."""

from __future__ import annotations

from tandem.mobility.changes import Changes
from tandem.mobility.settings import Settings
from tandem.schema.record import Record


class SignalDropDetector:
    """A ``signal_drop`` for every change of −``threshold_db`` or less; ``change_db`` is negative. Each path on its own."""

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
