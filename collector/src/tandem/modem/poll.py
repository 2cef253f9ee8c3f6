"""One poll of one modem, and the record that it becomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tandem.modem.base import Reading
from tandem.schema.metrics import RADIO
from tandem.schema.record import Record, RecordError, Value, check

NO_ANSWER = "no_answer"
PORT_LOST = "port_lost"


@dataclass(frozen=True)
class Poll:
    """What one poll did. Times are CLOCK_MONOTONIC nanoseconds.

    ``failure``: None, ``no_answer``, ``port_lost``, or the error that every command of the poll got (``cme_error 10`` …), of a web
    server by its family's name (``login_needed``, ``busy`` …; ``web_faults``).
    ``skipped``: due times passed over since the poll before, because it (or setting up the modem) took too long.
    ``stale``: see ``tandem.modem.staleness``.
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
        """How long after its due time the poll began."""
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
    told = {name: value for name, value in reading.as_fields().items() if value is not None}
    if not told or _allowed(told):
        return reading, ()
    wrong = {name for name, value in told.items() if not _allowed({name: value})}
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
