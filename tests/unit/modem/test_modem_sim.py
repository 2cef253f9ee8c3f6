"""The SIM's number: read in every form, given as a hash only."""

import logging
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_modem import ScriptedModem

from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import Response
from tandem.at.grammar import Final
from tandem.modem.sim import HASH, SecretError, SimWatch, card_hash, hashed, iccid, secret_of

OK = Final("ok", "ok")
NUMBER = "8935801234567890123"
SECRET = bytes(range(32))


def test_every_form_gives_the_same_number_and_what_is_none_gives_none() -> None:
    swapped = "985308214365870921F3"
    for command, line in (
        ("AT+CRSM=176,12258,0,0,10", f'+CRSM: 144,0,"{swapped}"'),
        ("AT+CRSM=176,12258,0,0,10", f"+CRSM: 144,0,{swapped.lower()}"),
        ("AT+CCID", f"+CCID: {NUMBER}"),
        ("AT+CCID", f"{NUMBER}F"),
        ("AT+CCID", "8935 8012 3456 7890 123"),
        ("AT+ICCID", f'+ICCID: "{NUMBER}"'),
        ("AT^ICCID?", f"^ICCID: {swapped}"),
        ("AT+QCCID", f"+QCCID: {NUMBER}"),
    ):
        assert iccid(Response(command, (line,), OK)) == NUMBER, line
    nothing = '+CRSM: 144,0,"FFFFFFFFFFFFFFFFFFFF"'
    for line in ("+CRSM: 106,130", "+CRSM: 144,0", "", "+CCID: ", "+CCID: 861234567890123", nothing):
        for command in ("AT+CRSM=176,12258,0,0,10", "AT+CCID"):
            assert iccid(Response(command, (line,), OK)) is None, line
    assert iccid(Response("AT+CCID", (NUMBER,), Final("error", "error"))) is None


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_answer_gives_a_number_or_none(lines: list[str]) -> None:
    found = iccid(Response("AT+CCID", tuple(lines), OK))
    assert found is None or (found.startswith("89") and found.isdigit())


def test_the_modem_is_asked_until_it_tells_and_the_number_is_nowhere_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    modem = ScriptedModem(tmp_path / "modem")
    modem.answers = {
        "AT+CRSM=176,12258,0,0,10": "+CME ERROR: 4",
        "AT+CCID": "ERROR",
        "AT+ICCID": f"+ICCID: {NUMBER}\r\n\r\nOK",
    }
    channel = Channel(open_port(str(modem.link)))
    try:
        assert card_hash(channel, SECRET) == hashed(NUMBER, SECRET)
        assert modem.heard == ["AT+CRSM=176,12258,0,0,10", "AT+CCID", "AT+ICCID"]
        modem.answers = {}
        assert card_hash(channel, SECRET) is None
    finally:
        channel.close()
        modem.close()
    assert NUMBER[4:12] not in caplog.text


def test_the_secret_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    file = tmp_path / "sim.secret"
    made = secret_of(file)
    assert secret_of(file) == made
    assert len(made) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [f.name for f in tmp_path.iterdir()] == ["sim.secret"]
    file.write_bytes(b"short")
    with pytest.raises(SecretError, match="no secret of 32 bytes; mend: remove it"):
        secret_of(file)
    with pytest.raises(SecretError, match="mend"):
        secret_of(tmp_path / "none" / "sim.secret")


def test_another_sim_is_told_once_and_again_after_the_right_one_was_there() -> None:
    told: list[str] = []
    watch = SimWatch("a" * 24, SECRET, told.append)
    for sim in ("a" * 24, "b" * 24, None, "b" * 24, "c" * 24, "a" * 24, "b" * 24):
        watch.found(sim)
    assert [one[len("the SIM here is ") :][0] for one in told] == ["b", "c", "b"]


def test_a_hash_depends_on_the_secret_and_tells_nothing_of_the_number() -> None:
    assert HASH.match(hashed(NUMBER, SECRET))
    assert hashed(NUMBER, SECRET) != hashed(NUMBER, bytes(32)) != hashed(NUMBER[:-1] + "4", bytes(32))
