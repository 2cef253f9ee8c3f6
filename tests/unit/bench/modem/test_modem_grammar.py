"""What an emulated modem makes of any bytes at all; every golden dialogue, byte for byte; and every bin of the codings."""

import json
import string
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.modem_on_fake_clock import MODEM
from tandem_bench.modem import radio as codes
from tandem_bench.modem.dialogue import Modem, answer
from tandem_bench.modem.families import FAMILIES, huawei
from tandem_bench.modem.grammar import Command, GrammarError, LineReader, commands
from tandem_bench.modem.radio import Radio

PLAIN = Modem("1", "2", "3", "A", "00101")
LETTERS = string.ascii_uppercase

names = st.builds(
    "".join,
    st.tuples(st.sampled_from("+^$%*!#"), st.sampled_from(LETTERS), st.text(LETTERS + string.digits, max_size=8)),
)
plain = st.text(string.digits + "-.abcXYZ", min_size=1, max_size=6)
quoted = st.text(string.ascii_letters + string.digits + ";,=? +^", max_size=8)
values = st.one_of(st.none(), plain.map(lambda v: (v, v)), quoted.map(lambda v: (f'"{v}"', v)))


@st.composite
def extended(draw):
    """An extended command as text, and what it should be read as."""
    name, kind = draw(names), draw(st.sampled_from(["execute", "read", "test", "set"]))
    if kind != "set":
        return name + {"execute": "", "read": "?", "test": "=?"}[kind], Command(name, kind)
    parts = draw(st.lists(values, min_size=1, max_size=5))
    text = ",".join("" if v is None else v[0] for v in parts)
    if text == "?":
        text = '"?"'
    return f"{name}={text}", Command(name, "set", tuple(None if v is None else v[1] for v in parts))


@given(st.lists(extended(), max_size=6), st.sampled_from(["AT", "at", "  At"]), st.sampled_from([";", " ; "]))
def test_commands_in_one_line_are_read_back_as_written(made, prefix, joint):
    assert commands(prefix + joint.join(text for text, _ in made)) == tuple(command for _, command in made)


@given(
    st.sampled_from(sorted(FAMILIES)),
    st.one_of(st.text(max_size=120), st.text(max_size=120).map("AT".__add__), extended().map(lambda e: "AT" + e[0])),
)
def test_every_line_for_a_modem_gets_exactly_one_final_result(family, line):
    reply = answer(FAMILIES[family], PLAIN, Radio(), line)
    if reply is None:
        assert line.strip()[:2].upper() != "AT"
        return
    assert all(block.startswith("\r\n") and block.endswith("\r\n") for block in reply.blocks)
    final = reply.blocks[-1].strip()
    assert final in ("OK", "ERROR", "COMMAND NOT SUPPORT", "TOO MANY PARAMETERS") or final.startswith("+CME ERROR: ")
    assert not any(block.strip() in ("OK", "ERROR") for block in reply.blocks[:-1])


def test_line_is_read_as_the_standard_says():
    for line, expected in (
        ("AT", ()),
        ("ATE0V1", (Command("E", "execute", ("0",)), Command("V", "execute", ("1",)))),
        ("ATE+CSQ", (Command("E", "execute"), Command("+CSQ", "execute"))),
        ("AT&FE1", (Command("&F", "execute"), Command("E", "execute", ("1",)))),
        ("ATS0=0;+CSQ", (Command("S0", "set", ("0",)), Command("+CSQ", "execute"))),
        ("CSQ", None),
        ("", None),
    ):
        assert commands(line) == expected


@given(st.lists(st.text(string.printable.replace("\r", "").replace("\n", ""), max_size=20), max_size=8), st.data())
def test_lines_are_the_same_however_the_bytes_arrive(lines, data):
    stream = b"".join(line.encode("latin-1") + b"\r\n" for line in lines)
    reader, got, i = LineReader(64), [], 0
    while i < len(stream):
        step = data.draw(st.integers(1, len(stream) - i))
        got += reader.feed(stream[i : i + step])
        i += step
    assert got == lines


def test_overlong_line_is_reported_once_and_the_next_one_is_whole():
    reader = LineReader(8)
    assert reader.feed(b"AT" + b"x" * 9000) == []
    assert reader.feed(b"yyy\rAT\r") == [None, "AT"]


def test_broken_line_still_runs_what_comes_before():
    for line in ('AT+CSQ;+QENG="open', "AT+CSQ;+=1", "AT+CSQ;+CSQ~", 'AT+CSQ;+X="a"b', "AT+CSQ;\x01"):
        with pytest.raises(GrammarError) as caught:
            commands(line)
        assert caught.value.before == (Command("+CSQ", "execute"),)


# --- every golden dialogue, byte for byte; and every bin of the codings


GOLDEN = sorted(Path(__file__).parent.glob("golden/*.txt"))


def escaped(block: str) -> str:
    return block.replace("\r", "\\r").replace("\n", "\\n")


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: p.stem)
def test_dialogue_is_as_written(path):
    family = FAMILIES[path.stem.split("-")[0]]
    modem, radio = MODEM, Radio()
    spoken: list[str] = []
    for line in path.read_text().splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "radio":
            radio = Radio(**json.loads(rest))
        elif kind == "modem":
            modem = replace(modem, **json.loads(rest))
        if kind != ">":
            if kind != "<":
                spoken.append(line)
            continue
        spoken.append(line)
        reply = answer(family, modem, radio, rest)
        spoken += ["<"] if reply is None else [f"< {escaped(block)}" for block in reply.blocks]
        modem = modem if reply is None else reply.modem
    assert "\n".join(spoken) == path.read_text().rstrip("\n")


# name, code, lower edge of bin v, highest code, unknown: TS 27.007 8.5 and 8.69, Huawei's ^HCSQ
TABLES = [
    (codes.csq, lambda v: -113 + 2 * v, 31, 99),
    (codes.rsrp, lambda v: -141 + v, 97, 255),
    (codes.rsrq, lambda v: -20 + v / 2, 34, 255),
    (codes.rxlev, lambda v: -111 + v, 63, 99),
    (codes.rscp, lambda v: -121 + v, 96, 255),
    (codes.ecno, lambda v: -24.5 + v / 2, 49, 255),
    (codes.ss_rsrp, lambda v: v - 157, 126, 255),
    (codes.ss_rsrq, lambda v: (v - 87) / 2, 126, 255),
    (codes.ss_sinr, lambda v: (v - 47) / 2, 127, 255),
    (huawei.level_code, lambda v: -121 + v, 96, 255),
    (huawei.sinr_code, lambda v: -20.2 + v / 5, 251, 255),
    (huawei.ecio_code, lambda v: -32.5 + v / 2, 65, 255),
]


def test_edges_of_all_bins():
    for code, lower, top, unknown in TABLES:
        assert [code(lower(v)) for v in range(top + 1)] == list(range(top + 1)), code
        assert (code(lower(0) - 50), code(lower(top) + 50), code(None)) == (0, top, unknown), code
