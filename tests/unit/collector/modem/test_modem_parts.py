"""Schedule, staleness and identification; raw answers without a modem: which family, what it tells, why it tells nothing."""

import contextlib
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tandem.modem
from support.hostile_json import badly_refused
from tandem.at.dialogue import Response
from tandem.at.grammar import Final
from tandem.modem.base import Identity, Reading
from tandem.modem.decoding import ALWAYS, UndecodableError, candidates, decode
from tandem.modem.families import choose, drivers
from tandem.modem.poll import StuckReadingDetector
from tandem.modem.poller import Schedule, ThreadExecutor
from tandem.modem.session import identify

OK = Final("ok", "ok")
SECOND = 10**9


@given(st.lists(st.integers(0, 5 * SECOND), max_size=50))
def test_due_times_stay_on_their_grid_and_never_lie_behind(delays):
    schedule, now = Schedule(7, 1.0), 7
    for delay in delays:
        before = schedule.due_ns
        now = max(now, schedule.due_ns) + delay
        skipped = schedule.advance(now)
        assert (schedule.due_ns - 7) % SECOND == 0
        assert schedule.due_ns >= now
        assert schedule.due_ns - before == (skipped + 1) * SECOND


def test_a_repeated_answer_is_stale_only_beyond_what_the_modem_did_before():
    detector, level = StuckReadingDetector(floor_s=10), Reading(rsrp_dbm=-97.0)
    assert [detector.feed("x", level, t * SECOND) for t in (0, 5, 10, 11, 40)] == [False, False, False, True, True]
    assert not detector.feed("y", level, 41 * SECOND)
    assert not detector.feed("y", level, 81 * SECOND), "it repeated itself for 40 s before, and answered something new"
    assert detector.feed("y", level, 82 * SECOND)
    detector.forget()
    assert not detector.feed("y", level, 83 * SECOND)


def test_no_service_and_coarse_values_are_never_stale():
    for says_little in (None, Reading("searching", rsrp_dbm=-120.0), Reading(rssi_dbm=-71.0, eci=1)):
        detector = StuckReadingDetector()
        assert not any(detector.feed("x", says_little, t * 60 * SECOND) for t in range(60))


def test_a_wake_while_errands_are_closed_hits_no_descriptor_that_was_reused(monkeypatch):
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


def test_makers_that_hide_behind_anothers_name_are_known():
    families = {
        ("INCORPORATED", "A7670E-FASE"): "simcom",
        ("SIMCOM INCORPORATED", "A7600E-LNSE"): "simcom",
        ("QUALCOMM INCORPORATED", "1"): "generic",
        ("QUALCOMM", "T99W175"): "foxconn",
        ("DELL", "DW5930e"): "foxconn",
        ("TD Tech Ltd", "MT5700M-CN"): "huawei",
        ("Sierra Wireless, Incorporated", "EM7455"): "sierra",
    }
    assert {known: choose("auto", Identity(*known)).name for known in families} == families


def test_what_starts_a_gnss_differs_by_family_and_model():
    for identity, command in (
        (Identity("Quectel", "EC25"), "AT+QGPS=1"),
        (Identity("SIMCOM", "SIMCOM_SIM7600E-H"), "AT+CGPS=1,1"),
        (Identity("SIMCOM", "A7670E-FASE"), "AT+CGNSSPWR=1"),
    ):
        assert command in choose("auto", identity).gnss_commands(identity)
    assert choose("generic", Identity()).gnss_commands(Identity()) == ()


def test_identity_from_plain_answers_or_from_ati_without_the_serial_number():
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


# --- raw answers without a modem: which family, what it tells, why it tells nothing


QENG = '+QENG: "servingcell","NOCONN","LTE","FDD",244,91,5A2C30B,211,1300,3,5,5,1A2B,-95,-10,-66,12,33'
MODEM = Path(tandem.modem.__file__).parent
TRANSCRIPTS = [json.loads(file.read_text()) for file in sorted(MODEM.glob("families/transcripts/*/*.json"))]


def told(command: str, raw: str, driver: str | None = None) -> dict[str, Any]:
    return decode(command, raw.encode("latin-1"), driver).as_json()


NEIGHBOURS = '+QENG: "neighbourcell intra","LTE",1300,211,-9,-95,-66,-2'
UNDECODABLE = [
    ("AT+CESQ", "ERROR", "the modem answered ERROR"),
    ("AT+CESQ", "AT+CESQ\r\r\n+CME ERROR: 10\r\n", "+CME ERROR 10: no SIM inserted"),
    ("AT+CESQ", "\r\n \r\n", "the answer is empty"),
    ("AT+CESQ", "\x00\xff\x01", "no line of the answer belongs to +CESQ"),
    ("AT+CESQ", "OK", "no line of the answer belongs to +CESQ"),
    ("AT+CSQ", "+CSQ: 500,1", "nothing can be read in '+CSQ: 500,1'"),
    ("AT+COPS?", '+COPS: 0,0,"Operator"', "the network is told by its name only; AT+COPS=3,2"),
    ('AT+QENG="neighbourcell"', NEIGHBOURS, "neighbour cells only"),
    (f"AT+{'X' * 900}", "+X: 1", "XXX...; name one"),
    ("", "+NOBODY: 1", "no known family asks AT"),
    ("AT+CSQ", "x" * 2_000_000, "longer than"),
    ("GET /nobody/asks", "{}", "no known family asks"),
]


