"""What comes unasked, prompts, and the less common forms of answers."""

import os
import queue
import time

import pytest
from test_at_channel import Modem, playing

from tandem.at.cme import explained
from tandem.at.grammar import Command
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


def test_a_prompt_is_an_unfinished_line_of_its_own() -> None:
    chunks = {b"\r\n> ": True, b"\r\n>": False, b"> x": False, b"> \r\n": False, b"a> ": False}
    for chunk, prompt in chunks.items():
        splitter = LineSplitter()
        splitter.feed(chunk)
        assert (splitter.take_prompt(), splitter.take_prompt()) == (prompt, False), chunk


def test_basic_commands_are_chained_without_separators_and_errors_are_said_in_words() -> None:
    parts = {
        "ATE0V1+CMEE=1;+CSQ": ("E0", "V1", "+CMEE=1", "+CSQ"),
        "AT&FE0": ("&F", "E0"),
        "ATS0=0S7?": ("S0=0", "S7?"),
        "ATD*99#": ("D*99#",),
        "AT": (),
        'AT+QENG="a;b";+QCSQ': ('+QENG="a;b"', "+QCSQ"),
    }
    assert {text: Command(text).parts for text in parts} == parts
    words = {
        "cme_error 10": "+CME ERROR 10: no SIM inserted",
        "cme_error 999": "+CME ERROR 999",
        "cme_error SIM busy": "+CME ERROR SIM busy",
        "cme_error ²": "+CME ERROR ²",
        "cms_error 310": "+CMS ERROR 310",
        "error": "ERROR",
        "no_carrier": "NO CARRIER",
    }
    assert {code: explained(code) for code in words} == words
