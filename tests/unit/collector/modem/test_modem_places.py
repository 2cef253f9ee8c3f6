"""The poller at a modem that is named by its place, at a stick's web server, and the recorder."""

import json
import logging
import stat
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.fake_sys import FakeSys
from support.scripted_modem import LINES, POLL, Collected, ScriptedModem, good, polling
from tandem.app.config import parse
from tandem.app.daemon.modems import modem_poller
from tandem.at.channel import Channel, open_port
from tandem.at.dialogue import PortLost, Response
from tandem.at.grammar import Final
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.modem.families import drivers
from tandem.modem.poller import Poller
from tandem.modem.recorder import record_at
from tandem.modem.session import UsbPort, access
from tandem.modem.sim import HASH, SecretError, SimWatch, card_hash, hashed, iccid, secret_of
from tandem.schema.record import Record

SECRET = bytes(range(32))
ICCID = "8935801234567890123"


pytestmark = pytest.mark.usefixtures("patient")


def test_a_place_without_a_modem_is_a_lost_port_that_says_what_to_do(tmp_path):
    with pytest.raises(PortLost, match="tandem modem list"):
        UsbPort("1-1.2", FakeSys(tmp_path / "sys").root).look()
    for port, usb in ((None, None), ("/dev/x", "1-1")):
        with pytest.raises(ValueError, match="either"):
            access(port, usb)


def test_the_sim_is_asked_once_a_set_up_and_another_one_is_told(modem):
    crsm = "AT+CRSM=176,12258,0,0,10"
    modem.answers = {crsm: '+CRSM: 144,0,"985308214365870921F3"\r\n\r\nOK'}
    told, made = Collected(), Collected()
    watch = SimWatch("0" * 24, SECRET, told.add)
    with polling(Poller("a", "A", str(modem.link), "auto", 0.1, made.add, sim=watch)):
        made.wait(lambda p: sum(map(good, p)) >= 4)
        assert modem.heard.count(crsm) == 1
        modem.unplug()
        made.wait(lambda p: p[-1].failure == "port_lost")
        modem.plug()
        made.wait(lambda p: good(p[-1]))
    assert modem.heard.count(crsm) == 2
    assert told.made == [f"the SIM here is {hashed(ICCID, SECRET)}, the configuration names {'0' * 24}"]


def test_a_recording_is_a_transcript_without_identities_that_its_driver_reads(modem):
    modem.answers = {
        "ATI": "Quectel\r\nEC25\r\nRevision: EC25EFAR06A06M4G\r\nIMEI: 861234567890123\r\n\r\nOK",
        "AT+CSQ": "+CSQ: 20,99\r\n\r\nOK",
        "AT+CEREG?": '+CEREG: 2,1,"1A2B","05A2C30B",7\r\n+CLIP: "+358401234567",145\r\n\r\nOK',
        "AT+CGATT?": "+CME ERROR: 30",
    }
    port = open_port(str(modem.link))
    try:
        made = record_at(port)
    finally:
        port.close()
    assert made["driver"] == "quectel"
    assert {turn["send"] for turn in made["further"]} >= {POLL, *drivers()["generic"].poll}
    assert [turn["send"] for turn in made["dialogue"]] == [POLL]
    assert made["expected"]["rsrp_dbm"] == -95.0
    assert made["identity"] == {"manufacturer": "Quectel", "model": "EC25", "revision": "EC25EFAR06A06M4G"}
    assert [line for line in made["dialogue"][0]["receive"].splitlines() if line not in ("", POLL, "OK")] == list(LINES)
    text = json.dumps(made)
    assert "8612345" not in text
    assert "35840" not in text
    further = {turn["send"]: turn["receive"] for turn in made["further"]}
    assert "+CME ERROR: 30" in further["AT+CGATT?"]
    assert '"05A2C30B"' in further["AT+CEREG?"]
    assert "AT+CGSN" not in modem.heard
    assert not any("CIMI" in command for command in modem.heard)


# --- a modem changes its cell and loses service between two polls: noticed when it says so, by the collector's own wiring

PERIOD_S = 3600.0
"""There is one poll, at the beginning."""
GOOD = (Path(__file__).parents[1] / "app" / "good.toml").read_text()


