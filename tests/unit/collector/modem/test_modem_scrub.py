"""No identity survives, in no notation; what a radio record needs does."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tandem.modem
from tandem.modem.recorder import scrub, scrubbed


def luhn(digits: str) -> str:
    """``digits`` with the check digit of IMEIs and ICCIDs behind them."""
    total = sum(sum(divmod(int(d) * (2 - i % 2), 10)) for i, d in enumerate(reversed(digits)))
    return digits + str(-total % 10)


def of(alphabet: str, low: int, high: int) -> st.SearchStrategy[str]:
    return st.text(alphabet, min_size=low, max_size=high)


DIGITS = "0123456789"
NONZERO = of("123456789", 4, 4)
IMEI = st.tuples(st.just("35"), NONZERO, of(DIGITS, 8, 8)).map("".join).map(luhn)
IMSI = st.tuples(st.just("244"), NONZERO, of(DIGITS, 7, 8)).map("".join)
ICCID = st.tuples(st.just("89"), NONZERO, of(DIGITS, 11, 13)).map("".join).map(luhn)
OTHER = st.tuples(NONZERO, of(DIGITS, 10, 16)).map("".join)


def swapped(digits: str) -> str:
    padded = digits + "F" * (len(digits) % 2)
    return "".join(padded[i + 1] + padded[i] for i in range(0, len(padded), 2))


def groups(text: str, sizes: tuple[int, ...], separator: str) -> str:
    out, at = [], 0
    while at < len(text):
        size = sizes[min(len(out), len(sizes) - 1)]
        out.append(text[at : at + size])
        at += size
    return separator.join(out)


NOTATIONS = {
    "plain": lambda n: n,
    "quoted": lambda n: f'"{n}"',
    "single quotes": lambda n: f"'{n}'",
    "glued": lambda n: f"IMEI{n}x",
    "fours": lambda n: groups(n, (4,), " "),
    "pairs": lambda n: groups(n, (2,), " "),
    "single digits": lambda n: groups(n, (1,), " "),
    "as on the label": lambda n: groups(n, (2, 6, 6, 2), "-"),
    "as an IMSI is read": lambda n: groups(n, (3, 2, 15), " "),
    "halves": lambda n: groups(n, (8, 12), " "),
    "hex of ASCII": lambda n: n.encode().hex(),
    "HEX OF ASCII": lambda n: n.encode().hex().upper(),
    "UCS2": lambda n: n.encode("utf-16-be").hex().upper(),
    "spaced hex of ASCII": lambda n: groups(n.encode().hex(), (2,), " "),
    "0x bytes": lambda n: ",".join(f"0x{b:02X}" for b in n.encode()),
    "swapped": swapped,
    "swapped, spaced": lambda n: groups(swapped(n), (2,), " "),
    "swapped, with colons": lambda n: groups(swapped(n), (2,), ":"),
    "swapped, lower case": lambda n: swapped(n).lower(),
    "filled with F": lambda n: n + "F",
}
AROUND = [
    "{}",
    "+CIMI: {}",
    "\r\n{}\r\n\r\nOK\r\n",
    '+CRSM: 144,0,"{}"',
    '#RFSTS: "244 91",1300,{},"X",3,3',
    "<Imei>{}</Imei>",
    '{{"imei":"{}","a":1}}',
    "IMEI: {}",
]


@pytest.mark.parametrize("notation", NOTATIONS)
@given(st.one_of(IMEI, IMSI, ICCID, OTHER), st.sampled_from(AROUND))
def test_an_identity_goes_whatever_its_notation_and_every_length_stays(notation, number, around):
    told = around.format(NOTATIONS[notation](number))
    clean = scrub(told)
    assert len(clean) == len(told)
    assert scrub(clean) == clean
    frame = around.format("")
    left = re.sub("[^1-9A-Fa-f]", "", clean)
    allowed = re.sub("[^1-9A-Fa-f]", "", frame + ("IMEI" if notation == "glued" else ""))
    assert len(left) <= len(allowed), clean
    assert not re.search(r"[1-9].*?".join(number[2:6]), clean.replace("1300", "").replace("144", ""))


@given(
    st.text(DIGITS, min_size=7, max_size=15),
    st.sampled_from(["+{}", '+CNUM: "me","{}",129', '+CLIP: "{}",145', '"{}",129', '"+{}"', "tel:+{}"]),
)
def test_telephone_numbers_go(number, form):
    assert not re.search("[1-9]", re.sub(r"129|145", "", scrub(form.format(number))))


PERSONAL = [
    '+CMT: "+358401234567",,"26/01/01,12:00:00+08"\r\nMeet me at noon\r\n',
    '+CUSD: 0,"Your balance is 12.34",15',
    "<Msisdn>0401234567</Msisdn>",
    '"ssid":"Home of Anna"',
    "MacAddress1: 0C:5B:8F:27:9A:64",
    "<SerialNumber>ABCDEF0123</SerialNumber>",
]
KEPT = [
    '+QENG: "servingcell","NOCONN","LTE","FDD",244,91,5A2C30B,211,1300,3,5,5,1A2B,-95,-10,-66,150,33',
    "+CPSI: LTE,Online,244-91,0x1A2B,94552843,211,EUTRAN-BAND3,1300,5,5,-100,-950,-660,12",
    "             1300 310 410 12345 01234567  4 3 3 -14 123 -19.2 -96.4 -58.4 17",
    '+QENG: "NR5G-SA","TDD",244,91,68719476735,500,1A2B,620000,78,12,-95,-10,20',
    "EC25EFAR06A06M4G_20.200.20.200",
    "21.200.03.00.1080",
    '+CCLK: "26/11/21,13:24:14+08"',
    "10.64.128.200",
]


def test_what_is_personal_by_its_name_goes_and_what_a_record_needs_stays():
    assert [text for text in PERSONAL if re.search("noon|balance|Anna|0401|5B|0123|3584", scrub(text))] == []
    assert [scrub(text) for text in KEPT] == KEPT


def test_the_families_transcripts_are_what_scrubbing_leaves():
    files = sorted(Path(tandem.modem.__file__).parent.glob("families/transcripts/*/*.json"))
    changed = []
    for file in files:
        content = json.loads(file.read_text())
        for turn, clean in zip(content["dialogue"], scrubbed(content["dialogue"]), strict=True):
            if turn["receive"] != clean["receive"]:
                changed.append((str(file), turn["receive"], clean["receive"]))
    assert files
    assert not changed


@given(st.text("0123456789ABCDEFabcdef \"'-:/,.+x\r\nOK<>={}\\", max_size=200))
def test_any_text_keeps_its_length_and_lines_and_scrubbing_twice_changes_nothing(text):
    clean = scrub(text)
    assert len(clean) == len(text)
    assert [len(line) for line in clean.splitlines()] == [len(line) for line in text.splitlines()]
    assert scrub(clean) == clean
    assert not re.search("[1-9][0-9]{13}|[0-9]{13}[1-9]", clean)
