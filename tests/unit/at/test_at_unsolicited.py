"""What comes unasked, prompts, and the less common forms of answers."""

from __future__ import annotations

import os
import queue
import time

import pytest
from test_at_channel import Modem, playing

from tandem.at.cme import explained
from tandem.at.dialogue import MAX_LINES, Dialogue
from tandem.at.grammar import Command, ascii_upper, final
from tandem.at.lines import LineSplitter
from tandem.at.unsolicited import Stream, Unsolicited

CHANGE = '+CEREG: 1,"1A2C","05A2C30C",7'


def test_each_unsolicited_line_carries_the_time_when_it_was_read_not_when_the_exchange_ended() -> None:
    told: queue.SimpleQueue[Unsolicited] = queue.SimpleQueue()
    first: list[Unsolicited] = []
    between_ns: list[int] = []

    def play(modem: Modem) -> None:
        modem.expect()
        modem.send(f"\r\n{CHANGE}\r\n")
        first.append(told.get(timeout=60))
        between_ns.append(time.monotonic_ns())
        modem.send("\r\n+CSQ: 5,99\r\n\r\nOK\r\nRING\r\n")

    with playing(play) as (_, channel, _u):
        channel.unsolicited.subscribe(told.put)
        began_ns = time.monotonic_ns()
        channel.ask("AT+CSQ", 60)
        while told.empty():
            channel.listen(time.monotonic() + 0.05)
        told_both = [*first, told.get()]
        assert [one.line for one in told_both] == [CHANGE, "RING"]
        assert began_ns < told_both[0].monotonic_ns < between_ns[0] < told_both[1].monotonic_ns
        assert told_both[0].name == "+CEREG"
        assert told_both[0].values == ("1", "1A2C", "05A2C30C", "7")
        assert told_both[1].name is None


def test_every_subscriber_gets_every_line_until_it_ends_its_subscription_whatever_another_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stream, told = Stream(), [[], []]  # type: tuple[Stream, list[list[Unsolicited]]]

    def broken(_told: Unsolicited) -> None:
        raise ZeroDivisionError

    stream.subscribe(broken)
    ends = [stream.subscribe(one.append) for one in told]
    stream.put("RING", 1)
    ends[0]()
    ends[0]()
    stream.put("RING", 2)
    assert [[one.monotonic_ns for one in each] for each in told] == [[1], [1, 2]]
    assert stream.count == 2
    assert "ZeroDivisionError" in caplog.text


def test_a_modem_that_somebody_left_at_a_prompt_is_freed() -> None:
    heard: list[bytes] = []

    def play(modem: Modem) -> None:
        modem.expect()
        modem.send("\r\n> ")
        heard.append(os.read(modem.master, 10))
        modem.send("\r\nOK\r\n")

    with playing(play) as (_, channel, _u):
        assert channel.ask("ATE0", 60).final.ok
    assert heard == [b"\x1b"]


@pytest.mark.parametrize(
    ("chunk", "prompt"), [(b"\r\n> ", True), (b"\r\n>", False), (b"> x", False), (b"> \r\n", False), (b"a> ", False)]
)
def test_a_prompt_is_an_unfinished_line_of_its_own(chunk: bytes, prompt: bool) -> None:
    splitter = LineSplitter()
    splitter.feed(chunk)
    assert splitter.take_prompt() == prompt
    assert not splitter.take_prompt()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ATE0V1+CMEE=1;+CSQ", ("E0", "V1", "+CMEE=1", "+CSQ")),
        ("AT&FE0", ("&F", "E0")),
        ("ATS0=0S7?", ("S0=0", "S7?")),
        ("ATD*99#", ("D*99#",)),
        ("AT", ()),
        ('AT+QENG="a;b";+QCSQ', ('+QENG="a;b"', "+QCSQ")),
    ],
)
def test_basic_commands_are_chained_without_separators(text: str, parts: tuple[str, ...]) -> None:
    assert Command(text).parts == parts


@pytest.mark.parametrize(
    ("line", "command", "code"),
    [
        ("NO CARRIER", "ATD123;", "no_carrier"),
        ("BUSY", "ATD123", "busy"),
        ("NO ANSWER", "ATD123", "no_answer"),
        ("NO DIALTONE", "ATD123", "no_dialtone"),
        ("CONNECT 150000000", "ATD*99#", "connect"),
        ("CONNECT", 'AT+CGDATA="PPP",1', "connect"),
        ("ABORTED", "AT+COPS=?", "aborted"),
        ("command not support", "AT^X", "unsupported"),
        ("TOO MANY PARAMETERS", "AT^X", "too_many_parameters"),
        ("+CMS ERROR: 310", "AT+CMGF?", "cms_error 310"),
        ("+cme error: SIM not inserted", "AT+CSQ", "cme_error SIM not inserted"),
    ],
)
def test_final_results_of_calls_and_makers(line: str, command: str, code: str) -> None:
    found = final(line, Command(command))
    assert found is not None
    assert found.code == code
    assert not found.ok


@pytest.mark.parametrize("line", ["CONNECT", "BUSY", "NO DIALTONE"])
def test_a_call_ends_no_other_command(line: str) -> None:
    assert final(line, Command("AT+CSQ")) is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("cme_error 10", "+CME ERROR 10: no SIM inserted"),
        ("cme_error 999", "+CME ERROR 999"),
        ("cme_error SIM busy", "+CME ERROR SIM busy"),
        ("cme_error ²", "+CME ERROR ²"),
        ("cms_error 310", "+CMS ERROR 310"),
        ("error", "ERROR"),
        ("no_carrier", "NO CARRIER"),
    ],
)
def test_errors_are_said_in_words(code: str, words: str) -> None:
    assert explained(code) == words


def test_a_makers_heading_with_rows_is_one_answer() -> None:
    dialogue = Dialogue(Command("AT+GTCCINFO?"))
    for line in (
        "AT+GTCCINFO?",
        "+GTCCINFO:",
        "LTE service cell:",
        "1,4,244,91,1A2B,5A2C30B,1300,211,103,100,20,50,46,20",
    ):
        assert dialogue.feed(line) is None
    response = dialogue.feed("OK")
    assert response is not None
    assert len(response.lines) == 3


def test_letters_that_grow_when_upper_case_do_not_shift_what_follows() -> None:
    dialogue = Dialogue(Command("AT+CSQ"))
    dialogue.feed("ß+CSQ: 9,99")
    response = dialogue.feed("OK")
    assert response is not None
    assert response.lines == ("+CSQ: 9,99",)
    assert ascii_upper("aßz") == "AßZ"


def test_an_answer_that_never_ends_is_kept_to_a_limit() -> None:
    dialogue = Dialogue(Command("AT+CSQ"))
    for _ in range(MAX_LINES + 500):
        assert dialogue.feed("+CSQ: 9,99") is None
    response = dialogue.feed("OK")
    assert response is not None
    assert (len(response.lines), response.noise_lines) == (MAX_LINES, 500)
