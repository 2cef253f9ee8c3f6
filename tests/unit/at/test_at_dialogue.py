"""One command and its answer, between everything else that may arrive."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import Dialogue, Response
from tandem.at.errors import CommandError
from tandem.at.grammar import Command
from tandem.at.lines import LineSplitter

COMMAND = Command("AT+CSQ;+CEREG?")
ANSWER = ["+CSQ: 20,99", '+CEREG: 2,1,"1A2B","01234567",7']
UNSOLICITED = [
    "RING",
    '+CEREG: 1,"1A2C","01234568",7',
    "^RSSI: 20",
    '+QIND: "csq",20,99',
    "NO CARRIER",
    '+CMTI: "SM",1',
]
NOISE = ["garbage", "\x01\x02x", "12,3,4", "AT+CSQ", "AT+CSQ;+CEREG?"]


def run(dialogue: Dialogue, stream: bytes, cuts: list[int]) -> Response | None:
    splitter, start = LineSplitter(), 0
    for cut in [*sorted({c % (len(stream) + 1) for c in cuts}), len(stream)]:
        for line in splitter.feed(stream[start:cut]):
            response = dialogue.feed(line)
            if response is not None:
                return response
        start = cut
    return None


@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from([*UNSOLICITED, *NOISE])), max_size=12),
    st.lists(st.integers(0, 2000), max_size=30),
    st.sampled_from(["\r\n", "\r", "\n", "\r\n\r\n", "\r\r\n"]),
)
def test_whatever_stands_between_the_answer_is_the_same(
    extra: list[tuple[int, str]], cuts: list[int], line_end: str
) -> None:
    lines = [[text for place, text in extra if place == i] for i in range(3)]
    order = ["AT+CSQ;+CEREG?", *lines[0], ANSWER[0], *lines[1], ANSWER[1], *lines[2], "OK"]
    seen: list[str] = []
    dialogue = Dialogue(COMMAND, on_unsolicited=seen.append)
    response = run(dialogue, "".join(line + line_end for line in order).encode("latin-1"), cuts)
    assert response is not None
    assert response.lines == tuple(ANSWER)
    assert response.final.ok
    assert seen == [text for place in range(3) for at, text in extra if at == place and text in UNSOLICITED]


@given(st.binary(max_size=1000), st.lists(st.integers(0, 1000), max_size=10))
def test_any_bytes_give_a_response_or_nothing(stream: bytes, cuts: list[int]) -> None:
    response = run(Dialogue(COMMAND), stream, cuts)
    assert response is None or all(line.upper().startswith(("+CSQ:", "+CEREG:")) for line in response.lines)


@given(st.text('+CSQERG:OK? 0123,"\r\n', max_size=200))
def test_near_misses_give_a_response_or_nothing(text: str) -> None:
    response = run(Dialogue(COMMAND), text.encode("latin-1"), [])
    assert response is None or all(line.upper().startswith(("+CSQ:", "+CEREG:")) for line in response.lines)


def test_an_error_keeps_the_lines_before_it() -> None:
    dialogue = Dialogue(Command("AT+CSQ;+CESQ"))
    assert dialogue.feed("+CSQ: 17,99") is None
    response = dialogue.feed("+CME ERROR: 4")
    assert response is not None
    assert response.lines == ("+CSQ: 17,99",)
    with pytest.raises(CommandError, match="cme_error 4"):
        response.checked()


def test_an_echo_stuck_to_the_answer_is_cut_off() -> None:
    dialogue = Dialogue(Command("AT+CSQ"))
    dialogue.feed("AT+CSQ+CSQ: 9,99")
    response = dialogue.feed("OK")
    assert response is not None
    assert response.lines == ("+CSQ: 9,99",)


def test_the_answer_of_an_owed_command_is_not_taken() -> None:
    dialogue = Dialogue(Command("AT+CSQ"), owed=("+CMEE",))
    assert dialogue.feed("+CMEE: 1") is None
    assert dialogue.feed("OK") is None
    assert dialogue.feed("+CSQ: 9,99") is None
    response = dialogue.feed("OK")
    assert response is not None
    assert response.lines == ("+CSQ: 9,99",)


def test_text_answers_are_taken_whole() -> None:
    dialogue = Dialogue(Command("ATI"))
    for line in ("ATI", "Quectel", "EC25", '+QIND: "csq",20,99', "Revision: EC25EFAR06"):
        assert dialogue.feed(line) is None
    response = dialogue.feed("OK")
    assert response is not None
    assert response.lines == ("Quectel", "EC25", "Revision: EC25EFAR06")
