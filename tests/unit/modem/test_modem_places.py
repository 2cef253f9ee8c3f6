"""The poller at a modem that is named by its place, at a stick's web server, and the recorder."""

import json
from pathlib import Path

import pytest
from fake_sys import FakeSys
from scripted_modem import LINES, POLL, Collected, ScriptedModem, good

from tandem.at.channel import open_port
from tandem.at.errors import PortLost
from tandem.modem.access import UsbPlace, access
from tandem.modem.poller import Poller
from tandem.modem.recorder import Recorder, replay, transcript
from tandem.modem.sim import SimWatch, hashed

SECRET = bytes(32)
NUMBER = "8935801234567890123"


pytestmark = pytest.mark.usefixtures("patient")


def test_a_place_without_a_modem_is_a_lost_port_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(PortLost, match="tandem modem list"):
        UsbPlace("1-1.2", FakeSys(tmp_path / "sys").root).look()
    for port, usb in ((None, None), ("/dev/x", "1-1")):
        with pytest.raises(ValueError, match="either"):
            access(port, usb)


def test_the_sim_is_asked_once_a_set_up_and_another_one_is_told(modem: ScriptedModem) -> None:
    crsm = "AT+CRSM=176,12258,0,0,10"
    modem.answers = {crsm: '+CRSM: 144,0,"985308214365870921F3"\r\n\r\nOK'}
    told, made = Collected(), Collected()
    watch = SimWatch("0" * 24, SECRET, told.add)
    poller = Poller("a", "A", str(modem.link), "auto", 0.1, made.add, sim=watch)
    poller.start()
    try:
        made.wait(lambda p: sum(map(good, p)) >= 4)
        assert modem.heard.count(crsm) == 1
        modem.unplug()
        made.wait(lambda p: p[-1].failure == "port_lost")
        modem.plug()
        made.wait(lambda p: good(p[-1]))
    finally:
        poller.stop(60)
    assert modem.heard.count(crsm) == 2
    assert told.made == [f"the SIM here is {hashed(NUMBER, SECRET)}, the configuration names {'0' * 24}"]


def test_a_recording_is_a_transcript_without_identities_that_its_driver_reads(modem: ScriptedModem) -> None:
    modem.answers = {
        "ATI": "Quectel\r\nEC25\r\nRevision: EC25EFAR06A06M4G\r\nIMEI: 861234567890123\r\n\r\nOK",
        "AT+CSQ": "+CSQ: 20,99\r\n\r\nOK",
        "AT+CEREG?": '+CEREG: 2,1,"1A2B","05A2C30B",7\r\n+CLIP: "+358401234567",145\r\n\r\nOK',
        "AT+CGATT?": "+CME ERROR: 30",
    }
    port = open_port(str(modem.link))
    recorder = Recorder(port)
    try:
        identity, matching = recorder.record()
    finally:
        port.close()
    assert [d.name for d in matching] == ["quectel", "generic"]
    made = transcript(identity, matching[0], recorder.turns, "2026-01-01")
    assert [turn["send"] for turn in made["dialogue"]] == [POLL]
    assert made["expected"]["rsrp_dbm"] == -95.0
    assert made["identity"] == {"manufacturer": "Quectel", "model": "EC25", "revision": "EC25EFAR06A06M4G"}
    assert replay(POLL, made["dialogue"][0]["receive"]).lines == LINES
    text = json.dumps(made)
    assert "8612345" not in text
    assert "35840" not in text
    further = {turn["send"]: turn["receive"] for turn in made["further"]}
    assert "+CME ERROR: 30" in further["AT+CGATT?"]
    assert '"05A2C30B"' in further["AT+CEREG?"]
    assert "AT+CGSN" not in modem.heard
    assert not any("CIMI" in command for command in modem.heard)
