"""Does a modem repeat itself? Some firmware answers on and on with the last values it had. So does a modem that lies still: staleness is a
flag in the record, and nothing is done to a modem for it."""

from __future__ import annotations

from collections.abc import Hashable

from tandem.modem.base import Reading

FLOOR_S = 60.0
"""An answer that repeats for less than this is never called stale: a kit that lies still may well read the same for a while."""

_UNSERVED = ("searching", "limited", "no_service")
_FINE = ("rsrp_dbm", "rsrq_db", "sinr_db", "rscp_dbm", "ecno_db", "nr_rsrp_dbm", "nr_rsrq_db", "nr_sinr_db")


class Staleness:
    """Tells an answer stale when it repeats for longer than this modem ever did before it answered something new."""

    def __init__(self, floor_s: float = FLOOR_S) -> None:
        self._longest_ns = int(floor_s * 1e9)
        self._answer: Hashable = None
        self._since_ns = 0
        self._last_ns = 0

    def feed(self, answer: Hashable, reading: Reading | None, monotonic_ns: int) -> bool:
        """Whether ``answer``, read at ``monotonic_ns``, is stale. A new answer teaches how long the old one was repeated. One of a modem
        without service, or whose ``reading`` has no fine level, never is: the steps of +CSQ stay the same for hours."""
        served = reading is not None and reading.state not in _UNSERVED
        if not served or not any(getattr(reading, level) is not None for level in _FINE):
            self.forget()
            return False
        if answer != self._answer:
            if self._answer is not None:
                self._longest_ns = max(self._longest_ns, self._last_ns - self._since_ns)
            self._answer = answer
            self._since_ns = monotonic_ns
        self._last_ns = monotonic_ns
        return monotonic_ns - self._since_ns > self._longest_ns

    def forget(self) -> None:
        """The modem came back: what it said before does not count."""
        self._answer = None
