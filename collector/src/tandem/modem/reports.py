"""What a modem says unasked of its registration, as a record: a handover or a loss of service between two polls. Pure."""

from __future__ import annotations

from tandem.at.grammar import prefix
from tandem.at.unsolicited import Unsolicited
from tandem.modem.registration import registration
from tandem.schema.record import Record, RecordError, Value

DOMAINS = {"+CREG": "cs", "+CGREG": "ps", "+CEREG": "eps", "+C5GREG": "5gs"}
"""3GPP TS 27.007 clauses 7.2, 10.1.20, 10.1.22, 10.1.47."""

WANTED = ("AT+CEREG=2", "AT+C5GREG=2")
"""Sent at each set-up unless the family sends them itself: without them nothing is said unasked of LTE's and 5G's cells. A modem that
does not know the second refuses it, which is no fault. +CREG is left as the family has it: on LTE it says the same once more."""


def registration_record(path: str, operator: str | None, told: Unsolicited) -> Record | None:
    """The ``registration`` record of one unsolicited line, at the time when it was read; None when the line is another one, cannot be
    read, or names what no network has."""
    name = prefix(told.line)
    if name not in DOMAINS:
        return None
    found = registration([told.line], name)
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
        return Record.make("registration", tags, fields, told.monotonic_ns)
    except RecordError:
        return None  # an area or a cell beyond what 3GPP allows: a garbled line
