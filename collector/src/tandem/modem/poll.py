"""One poll of one modem and the record that it becomes; a registration reported unasked; an answer that only repeats itself."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from tandem.at.dialogue import Unsolicited
from tandem.at.grammar import prefix
from tandem.modem.base import Reading
from tandem.modem.ts27007 import registration
from tandem.schema.metrics import RADIO
from tandem.schema.record import Record, RecordError, Value, check

NO_ANSWER = "no_answer"
PORT_LOST = "port_lost"


@dataclass(frozen=True)
class Poll:
    """What one poll did. Times are CLOCK_MONOTONIC nanoseconds.

    ``failure``: None, ``no_answer``, ``port_lost``, or the error that every command of the poll got (``cme_error 10`` …), of a web
    server by its family's name (``login_needed``, ``busy`` …; ``web``).
    ``skipped``: due times passed over since the poll before, because it (or setting up the modem) took too long.
    ``stale``: see ``tandem.modem.poll``.
    """

    path: str
    operator: str | None
    driver: str | None
    model: str | None
    due_monotonic_ns: int
    began_monotonic_ns: int
    ended_monotonic_ns: int
    reading: Reading | None
    failure: str | None
    stale: bool = False
    skipped: int = 0

    @property
    def late_ms(self) -> float:
        return max(0, self.began_monotonic_ns - self.due_monotonic_ns) / 1e6

    @property
    def duration_ms(self) -> float:
        """From the first byte sent to the last final result, or to giving up."""
        return (self.ended_monotonic_ns - self.began_monotonic_ns) / 1e6

    @property
    def state(self) -> str:
        """One of ``schema.metrics.RADIO_STATES``."""
        if self.failure in (NO_ANSWER, PORT_LOST):
            return self.failure
        if self.failure == "cme_error 30":  # no network service, 27.007 clause 9.2.1
            return "no_service"
        return self.reading.state if self.reading is not None else "unknown"

    def record(self) -> Record:
        """The radio record, at the time when its answer began to be true."""
        fields: dict[str, Value | None] = {} if self.reading is None else self.reading.as_fields()
        failure = None if self.failure in (NO_ANSWER, PORT_LOST) else self.failure  # those two are the state
        fields.update(failure=failure)
        fields.update(state=self.state, poll_duration_ms=self.duration_ms, poll_late_ms=self.late_ms, stale=self.stale)
        tags = {
            "path": self.path,
            "operator": self.operator,
            "driver": self.driver,
            "rat": None if self.reading is None else self.reading.rat,
        }
        return Record.make("radio", tags, fields, self.began_monotonic_ns)


def in_range(reading: Reading) -> tuple[Reading, tuple[str, ...]]:
    """The reading without the quantities that the schema does not allow, and their names."""
    given = {name: value for name, value in reading.as_fields().items() if value is not None}
    if not given or _allowed(given):
        return reading, ()
    wrong = {name for name, value in given.items() if not _allowed({name: value})}
    known = wrong - {"enb_id", "sector_id"}
    if len(known) < len(wrong):
        known.add("eci")
    absent: dict[str, Any] = dict.fromkeys(known)
    return replace(reading, **absent), tuple(sorted(known))


def _allowed(fields: dict[str, Value]) -> bool:
    try:
        check(RADIO.name, {}, fields)
    except RecordError:
        return False
    return True


# ---------------------------------------------------------------------------------------------------------------------
# What a modem says unasked of its registration, as a record: a handover or a loss of service between two polls. Pure.


DOMAINS = {"+CREG": "cs", "+CGREG": "ps", "+CEREG": "eps", "+C5GREG": "5gs"}
"""3GPP TS 27.007 clauses 7.2, 10.1.20, 10.1.22, 10.1.47."""

WANTED = ("AT+CEREG=2", "AT+C5GREG=2")
"""Sent at each set-up unless the family sends them itself: without them nothing is said unasked of LTE's and 5G's cells. A modem that
does not know the second refuses it, which is no fault. +CREG is left as the family has it: on LTE it says the same once more."""


def registration_record(path: str, operator: str | None, line: Unsolicited) -> Record | None:
    """The ``registration`` record of one unsolicited line, at the time when it was read; None when the line is another one, cannot be
    read, or names what no network has."""
    name = prefix(line.line)
    if name not in DOMAINS:
        return None
    found = registration([line.line], name)
    if not found.known:
        return None
    fields: dict[str, Value | None] = {
        "registered": found.registered,
        "state": None if found.registered else found.state or "unknown",
        "tac": found.tac,
        "eci": found.eci,
        "lac": found.lac,
        "ci": found.ci,
    }
    tags = {"path": path, "operator": operator, "rat": found.rat, "domain": DOMAINS[name]}
    try:
        return Record.make("registration", tags, fields, line.monotonic_ns)
    except RecordError:
        return None  # an area or a cell beyond what 3GPP allows: a garbled line


# ---------------------------------------------------------------------------------------------------------------------
# Does a modem repeat itself? Some firmware answers on and on with the last values it had. So does a modem that lies
# still: staleness is a flag in the record, and nothing is done to a modem for it.


FLOOR_S = 60.0
"""An answer that repeats for less than this is never called stale: a kit that lies still may well read the same for a while."""

_UNSERVED = ("searching", "limited", "no_service")
_FINE = ("rsrp_dbm", "rsrq_db", "sinr_db", "rscp_dbm", "ecno_db", "nr_rsrp_dbm", "nr_rsrq_db", "nr_sinr_db")


class StuckReadingDetector:
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
