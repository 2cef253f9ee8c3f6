"""The words of an AT dialogue."""

from hypothesis import given
from hypothesis import strategies as st

from tandem.at.dialogue import MAX_LINES, Dialogue, Response
from tandem.at.grammar import MAX_LINE_BYTES, Command, LineSplitter, final, is_unsolicited, prefix, values

FINALS: list[tuple[str, str, str | None]] = [
    ("OK", "AT+CSQ", "ok"),
    ("ERROR", "AT+CSQ", "error"),
    ("+CME ERROR: 10", "AT+CSQ", "cme_error 10"),
    ("+cme error: SIM not inserted", "AT+CSQ", "cme_error SIM not inserted"),
    ("+CMS ERROR: 310", "AT+CMGF?", "cms_error 310"),
    ("COMMAND NOT SUPPORT", "AT^X", "unsupported"),
    ("ABORTED", "AT+COPS=?", "aborted"),
    ("NO CARRIER", "ATD*99#", "no_carrier"),
    ("BUSY", "ATD123", "busy"),
    ("NO ANSWER", "ATD123;", "no_answer"),
    ("CONNECT 150000000", "ATD*99#", "connect"),
    ("CONNECT", 'AT+CGDATA="PPP",1', "connect"),
    *((line, "AT+CSQ", None) for line in ("NO CARRIER", "CONNECT", "BUSY", "+CSQ: 20,99", "OKAY", "NOT OK", "RING")),
]


def test_final_results_of_modems_makers_and_calls_are_known_and_other_lines_are_none():
    for line, command, code in FINALS:
        found = final(line, Command(command))
        assert (found and found.code) == code, line
        assert found is None or found.ok == (code == "ok")


def test_which_lines_a_command_expects():
    command = Command('AT+QENG="serving;cell";+QCSQ;^HCSQ?')
    assert command.parts == ('+QENG="serving;cell"', "+QCSQ", "^HCSQ?")
    assert command.prefixes == ("+QENG", "+QCSQ", "^HCSQ")
    assert command.prints_lines
    assert not Command("AT+CEREG=2").prints_lines
    assert Command("ATI").takes_bare_lines
    assert Command("AT+CGMM").takes_bare_lines
    assert not Command("ATE0").prints_lines
    assert is_unsolicited("NO CARRIER", Command("AT+CSQ").prefixes)
    assert not Command("AT+CGMM").dials


def test_an_unasked_registration_code_has_no_n_in_front():
    answers = ('+CEREG: 2,1,"1A2B","01234567",7', "+CEREG: 2,1,1A2B,1234567,7", "+CEREG: 0,5")
    assert [line for line in answers if is_unsolicited(line, ("+CEREG",))] == []
    codes = ('+CEREG: 1,"1A2B","01234567",7', "+CEREG: 1,1234,1234567,7", "+CEREG: 1", "+CEREG: 4,,,0")
    assert [line for line in codes if not is_unsolicited(line, ("+CEREG",))] == []


def test_values_are_unquoted_and_commas_in_quotes_kept():
    assert values('+COPS: 0,0,"A, B",7') == ("0", "0", "A, B", "7")
    assert values("+CESQ: 99,99,255,255,20,40") == ("99", "99", "255", "255", "20", "40")
    assert values('"LTE","FDD",,-') == ("LTE", "FDD", "", "-")
    assert values('+X: "never closed, is one') == ("never closed, is one",)
    assert prefix('^HCSQ:"LTE",1') == "^HCSQ"
    assert prefix("12,13") is None


@given(st.binary(max_size=2000), st.lists(st.integers(1, 50), min_size=1, max_size=20))
def test_lines_do_not_depend_on_the_chunks(stream, sizes):
    whole, chunked = LineSplitter(), LineSplitter()
    lines, at, turn = [], 0, 0
    while at < len(stream):
        size = sizes[turn % len(sizes)]
        lines += chunked.feed(stream[at : at + size])
        at, turn = at + size, turn + 1
    assert lines == whole.feed(stream)
    assert all(line and "\r" not in line and "\n" not in line for line in lines)


def test_an_endless_line_is_dropped_and_noise_at_the_ends_of_one_cut_off():
    splitter = LineSplitter()
    for _ in range(10):
        assert splitter.feed(b"x" * MAX_LINE_BYTES) == []
    assert splitter.feed(b"tail\r\nOK\r\n") == ["OK"]
    assert LineSplitter().feed(b"\x00\xff\r\n\x00OK\x00\r\r\n") == ["OK"]


@given(st.text(max_size=200))
def test_grammar_takes_any_text(text):
    command = Command(text)
    assert isinstance(command.prefixes, tuple)
    final(text, command)
    assert is_unsolicited(text, command.prefixes) in (True, False)
    assert all(isinstance(value, str) for value in values(text))


# --- one command and its answer, between everything else that may arrive

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
def test_whatever_stands_between_the_answer_is_the_same(extra, cuts, line_end):
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
def test_any_bytes_give_a_response_or_nothing(stream, cuts):
    response = run(Dialogue(COMMAND), stream, cuts)
    assert response is None or all(line.upper().startswith(("+CSQ:", "+CEREG:")) for line in response.lines)


def answered(dialogue: Dialogue, *lines: str) -> Response:
    """What the last of the lines ends."""
    assert [dialogue.feed(line) for line in lines[:-1]] == [None] * (len(lines) - 1)
    response = dialogue.feed(lines[-1])
    assert response is not None
    return response


def test_lines_of_each_form_of_answer():
    response = answered(Dialogue(Command("AT+CSQ;+CESQ")), "+CSQ: 17,99", "+CME ERROR: 4")
    assert (response.lines, response.final.code) == (("+CSQ: 17,99",), "cme_error 4"), "those before an error"
    for line in ("AT+CSQ+CSQ: 9,99", "ß+CSQ: 9,99"):  # a stuck echo; a letter that grows in upper case
        assert answered(Dialogue(Command("AT+CSQ")), line, "OK").lines == ("+CSQ: 9,99",)
    owed = Dialogue(Command("AT+CSQ"), owed=("+CMEE",))
    assert answered(owed, "+CMEE: 1", "OK", "+CSQ: 9,99", "OK").lines == ("+CSQ: 9,99",), "not an earlier command's"
    text = ("ATI", "Quectel", "EC25", '+QIND: "csq",20,99', "Revision: EC25EFAR06", "OK")
    assert answered(Dialogue(Command("ATI")), *text).lines == ("Quectel", "EC25", "Revision: EC25EFAR06")
    rows = ("+GTCCINFO:", "LTE service cell:", "1,4,244,91,1A2B,5A2C30B,1300,211,103,100,20,50,46,20")
    assert answered(Dialogue(Command("AT+GTCCINFO?")), "AT+GTCCINFO?", *rows, "OK").lines == rows, "a heading's too"
    endless = answered(Dialogue(Command("AT+CSQ")), *["+CSQ: 9,99"] * (MAX_LINES + 500), "OK")
    assert len(endless.lines) == MAX_LINES
