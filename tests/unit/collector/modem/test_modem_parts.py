"""Schedule, staleness, identification and the decoding of the standard's commands."""

import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Response
from tandem.at.grammar import Final
from tandem.modem.base import Identity, Reading
from tandem.modem.families import choose
from tandem.modem.poll import StuckReadingDetector
from tandem.modem.poller import Schedule, ThreadExecutor
from tandem.modem.scales import plmn
from tandem.modem.session import identify

OK = Final("ok", "ok")
SECOND = 10**9


@given(st.lists(st.integers(0, 5 * SECOND), max_size=50))
def test_due_times_stay_on_their_grid_and_never_lie_behind(delays: list[int]) -> None:
    schedule, now = Schedule(7, 1.0), 7
    for delay in delays:
        before = schedule.due_ns
        now = max(now, schedule.due_ns) + delay
        skipped = schedule.advance(now)
        assert (schedule.due_ns - 7) % SECOND == 0
        assert schedule.due_ns >= now
        assert schedule.due_ns - before == (skipped + 1) * SECOND


def test_a_repeated_answer_is_stale_only_beyond_what_the_modem_did_before() -> None:
    detector, level = StuckReadingDetector(floor_s=10), Reading(rsrp_dbm=-97.0)
    assert [detector.feed("x", level, t * SECOND) for t in (0, 5, 10, 11, 40)] == [False, False, False, True, True]
    assert not detector.feed("y", level, 41 * SECOND)
    assert not detector.feed("y", level, 81 * SECOND), "it repeated itself for 40 s before, and answered something new"
    assert detector.feed("y", level, 82 * SECOND)
    detector.forget()
    assert not detector.feed("y", level, 83 * SECOND)


@pytest.mark.parametrize("says_little", [None, Reading("searching", rsrp_dbm=-120.0), Reading(rssi_dbm=-71.0, eci=1)])
def test_no_service_and_coarse_values_are_never_stale(says_little: Reading | None) -> None:
    detector = StuckReadingDetector()
    assert not any(detector.feed("x", says_little, t * 60 * SECOND) for t in range(60))


def test_a_wake_while_errands_are_closed_hits_no_descriptor_that_was_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    executor, reused = ThreadExecutor(), []
    close = os.close

    def closed_and_reused(descriptor: int) -> None:
        close(descriptor)
        reused.append(os.eventfd(0, os.EFD_NONBLOCK))
        assert reused[0] == descriptor
        waker = threading.Thread(target=executor.wake)
        waker.start()
        wakers.append(waker)
        waker.join(0.2)  # it has written before the mend, and waits for the lock since

    wakers: list[threading.Thread] = []
    monkeypatch.setattr("tandem.modem.poller.os.close", closed_and_reused)
    executor.close()
    monkeypatch.undo()
    wakers[0].join(60)
    with pytest.raises(BlockingIOError):
        os.eventfd_read(reused[0])
    os.close(reused[0])
    executor.wake()


@pytest.mark.parametrize(
    ("manufacturer", "model", "family"),
    [
        ("INCORPORATED", "A7670E-FASE", "simcom"),
        ("INCORPORATED", "A7672E-LASC", "simcom"),
        ("SIMCOM INCORPORATED", "A7600E-LNSE", "simcom"),
        ("QUALCOMM INCORPORATED", "1", "generic"),
        ("QUALCOMM", "T99W175", "foxconn"),
        ("DELL", "DW5930e", "foxconn"),
        ("TD Tech Ltd", "MT5700M-CN", "huawei"),
        ("Sierra Wireless, Incorporated", "EM7455", "sierra"),
    ],
)
def test_makers_that_hide_behind_anothers_name_are_known(manufacturer: str, model: str, family: str) -> None:
    assert choose("auto", Identity(manufacturer, model)).name == family


def test_what_starts_a_gnss_differs_by_family_and_model() -> None:
    for identity, command in (
        (Identity("Quectel", "EC25"), "AT+QGPS=1"),
        (Identity("SIMCOM", "SIMCOM_SIM7600E-H"), "AT+CGPS=1,1"),
        (Identity("SIMCOM", "A7670E-FASE"), "AT+CGNSSPWR=1"),
    ):
        assert command in choose("auto", identity).gnss_commands(identity)
    assert choose("generic", Identity()).gnss_commands(Identity()) == ()


def test_identity_from_plain_answers_or_from_ati_without_the_serial_number() -> None:
    answers = [
        Response("AT+CGMI", ("Quectel",), OK),
        Response("AT+CGMM", ('+CGMM: "EC25"',), OK),
        Response("AT+CGMR", ("Revision: EC25EFAR06",), OK),
    ]
    assert identify(answers) == Identity("Quectel", "EC25", "EC25EFAR06")
    refused = [Response(c, (), Final("error", "error")) for c in ("AT+CGMI", "AT+CGMM", "AT+CGMR")]
    lines = ("Manufacturer: huawei", "Model: E3372", "Revision: 21.180", "IMEI: 861234567890123", "+GCAP: +CGSM")
    assert identify([*refused, Response("ATI", lines, OK)]) == Identity("huawei", "E3372", "21.180")
    unlabelled = ("861234567890123", "Quectel", "EC25", "EC25EFAR06")
    assert identify([*refused, Response("ATI", unlabelled, OK)]) == Identity("Quectel", "EC25", "EC25EFAR06")
    mixed = ("Quectel", "EC25", "Revision: EC25EFAR06", "SVN: 01")
    assert identify([*refused, Response("ATI", mixed, OK)]) == Identity("Quectel", "EC25", "EC25EFAR06")
    assert choose("auto", identify(refused)).name == "generic"


@pytest.mark.parametrize(
    ("mcc", "mnc", "code"), [("244", "1", "24401"), ("310", "410", "310410"), ("", "01", None), ("-", "-", None)]
)
def test_network_codes(mcc: str, mnc: str, code: str | None) -> None:
    assert plmn(mcc, mnc) == code
