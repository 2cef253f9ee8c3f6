"""One modem in time, on a fake clock: delays, unsolicited lines, faults."""

import pytest

from support.modem_on_fake_clock import TICK
from tandem_bench.modem.faults import Fault


def test_answer_takes_as_long_as_a_modem_takes_and_never_the_same(desk):
    modem, waits = desk("generic"), []
    for _ in range(200):
        modem.heard()
        asked = modem.now_s
        modem.emulator.received(b"AT+CSQ\r")
        modem.advance(0.5)
        waits.append(modem.sent[0][0] - asked)
    assert all(0.002 <= wait <= 0.040 for wait in waits)
    assert len(set(waits)) > 150


def test_same_seed_same_bytes_at_the_same_times(desk):
    def played(seed):
        modem = desk("huawei", *({"eci": 256 + i // 10} for i in range(200)), seed=seed)
        for _ in range(20):
            modem.emulator.received(b"AT+CEREG=2;^HCSQ?\r")
            modem.advance(1)
        return modem.sent

    assert played(3) == played(3)
    assert played(3) != played(4)


@pytest.mark.parametrize("family", ["quectel", "huawei"])
def test_command_that_comes_while_another_runs_waits_its_turn(desk, family):
    modem = desk(family)
    modem.heard()
    modem.emulator.received(b"AT+CSQ\rAT+CFUN?\r")
    modem.advance(0.5)
    heard = modem.heard()
    assert heard.index(b"+CSQ: 23,99") < heard.index(b"+CFUN: 1")
    assert heard.count(b"\r\nOK\r\n") == 2


def test_change_of_cell_is_told_unasked_at_level_2_only(desk):
    modem = desk("generic", *({"eci": 256 + i // 50} for i in range(400)))
    modem.ask("AT+CEREG=1")
    modem.advance(9.8)
    assert modem.heard() == b""
    modem.ask("AT+CEREG=2")
    modem.advance(11)
    assert modem.heard() == b'\r\n+CEREG: 1,"1A2B","00000103",7\r\n\r\n+CEREG: 1,"1A2B","00000104",7\r\n'


def test_lost_service_is_told_at_level_1(desk):
    gone = dict.fromkeys(TICK, None) | {"registered": False}
    modem = desk("quectel", *([{}] * 30), *([gone] * 30), {})
    modem.ask("AT+CEREG=1")
    modem.advance(10)
    assert modem.heard() == b"\r\n+CEREG: 2\r\n\r\n+CEREG: 1\r\n"


def test_unsolicited_lines_fall_between_the_lines_of_answers_and_after_them(desk):
    modem, between, after = desk("huawei"), 0, 0
    for _ in range(900):
        heard = modem.ask("AT^HCSQ?;+CSQ;^MONSC;^SYSINFOEX", wait_s=1)
        assert heard.count(b"\r\nOK\r\n") == 1
        for at in (i for i in range(len(heard)) if heard.startswith(b"^RSSI:", i)):
            between += heard.index(b"\r\n^HCSQ") < at < heard.index(b"\r\nOK\r\n")
            after += at > heard.index(b"\r\nOK\r\n")
    assert between > 10
    assert after > 10


def test_port_that_nobody_reads_is_not_filled_with_the_past(desk):
    modem = desk("huawei")
    modem.heard()
    modem.waiting_unread = 600
    modem.advance(60)
    assert modem.heard() == b""


def test_hang_cuts_an_answer_short(desk):
    modem = desk("generic")
    modem.emulator.received(b"AT+CSQ\r")
    modem.emulator.play(Fault("hang", 1))
    modem.advance(5)
    assert modem.heard() == b""


def test_disappearing_loses_the_settings_but_not_the_identity(desk):
    modem = desk("generic", echo=True)
    modem.ask("ATE0+CMEE=1;+CEREG=2")
    modem.emulator.play(Fault("disappear", 2))
    assert not modem.attached
    modem.emulator.received(b"AT\r")
    modem.advance(1.9)
    assert not modem.attached
    modem.advance(0.2)
    assert modem.attached
    assert modem.ask("AT+CEREG?;+CIMI") == b"AT+CEREG?;+CIMI\r\r\n+CEREG: 0,1\r\n\r\n001010123456789\r\n\r\nOK\r\n"


def test_the_same_fault_again_starts_its_time_anew(desk):
    modem = desk("generic")
    modem.emulator.play(Fault("hang", 2))
    modem.advance(1.5)
    modem.emulator.play(Fault("hang", 2))
    assert modem.ask("AT", wait_s=1.5) == b""
    modem.advance(0.6)
    assert modem.ask("AT") == b"\r\nOK\r\n"
