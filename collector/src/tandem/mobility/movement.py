"""Is the probe moving? The published rule: a large change between two successive polls of either modem."""

from __future__ import annotations

from tandem.mobility.changes import Change, Changes
from tandem.mobility.settings import Settings
from tandem.schema.record import Record


class MobilityDetector:
    """``mobility_start`` at the first change of ``threshold_db`` or more up or down, ``mobility_stop`` ``stop_after_s`` after
    the last one.

    The stop carries exactly that instant, and is told one period later at the earliest, so that a change that the other
    modem saw before it and told after it still counts. Starts and stops alternate. Fed by records and, where none may come,
    by ``tick``. The stop belongs to the probe and has no path.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._changes = Changes(settings.quantity, settings.successive_ns)
        self._stop_after_ns = round(settings.stop_after_s * 1e9)
        self._last_change_ns = 0
        self._since_ns: int | None = None

    @property
    def mobile(self) -> bool:
        """The state after all that was fed."""
        return self._since_ns is not None

    @property
    def mobile_since_ns(self) -> int | None:
        """CLOCK_MONOTONIC of the last start; None when not mobile."""
        return self._since_ns

    def feed(self, record: Record) -> list[Record]:
        """The events that this record shows."""
        change = self._changes.feed(record)
        if change is None or abs(change.change_db) < self._settings.threshold_db:
            return self.tick(record.monotonic_ns)
        events: list[Record] = []
        if self.mobile and change.monotonic_ns > self._last_change_ns + self._stop_after_ns:
            events.append(self._stop())
        if not self.mobile:
            events.append(self._start(change))
        self._last_change_ns = max(self._last_change_ns, change.monotonic_ns)
        return events

    def tick(self, monotonic_ns: int) -> list[Record]:
        """Time has come to ``monotonic_ns``: the stop, when it is due."""
        if self.mobile and monotonic_ns >= self._last_change_ns + self._stop_after_ns + self._settings.settle_ns:
            return [self._stop()]
        return []

    def _start(self, change: Change) -> Record:
        self._since_ns = change.monotonic_ns
        return Record.make(
            "event",
            {"kind": "mobility_start", "path": change.path, "operator": change.operator},
            {"detector": "published", "quantity": change.quantity, "change_db": change.change_db},
            change.monotonic_ns,
        )

    def _stop(self) -> Record:
        since_ns, self._since_ns = self._since_ns, None
        stop_ns = self._last_change_ns + self._stop_after_ns
        moved_s = (stop_ns - (since_ns or stop_ns)) / 1e9
        return Record.make(
            "event",
            {"kind": "mobility_stop"},
            {"detector": "published", "quantity": self._settings.quantity, "detail": f"mobile for {moved_s:.1f} s"},
            stop_ns,
        )
