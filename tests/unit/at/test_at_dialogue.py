"""One command and its answer, between everything else that may arrive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import MAX_LINES, Dialogue, Response
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


NEAR_MISSES = st.text('+CSQERG:OK? 0123,"\r\n', max_size=200).map(str.encode)


@given(st.binary(max_size=1000) | NEAR_MISSES, st.lists(st.integers(0, 1000), max_size=10))
def test_any_bytes_give_a_response_or_nothing(stream: bytes, cuts: list[int]) -> None:
    response = run(Dialogue(COMMAND), stream, cuts)
    assert response is None or all(line.upper().startswith(("+CSQ:", "+CEREG:")) for line in response.lines)


def answered(dialogue: Dialogue, *lines: str) -> Response:
    """What the last of the lines ends."""
    assert [dialogue.feed(line) for line in lines[:-1]] == [None] * (len(lines) - 1)
    response = dialogue.feed(lines[-1])
    assert response is not None
    return response


def test_an_error_keeps_the_lines_before_it() -> None:
    response = answered(Dialogue(Command("AT+CSQ;+CESQ")), "+CSQ: 17,99", "+CME ERROR: 4")
    assert response.lines == ("+CSQ: 17,99",)
    with pytest.raises(CommandError, match="cme_error 4"):
        response.checked()


def test_an_echo_stuck_to_the_answer_and_letters_that_grow_in_upper_case_are_cut_off() -> None:
    for line in ("AT+CSQ+CSQ: 9,99", "ß+CSQ: 9,99"):
        assert answered(Dialogue(Command("AT+CSQ")), line, "OK").lines == ("+CSQ: 9,99",)


def test_the_answer_of_an_owed_command_is_not_taken() -> None:
    dialogue = Dialogue(Command("AT+CSQ"), owed=("+CMEE",))
    assert answered(dialogue, "+CMEE: 1", "OK", "+CSQ: 9,99", "OK").lines == ("+CSQ: 9,99",)


def test_text_answers_are_taken_whole() -> None:
    lines = ("ATI", "Quectel", "EC25", '+QIND: "csq",20,99', "Revision: EC25EFAR06", "OK")
    assert answered(Dialogue(Command("ATI")), *lines).lines == ("Quectel", "EC25", "Revision: EC25EFAR06")


def test_a_makers_heading_with_rows_is_one_answer() -> None:
    lines = ("+GTCCINFO:", "LTE service cell:", "1,4,244,91,1A2B,5A2C30B,1300,211,103,100,20,50,46,20")
    assert answered(Dialogue(Command("AT+GTCCINFO?")), "AT+GTCCINFO?", *lines, "OK").lines == lines


def test_an_answer_that_never_ends_is_kept_to_a_limit() -> None:
    response = answered(Dialogue(Command("AT+CSQ")), *["+CSQ: 9,99"] * (MAX_LINES + 500), "OK")
    assert (len(response.lines), response.noise_lines) == (MAX_LINES, 500)
