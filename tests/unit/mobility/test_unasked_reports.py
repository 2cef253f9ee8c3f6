"""Cells and losses that a modem tells between two polls: each event at its own time, and once. Time is in the records."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.unsolicited import Unsolicited
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.reports import registration_record
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


def play(records: list[Record], until_s: float | None = None) -> list[tuple[str, float]]:
    """Kind and time of the events, with ticks once a second as the collector has them."""
    detectors = Detectors(Settings())
    events = [event for record in records for event in detectors.feed(record)]
    for at_s in range(int(until_s or 0)):
        events += detectors.tick(at_s * 10**9)
    return [(event.tags["kind"], event.monotonic_ns / 1e9) for event in events]


def test_a_cell_told_between_two_polls_is_a_handover_at_that_time_and_the_next_polls_count_it_no_more() -> None:
    events = play([poll(1, A), told(1.4, cell(B)), poll(2, B), poll(3, B)])
    assert events == [("handover", 1.4)]


def test_each_of_several_handovers_between_two_polls_is_told() -> None:
    assert play([poll(1, A), told(1.2, cell(B)), told(1.7, cell(C)), poll(2, C)]) == [
        ("handover", 1.2),
        ("handover", 1.7),
    ]


def test_a_report_held_back_until_after_the_poll_that_showed_the_cell_tells_nothing_more() -> None:
    assert play([poll(1, A), poll(2, B), told(2.3, cell(B)), poll(3, B)]) == [("handover", 2.0)]


def test_a_poll_that_began_before_the_report_does_not_undo_it() -> None:
    assert play([poll(1, A), told(2.02, cell(B)), poll(2, A), poll(3, B)]) == [("handover", 2.02)]


def test_a_modem_that_still_answers_with_the_cell_it_left_went_nowhere_until_it_stays_there() -> None:
    assert play([poll(1, A), told(1.9, cell(B)), poll(2, A), poll(3, A), poll(4, B)]) == [("handover", 1.9)]
    back = [poll(1, A), told(1.9, cell(B)), *(poll(s, A) for s in range(2, 8))]
    assert play(back) == [("handover", 1.9), ("handover", 5.0)]


def test_a_way_back_that_is_told_counts() -> None:
    assert play([poll(1, A), told(1.2, cell(B)), told(1.6, cell(A)), poll(2, A)]) == [
        ("handover", 1.2),
        ("handover", 1.6),
    ]


def test_lines_that_came_by_one_read_all_count() -> None:
    row = [poll(1, A), told(1.3, "+CREG: 2"), told(1.3, "+CEREG: 2"), poll(2, None, "searching", None)]
    assert play(row) == [("service_lost", 1.3)]
    assert play([poll(1, A), told(1.3, f'+CREG: 1,"1A2B","{B:08X}",7'), told(1.3, cell(B))]) == [("handover", 1.3)]


@pytest.mark.parametrize("confirmed", [True, False])
def test_a_loss_has_the_time_of_the_report_whether_a_poll_confirms_it_or_time_does(confirmed: bool) -> None:
    polls = [poll(2, None, "searching", None)] if confirmed else []
    events = play([poll(1, A), told(1.3, "+CEREG: 2"), *polls], until_s=6)
    assert events == [("service_lost", 1.3)]


def test_service_comes_back_once_at_the_time_it_was_told() -> None:
    row = [poll(1, A), told(1.3, "+CEREG: 0"), poll(2, None, "no_service", None), told(2.4, cell(A)), poll(3, A)]
    assert play(row, until_s=9) == [("service_lost", 1.3), ("service_back", 2.4)]


def test_a_short_loss_between_two_polls_is_told_from_its_reports_alone() -> None:
    events = play([poll(1, A), told(1.3, "+CEREG: 2"), told(1.6, cell(A)), poll(2, A)], until_s=9)
    assert events == [("service_lost", 1.3), ("service_back", 1.6)]


@pytest.mark.parametrize(
    "next_one",
    [poll(2, None, "idle", "WCDMA", ci=0xABC1234), told(1.6, '+CREG: 1,"0007","0ABC1234",2')],
    ids=["poll", "report"],
)
def test_the_end_of_the_registration_with_lte_on_the_way_to_3g_is_no_loss(next_one: Record) -> None:
    assert play([poll(1, A), told(1.3, "+CEREG: 0"), next_one], until_s=9) == []


def test_a_data_sim_that_is_never_registered_for_calls_has_service() -> None:
    assert play([poll(1, A), told(1.3, "+CREG: 3"), poll(2, A)], until_s=9) == []


def test_polls_alone_tell_loss_and_return_too_and_a_silent_modem_neither() -> None:
    row = [
        poll(1, A),
        poll(2, None, "no_answer", None),
        poll(3, None, "searching", None),
        poll(4, None, "limited", None),
    ]
    assert play([*row, poll(5, A)], until_s=9) == [("service_lost", 3.0), ("service_back", 5.0)]
    assert play([poll(1, None, "searching", None), poll(2, A)], until_s=9) == []


@given(st.text(max_size=60) | st.from_regex(r'\+C(E|5G|G)?REG: ?[0-9]{1,2}(,"?[0-9A-Fa-f]{0,12}"?){0,5}'))
def test_any_line_gives_a_good_record_or_none(line: str) -> None:
    record = registration_record("a", None, Unsolicited(line, 5))
    assert record is None or (record.monotonic_ns == 5 and "registered" in record.fields)


def test_an_area_that_no_network_has_makes_a_line_garbled() -> None:
    assert registration_record("a", "A", Unsolicited('+CREG: 1,"FFFFFFF","5A2C30B",7', 5)) is None
