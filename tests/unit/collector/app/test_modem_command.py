"""``tandem modem`` as people call it: output, reasons, exit codes."""

import io
import json

import pytest
from good_config import GOOD

from support.fake_sys import Face, FakeSys
from support.scripted_modem import ScriptedModem
from support.web_stick import WebStick
from tandem.app import modem_list
from tandem.at.channel import open_port
from tandem.at.dialogue import PortLost
from tandem.cli.main import main
from tandem.modem.decoding import ALWAYS

CONFIG = (
    GOOD.replace('port = "/dev/ttyUSB2"', 'usb = "1-1.2"')
    .replace('"/dev/ttyUSB6"', '"http://192.168.8.1"')
    .replace("wwan1", "eth2")
)


@pytest.fixture
def fed(monkeypatch):
    def feed(raw: bytes) -> None:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))

    return feed


def test_decode_prints_one_object(fed, capsys):
    fed(b"AT+CESQ\r\r\n+CESQ: 99,99,255,255,20,80\r\n\r\nOK\r\n")
    assert main(["modem", "decode", "--command", "AT+CESQ"]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert set(ALWAYS) <= set(found)
    assert (found["rsrp_dbm"], found["sinr_db"], err) == (-61.0, None, "")


def test_decode_reads_a_file(tmp_path, capsys):
    file = tmp_path / "answer"
    file.write_bytes(b"+CSQ: 20,99\nOK\n")
    assert main(["modem", "decode", "--command", "+CSQ", "--driver", "generic", str(file)]) == 0
    assert json.loads(capsys.readouterr().out)["rssi_dbm"] == -73.0
    for bad in (tmp_path / "none", tmp_path, "a\0b"):
        assert main(["modem", "decode", "--command", "+CSQ", str(bad)]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_decode_says_why_it_cannot_in_one_line(fed, capsys):
    for args, raw, code, reason in (
        (["AT+CESQ"], b"+CME ERROR: 10", 1, "no SIM inserted"),
        (["AT+CESQ"], b"", 1, "empty"),
        (["AT+CESQ", "--driver", "nokia"], b"+CESQ: 1", 2, "unknown driver 'nokia'; known: "),
        (["\udcff\n\x1b"], b"x", 1, "no known family"),
    ):
        fed(raw)
        assert main(["modem", "decode", "--command", *args]) == code
        out, err = capsys.readouterr()
        assert (out, len(err.splitlines())) == ("", 1)
        assert reason in err


@pytest.fixture
def plugged(tmp_path, monkeypatch):
    fake, modem = FakeSys(tmp_path / "sys"), ScriptedModem(tmp_path / "modem")
    fake.quectel("1-1.2", 0, "wwan0")
    fake.quectel("1-1.3", 4, "wwan1")
    fake.hilink("1-1.4", "eth2")
    fake.plug("1-1.1", "12d1", "15cd", [Face(0, "08/06/50", "usb-storage")])

    def open_here(path: str) -> object:
        if path == "/dev/ttyUSB3":
            return open_port(str(modem.link))
        raise PortLost(f"{path}: [Errno 16] could not open port {path}: [Errno 16] Device or resource busy")

    monkeypatch.setattr(modem_list, "open_port", open_here)
    yield fake, modem
    modem.close()


def test_list_tells_place_driver_ports_slot_and_state(plugged, tmp_path, capsys):
    fake, modem = plugged
    modem.answers = {
        "AT+CPIN?": "+CPIN: READY\r\n\r\nOK",
        "AT+CRSM=176,12258,0,0,10": '+CRSM: 144,0,"985308214365870921F3"\r\n\r\nOK',
    }
    (tmp_path / "config.toml").write_text(CONFIG)
    asked = ["modem", "list", "--sys", str(fake.root), "--config", str(tmp_path / "config.toml")]
    assert main([*asked, "--json", "--sim"]) == 0
    found = {one["usb"]: one for one in json.loads(capsys.readouterr().out)}
    assert {usb: (one["driver"], one["state"], one["slot"]) for usb, one in found.items() if usb != "1-1.4"} == {
        "1-1.1": ("huawei", "waits for its mode switch", None),
        "1-1.2": ("quectel", "ready", "a"),
        "1-1.3": ("quectel", "in use", None),
    }
    first = found["1-1.2"]
    assert (first["model"], first["port"], first["networks"]) == ("EC25", "/dev/ttyUSB3", ["wwan0"])
    owners = {port["name"]: port["owner"] for port in first["ports"]}
    wanted = {"/dev/ttyUSB2": "modemmanager", "/dev/ttyUSB3": "collector", "/dev/ttyUSB0": None}
    assert owners.items() >= wanted.items()
    assert (first["pollable"], first["radio_state"], first["rat"], first["rsrp_dbm"]) == (True, "idle", "LTE", -95.0)
    assert (found["1-1.3"]["pollable"], found["1-1.1"]["pollable"]) == (False, False)
    assert len(first["sim"]) == 24
    assert "8935801234567890123"[4:12] not in json.dumps(found)
    modem.answers["AT+CPIN?"] = "+CME ERROR: 10"
    assert main(asked) == 0
    text = capsys.readouterr().out
    assert "slot a (A)  state +CME ERROR 10: no SIM inserted" in text
    assert "waits for its mode switch to 12d1:1506" in text
    assert "interface 3  /dev/ttyUSB3  at-second  <- the collector's" in text


def test_list_tells_of_modems_that_only_the_configuration_names(tmp_path, capsys):
    modem, stick = ScriptedModem(tmp_path / "modem"), WebStick()
    rows = {
        "a": f'port = "{modem.link}"', "b": f'port = "{stick.url}"', "c": 'usb = "1-1.2"', "d": 'port = "/dev/no-such-port"',
        "e": 'port = "modemmanager:1-1.4"',
    }  # fmt: skip
    text = CONFIG[: CONFIG.index("[[path]]")]
    for name, where in rows.items():
        interface = "lo" if name == "b" else f"no{name}"
        text += f'[[path]]\nname = "{name}"\noperator = "Op-{name}"\ninterface = "{interface}"\n[path.modem]\n{where}\n'
    (tmp_path / "config.toml").write_text(text)
    modem.answers = {"AT+CPIN?": "+CPIN: READY\r\n\r\nOK"}
    asked = ["modem", "list", "--sys", str(tmp_path / "empty"), "--config", str(tmp_path / "config.toml")]
    try:
        assert main([*asked, "--json"]) == 0
        found = {one["slot"]: one for one in json.loads(capsys.readouterr().out)}
        assert main(asked) == 0
        shown = capsys.readouterr().out
        stick.refused["*"] = 100003
        assert main(asked) == 0
        refused = capsys.readouterr().out
    finally:
        stick.close()
        modem.close()
    assert {name: (one["driver"], one["pollable"], one.get("rsrp_dbm")) for name, one in found.items()} == {
        "a": ("quectel", True, -95.0), "b": ("hilink", True, -95.0), **dict.fromkeys("cde", (None, False, None)),
    }  # fmt: skip
    assert "nothing that is a modem is plugged in there" in found["c"]["state"]
    assert "slot a (Op-a)  state ready" in shown
    assert "hears LTE, idle, network 24491, RSRP -95 dBm, eNB 369347 sector 11" in shown
    assert "state there is no such port" in shown
    assert "slot b (Op-b)  state refuses: login needed" in refused


def test_list_without_asking_opens_nothing_and_an_empty_bus_is_a_negative_result(plugged, tmp_path, capsys):
    fake, modem = plugged
    assert main(["modem", "list", "--sys", str(fake.root), "--no-ask", "--json"]) == 0
    assert "not asked" in {one["state"] for one in json.loads(capsys.readouterr().out)}
    assert modem.heard == []
    assert main(["modem", "list", "--sys", str(tmp_path / "empty")]) == 1
    assert "no modem is plugged in" in capsys.readouterr().out
    assert main(["modem", "list", "--config", str(tmp_path / "none.toml")]) == 2


def test_watch_prints_a_line_a_poll_and_what_is_said_unasked_and_ends_after_so_many(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 300.0)  # no answer is too late
    modem = ScriptedModem(tmp_path / "modem")
    asked = ["modem", "watch", "--port", str(modem.link), "--period", "0.2", "--count"]
    try:
        assert main([*asked, "2"]) == 0
        text = capsys.readouterr().out.splitlines()
        modem.lines = ('+CEREG: 1,"1A2B","05A2C30C",7', *modem.lines)
        assert main([*asked, "1"]) == 0
        first, second = capsys.readouterr().out.splitlines()
        assert main([*asked, "1", "--json"]) == 0
        told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    finally:
        modem.close()
    assert len(text) == 2
    assert all("idle" in line and "RSRP -95.0 dBm" in line for line in text)
    assert first.endswith("says unasked:  registered  LTE  eNB 369347  sector 12")
    assert "RSRP -95.0 dBm" in second
    assert [one["measurement"] for one in told] == ["registration", "radio"]
    assert told[1]["rsrp_dbm"] == -95.0
    assert main(["modem", "watch", "--port", str(tmp_path / "none"), "--period", "0.2", "--count", "1"]) == 1
    assert "no poll was answered" in capsys.readouterr().err


def test_wrong_usage_is_one_line_and_status_2(capsys):
    for args, reason in (
        (["watch", "--usb", "nowhere"], "no USB path"),
        (["watch", "--port", "/dev/x", "--driver", "nokia"], "unknown driver 'nokia'"),
        (["watch", "--config", "/none.toml"], "hint"),
        (["record", "--port", "http://stick"], "not of the form"),
    ):
        assert main(["modem", *args]) == 2
        err = capsys.readouterr().err
        assert reason in err
        assert len(err.splitlines()) == 1


def test_record_writes_the_transcript_whole(tmp_path, capsys):
    modem, out = ScriptedModem(tmp_path / "modem"), tmp_path / "made.json"
    try:
        assert main(["modem", "record", "--port", str(modem.link), "--out", str(out)]) == 0
        assert out.stat().st_mode & 0o777 == 0o644  # who asked with sudo looks it through without
        assert main(["modem", "record", "--port", str(modem.link), "--out", str(tmp_path / "no" / "folder.json")]) == 1
        assert "No such file" in capsys.readouterr().err
    finally:
        modem.close()
    assert json.loads(out.read_text())["driver"] == "quectel"
    assert not list(tmp_path.glob("*.tmp"))
    assert main(["modem", "record", "--port", str(tmp_path / "gone")]) == 1


def test_udev_prints_the_rules(capsys):
    assert main(["modem", "udev"]) == 0
    assert 'ENV{ID_MM_PORT_IGNORE}="1"' in capsys.readouterr().out