def test_what_cannot_be_decoded_says_why_in_one_line():
    assert badly_refused(UndecodableError, told, UNDECODABLE) == []


def test_an_answer_is_read_however_it_was_saved():
    for charset in ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"):
        found = decode('AT+QENG="servingcell"', f"{QENG}\r\nOK\r\n".encode(charset)).as_json()
        assert (found["driver"], found["eci"]) == ("quectel", 0x5A2C30B), charset
    # a script made one line of several
    for raw in ("", "AT+CESQ ", "AT+CSQ +CSQ: 20,99 OK AT+CESQ "):
        assert told("AT+CESQ", f"{raw}+CESQ: 99,99,255,255,20,50 OK")["rsrp_dbm"] == -91.0
    # a label whose value is OK ends no answer
    raw = "!GSTATUS:\r\nSystem mode: LTE\r\nIMS reg state:  OK\r\nRSRP (dBm): -96\r\nOK\r\n"
    assert told("AT!GSTATUS?", raw)["rsrp_dbm"] == -96.0
    for raw in ("+CSQ: 99,99", "+CSQ: 99,99\r\n\r\nOK\r\n"):
        found = told("AT+CSQ", raw)
        assert {name for name in ALWAYS if found[name] is not None} == {"state", "driver"}, "nothing is known: all null"


def test_a_pasted_http_head_and_a_whole_address():
    raw = "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\n\r\n<response><rsrp>-97dBm</rsrp><mode>7</mode></response>"
    for asked in ("http://192.168.8.1/api/device/signal", "get /api/device/signal"):
        assert told(asked, raw)["rsrp_dbm"] == -97.0
    network = raw.replace("<rsrp>-97dBm</rsrp><mode>7</mode>", "<State>0</State><Numeric>24491</Numeric>")
    both = told("/api/device/signal", f"{raw}\r\n{network}")
    assert (both["rsrp_dbm"], both["plmn"]) == (-97.0, "24491")


def test_an_answer_is_newer_than_what_came_unasked():
    answer, unasked = '+CEREG: 2,1,"1A2B","05A2C30B",7', '+CEREG: 1,"1A2C","05A2C40C",7'
    assert told("AT+CEREG?", f"{answer}\r\nOK\r\n{unasked}\r\n")["eci"] == 0x5A2C30B
    assert told("AT+CESQ", f"+CESQ: 99,99,255,255,20,50\r\n{unasked}\r\n")["eci"] == 0x5A2C40C
    assert told("AT+CESQ", "+CREG: 2\r\n+CESQ: 99,99,255,255,20,50\r\n")["state"] == "unknown"


def test_the_family_is_found_by_what_is_asked_and_read_also_of_several_commands_and_before_an_error():
    for asked in ("AT", "", "AT+CESQ", "AT+CEREG?;+COPS?", "AT+NOBODY?"):
        found = told(asked, f'+CEREG: 2,1,"1A2B","05A2C30B",7\r\nOK\r\n{QENG}\r\nOK\r\n')
        assert (found["driver"], found["rsrp_dbm"], found["state"]) == ("quectel", -95.0, "idle")
    found = told("AT+CSQ;+CESQ", "+CSQ: 17,99\r\n+CME ERROR: 4\r\n")
    assert (found["rssi_dbm"], found["rsrp_dbm"]) == (-79.0, None)
    lines = '^HCSQ:"LTE",50,50,100,20\r\n^MONSC: LTE,244,91,1300,5A2C30B,D3,1A2B,-95,-10,-66\r\nOK'
    both = told("AT^HCSQ?;^MONSC", lines)
    assert (both["driver"], both["pci"], both["rsrp_code"]) == ("huawei", 211, 50)
    assert told('AT+CSQ;+QENG="servingcell"', f"+CSQ: 17,99\r\n{QENG}\r\nOK")["driver"] == "quectel"
    first = {
        ("AT+CESQ", ""): "generic",
        ("AT^HCSQ?", ""): "huawei",
        ("AT+CSQ;^HCSQ?", "Huawei ME909"): "huawei",
        ("AT+CSQ;+CEREG?", "nobody knows"): "generic",
    }
    assert {(asked, model): candidates(asked, Identity(model=model))[0].name for asked, model in first} == first
    assert len({json.dumps(told("+CEREG?", '+CEREG: 2,1,"1A2B","05A2C30B",7')) for _ in range(5)}) == 1


LINES = sorted({line for c in TRANSCRIPTS for t in c["dialogue"] for line in t["receive"].split("\r\n") if line})
ASKED = sorted({t["send"] for c in TRANSCRIPTS for t in c["dialogue"]})


@given(
    st.one_of(st.sampled_from(ASKED), st.text(max_size=20)),
    st.one_of(
        st.binary(max_size=300),
        st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 80), st.text(max_size=5)), max_size=5).map(
            lambda pieces: "\r\n".join(line[:at] + extra + line[at:] for line, at, extra in pieces).encode(
                "utf-8", "replace"
            )
        ),
    ),
    st.one_of(st.none(), st.sampled_from(sorted(drivers()))),
)
def test_any_input_is_decoded_or_refused_with_a_reason(command, raw, driver):
    with contextlib.suppress(UndecodableError):
        found = decode(command, raw, driver)
        assert set(ALWAYS) <= set(json.loads(json.dumps(found.as_json())))
