"""Cells and losses that a modem tells between two polls: each event at its own time, and once. Time is in the records."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Unsolicited
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.poll import registration_record
from tandem.schema.record import Record

A, B, C = 0x5A2C301, 0x5A2C302, 0x6B00001


def poll(at_s: float, eci: int | None, state: str = "idle", rat: str | None = "LTE", **more: Any) -> Record:
    fields = {"state": state, "eci": eci, "rsrp_dbm": -95.0, **more}
    return Record.make("radio", {"path": "a", "operator": "A", "rat": rat}, fields, round(at_s * 1e9))


def told(at_s: float, line: str) -> Record:
    record = registration_record("a", "A", Unsolicited(line, round(at_s * 1e9)))
    assert record is not None, line
    return record


def cell(eci: int) -> str:
    return f'+CEREG: 1,"1A2B","{eci:08X}",7'


def play(records: list[Record]) -> list[tuple[str, float]]:
    """Kind and time of the events, with ticks once a second as the collector has them."""
    detectors = Detectors(Settings())
    events = [event for record in records for event in detectors.feed(record)]
    for at_s in range(9):
        events += detectors.tick(at_s * 10**9)
    return [(event.tags["kind"], event.monotonic_ns / 1e9) for event in events]


HANDOVERS: dict[str, tuple[list[Record], list[float]]] = {
    "told between two polls: at that time, and the next polls count it no more": (
        [poll(1, A), told(1.4, cell(B)), poll(2, B), poll(3, B)], [1.4],
    ),
    "each of several between two polls": ([poll(1, A), told(1.2, cell(B)), told(1.7, cell(C)), poll(2, C)], [1.2, 1.7]),
    "a report held back until after the poll that showed the cell": ([poll(1, A), poll(2, B), told(2.3, cell(B)), poll(3, B)], [2.0]),
    "a poll that began before the report does not undo it": ([poll(1, A), told(2.02, cell(B)), poll(2, A), poll(3, B)], [2.02]),
    "a modem that still answers with the cell it left went nowhere": (
        [poll(1, A), told(1.9, cell(B)), poll(2, A), poll(3, A), poll(4, B)], [1.9],
    ),
    "until it stays there": ([poll(1, A), told(1.9, cell(B)), *(poll(s, A) for s in range(2, 8))], [1.9, 5.0]),
    "a way back that is told counts": ([poll(1, A), told(1.2, cell(B)), told(1.6, cell(A)), poll(2, A)], [1.2, 1.6]),
    "two lines of one read": ([poll(1, A), told(1.3, f'+CREG: 1,"1A2B","{B:08X}",7'), told(1.3, cell(B))], [1.3]),
}  # fmt: skip
LOST = poll(2, None, "searching", None)
SERVICE: dict[str, tuple[list[Record], list[tuple[str, float]]]] = {
    "lines of one read all count": ([poll(1, A), told(1.3, "+CREG: 2"), told(1.3, "+CEREG: 2"), LOST], [("service_lost", 1.3)]),
    "a loss that a poll confirms": ([poll(1, A), told(1.3, "+CEREG: 2"), LOST], [("service_lost", 1.3)]),
    "a loss that time confirms": ([poll(1, A), told(1.3, "+CEREG: 2")], [("service_lost", 1.3)]),
    "back once, at the time it was told": (
        [poll(1, A), told(1.3, "+CEREG: 0"), poll(2, None, "no_service", None), told(2.4, cell(A)), poll(3, A)],
        [("service_lost", 1.3), ("service_back", 2.4)],
    ),
    "a short loss between two polls, from its reports alone": (
        [poll(1, A), told(1.3, "+CEREG: 2"), told(1.6, cell(A)), poll(2, A)], [("service_lost", 1.3), ("service_back", 1.6)],
    ),
    "LTE ends on the way to 3G, by a poll": ([poll(1, A), told(1.3, "+CEREG: 0"), poll(2, None, "idle", "WCDMA", ci=0xABC1234)], []),
    "LTE ends on the way to 3G, by a report": (
        [poll(1, A), told(1.3, "+CEREG: 0"), told(1.6, '+CREG: 1,"0007","0ABC1234",2')], [],
    ),
    "a data SIM is never registered for calls": ([poll(1, A), told(1.3, "+CREG: 3"), poll(2, A)], []),
    "polls alone tell loss and return, a silent modem neither": (
        [poll(1, A), poll(2, None, "no_answer", None), poll(3, None, "searching", None), poll(4, None, "limited", None), poll(5, A)],
        [("service_lost", 3.0), ("service_back", 5.0)],
    ),
    "what never had service lost none": ([poll(1, None, "searching", None), poll(2, A)], []),
}  # fmt: skip


def test_each_handover_loss_and_return_is_told_once_at_its_time():
    expected = {
        name: (row, [("handover", at_s) for at_s in times]) for name, (row, times) in HANDOVERS.items()
    } | SERVICE
    assert {name: found for name, (row, events) in expected.items() if (found := play(row)) != events} == {}


@given(st.text(max_size=60) | st.from_regex(r'\+C(E|5G|G)?REG: ?[0-9]{1,2}(,"?[0-9A-Fa-f]{0,12}"?){0,5}'))
def test_any_line_gives_a_good_record_or_none(line):
    record = registration_record("a", None, Unsolicited(line, 5))
    assert record is None or (record.monotonic_ns == 5 and "registered" in record.fields)


def test_an_area_that_no_network_has_makes_a_line_garbled():
    assert registration_record("a", "A", Unsolicited('+CREG: 1,"FFFFFFF","5A2C30B",7', 5)) is None