def test_a_handover_and_a_loss_are_noticed_when_the_modem_says_so(tmp_path, modem, monkeypatch):
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 0.1)  # of an hour
    config = parse(GOOD.replace("/dev/ttyUSB2", str(modem.link)), tmp_path / "c.toml")
    made, detectors, events = Collected(), Detectors(Settings(period_s=3.0)), list[Record]()
    path = next(p for p in config.paths if p.name == "a")
    with polling(modem_poller(path, PERIOD_S, made.add, lambda _path: None)):
        (poll,) = made.wait(lambda things: len(things) == 1)
        events += detectors.feed(poll.record())
        for number, line in enumerate(('+CEREG: 1,"1A2B","05A2C40C",7', "+CEREG: 2"), 2):
            before_ns = time.monotonic_ns()
            modem.say(line)
            (told,) = made.wait(lambda things, n=number: len(things) == n)[-1]
            assert before_ns < told.monotonic_ns < time.monotonic_ns()
            events += detectors.feed(told)
    events += detectors.tick(told.monotonic_ns + 10**12)  # a reported loss against which nothing spoke is believed
    handover, loss = (one for one in events if one.tags["kind"] in ("handover", "service_lost"))
    assert (handover.fields["from_eci"], handover.fields["to_eci"]) == (0x5A2C30B, 0x5A2C40C)
    assert (loss.tags["kind"], loss.monotonic_ns) == ("service_lost", told.monotonic_ns)


# --- the SIM's number: read in every form, given as a hash only

OK = Final("ok", "ok")


def test_every_form_gives_the_same_number_and_what_is_none_gives_none():
    swapped = "985308214365870921F3"
    for command, line in (
        ("AT+CRSM=176,12258,0,0,10", f'+CRSM: 144,0,"{swapped}"'),
        ("AT+CRSM=176,12258,0,0,10", f"+CRSM: 144,0,{swapped.lower()}"),
        ("AT+CCID", f"+CCID: {ICCID}"),
        ("AT+CCID", f"{ICCID}F"),
        ("AT+CCID", "8935 8012 3456 7890 123"),
        ("AT+ICCID", f'+ICCID: "{ICCID}"'),
        ("AT^ICCID?", f"^ICCID: {swapped}"),
        ("AT+QCCID", f"+QCCID: {ICCID}"),
    ):
        assert iccid(Response(command, (line,), OK)) == ICCID, line
    nothing = '+CRSM: 144,0,"FFFFFFFFFFFFFFFFFFFF"'
    for line in ("+CRSM: 106,130", "+CRSM: 144,0", "", "+CCID: ", "+CCID: 861234567890123", nothing):
        for command in ("AT+CRSM=176,12258,0,0,10", "AT+CCID"):
            assert iccid(Response(command, (line,), OK)) is None, line
    assert iccid(Response("AT+CCID", (ICCID,), Final("error", "error"))) is None


@given(st.lists(st.text(max_size=60), max_size=4))
def test_any_answer_gives_a_number_or_none(lines):
    found = iccid(Response("AT+CCID", tuple(lines), OK))
    assert found is None or (found.startswith("89") and found.isdigit())


def test_the_modem_is_asked_until_it_tells_and_the_number_is_nowhere_in_the_log(tmp_path, caplog):
    caplog.set_level(logging.DEBUG)
    modem = ScriptedModem(tmp_path / "modem")
    modem.answers = {
        "AT+CRSM=176,12258,0,0,10": "+CME ERROR: 4",
        "AT+CCID": "ERROR",
        "AT+ICCID": f"+ICCID: {ICCID}\r\n\r\nOK",
    }
    channel = Channel(open_port(str(modem.link)))
    try:
        assert card_hash(channel, SECRET) == hashed(ICCID, SECRET)
        assert modem.heard == ["AT+CRSM=176,12258,0,0,10", "AT+CCID", "AT+ICCID"]
        modem.answers = {}
        assert card_hash(channel, SECRET) is None
    finally:
        channel.close()
        modem.close()
    assert ICCID[4:12] not in caplog.text


def test_the_secret_is_made_once_for_its_owner_only(tmp_path):
    file = tmp_path / "sim.secret"
    made = secret_of(file)
    assert secret_of(file) == made
    assert len(made) == 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [f.name for f in tmp_path.iterdir()] == ["sim.secret"]
    file.write_bytes(b"short")
    with pytest.raises(SecretError, match="no secret of 32 bytes; hint: remove it"):
        secret_of(file)
    with pytest.raises(SecretError, match="hint"):
        secret_of(tmp_path / "none" / "sim.secret")


def test_another_sim_is_told_once_and_again_after_the_right_one_was_there():
    told: list[str] = []
    watch = SimWatch("a" * 24, SECRET, told.append)
    for sim in ("a" * 24, "b" * 24, None, "b" * 24, "c" * 24, "a" * 24, "b" * 24):
        watch.found(sim)
    assert [one[len("the SIM here is ") :][0] for one in told] == ["b", "c", "b"]


def test_a_hash_depends_on_the_secret_and_tells_nothing_of_the_number():
    assert HASH.match(hashed(ICCID, SECRET))
    assert hashed(ICCID, SECRET) != hashed(ICCID, bytes(32)) != hashed(ICCID[:-1] + "4", bytes(32))
