"""``tandem modem list --inventory``: the lines of an inventory from what is plugged in."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from good_config import GOOD

from support.fake_bus import PATH, FakeBus
from support.fake_sys import Face, FakeSys
from support.scripted_modem import ScriptedModem
from support.web_stick import WebStick
from tandem.app import modem_list, modem_proposal
from tandem.at.channel import open_port
from tandem.at.dialogue import PortLost
from tandem.cli.main import main
from tandem.modem import mm_modem as mm_sims
from tandem.modem.mm_bus import MODEM, MODEM_3GPP, ROOT, SIM, BusLost
from tandem.modem.web import WebChannel

IMSI = "244051234567890"
PROVIDERS = """<serviceproviders><country code="fi">
<provider><name>Red</name><gsm><network-id mcc="244" mnc="05"/>
 <apn value="internet"><usage type="internet"/></apn><apn value="mms"><usage type="mms"/></apn></gsm></provider>
<provider><name>Blue</name><gsm><network-id mcc="244" mnc="91"/>
 <apn value="one"><usage type="internet"/></apn><apn value="two"><usage type="internet"/></apn></gsm></provider>
<provider><name>Green</name><gsm><network-id mcc="310" mnc="260"/>
 <apn value="green"><usage type="internet"/><username>guest</username><password>open</password></apn></gsm></provider>
</country></serviceproviders>"""
READY = {
    "AT+CPIN?": "+CPIN: READY\r\n\r\nOK",
    "AT+CIMI": f"{IMSI}\r\n\r\nOK",
    "AT+CRSM=176,28589,0,0,4": '+CRSM: 144,0,"00000002"\r\n\r\nOK',
    "AT+CRSM=176,28486,0,0,17": '+CRSM: 144,0,"01526564FFFFFFFFFFFFFFFFFFFFFFFFFF"\r\n\r\nOK',
}
"""The SIM of a subscriber of 244 05 that calls itself "Red"."""


class Bench:
    """A machine with a bus to plug into; a modem's port is the scripted modem's, any other is held."""

    def __init__(self, folder: Path) -> None:
        self.sys = FakeSys(folder / "sys")
        self.modem = ScriptedModem(folder / "modem")
        self.modem.answers = dict(READY)
        self.providers = folder / "providers.xml"
        self.providers.write_text(PROVIDERS)
        self.routes = folder / "route"
        self.route()
        self.config = folder / "config.toml"
        self.bus: FakeBus | None = None

    def route(self, *lines: str) -> None:
        head = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        self.routes.write_text(head + "".join(f"{line}\n" for line in lines))

    def open(self, path: str) -> object:
        if path == "/dev/ttyUSB3":
            return open_port(str(self.modem.link))
        raise PortLost(f"{path}: [Errno 16] Device or resource busy")

    def open_bus(self, _wake_fd: int) -> FakeBus:
        if self.bus is None:
            raise BusLost("no system bus")
        return self.bus

    def ask(self, *more: str) -> int:
        words = f"modem list --inventory --sys {self.sys.root} --providers {self.providers}".split()
        given = ["--config", str(self.config)] if self.config.exists() else []
        return main([*words, *given, *more])


@pytest.fixture
def bench(tmp_path, monkeypatch):
    made = Bench(tmp_path)
    monkeypatch.setattr(modem_list, "open_port", made.open)
    monkeypatch.setattr("tandem.modem.mm_modem.system_bus", made.open_bus)
    monkeypatch.setattr(modem_proposal, "ROUTES", made.routes)
    monkeypatch.setattr("tandem.cli.command.CONFIG", made.config)
    yield made
    made.modem.close()


def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def pasted(text: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(text)["tandem_paths"]
    return found


NAME, HOME = "AT+CRSM=176,28486,0,0,17", "AT+CRSM=176,28589,0,0,4"
ABROAD = {
    "AT+CIMI": "310260123456789\r\n\r\nOK",
    HOME: '+CRSM: 144,0,"00000003"\r\n\r\nOK',
    NAME: "ERROR",
    "AT+COPS?": '+COPS: 0,2,"24405",7\r\n\r\nOK',
}


RED = {"operator": "Red", "apn": "internet"}
PROPOSED = {
    "all is told": ({}, RED, ""),
    "the SIM's own name": (
        {NAME: '+CRSM: 144,0,"0180004E004F0049FFFFFFFFFFFFFFFFFF"\r\n\r\nOK'}, {**RED, "operator": "NOI"}, "",
    ),
    "else the network's as published": ({NAME: '+CRSM: 106,130,""\r\n\r\nOK'}, RED, ""),
    "no name": ({"AT+CIMI": "ERROR", NAME: "ERROR"}, {}, "# "),
    "an operator abroad gives no name": (
        ABROAD, {"operator": "Green", "apn": "green", "user": "guest", "password": "{{ secret_password_a }}"},
        "./kit fleet secret KIT secret_password_a -i DIR",
    ),
    "an APN that is one of several is not guessed": (
        {"AT+CIMI": "244911234567890\r\n\r\nOK"}, {"operator": "Red"},
        "published for 24491: one, two; hint: in host_vars, tandem_path_settings: {a: {apn: NAME}}",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PROPOSED)
def test_a_modem_with_a_port_to_spare_is_proposed_by_place_operator_and_apn(bench, capsys, case):
    changed, proposed, said = PROPOSED[case]
    bench.sys.quectel("1-1.2", 0, "wwan0")
    bench.modem.answers |= changed
    assert bench.ask() == 0
    text = capsys.readouterr().out
    assert pasted(text) == [{"name": "a", "usb": "1-1.2", **proposed}]
    assert said in text
    assert ("#" in text) == bool(said)
    assert IMSI[5:] not in text


def test_two_identical_sticks_are_routers_by_themselves_that_give_the_same_addresses(bench, capsys):
    bench.sys.hilink("1-1.10", "eth2")
    bench.sys.hilink("1-1.2", "eth1")
    assert bench.ask("--no-ask", "--json") == 0
    found = told(capsys)
    assert found["paths"] == [
        {"name": "a", "usb": "1-1.2", "port": "http://192.168.8.1", "driver": "hilink"},
        {"name": "b", "usb": "1-1.10", "port": "http://192.168.8.1", "driver": "hilink"},
    ]
    assert (found["separation"], found["problems"]) == ("namespaces", [])
    own = "eth1	0008A8C0	00000000	0001	0	0	700	00FFFFFF	0	0	0"
    other = "eth2	00000000	0109A8C0	0003	0	0	701	00000000	0	0	0"
    bench.route(own, other)
    assert bench.ask("--no-ask", "--json") == 0
    found = told(capsys)
    assert [path["port"] for path in found["paths"]] == ["http://192.168.8.1", "http://192.168.9.1"]
    assert found["separation"] == "routes"
    bench.route()
    assert bench.ask("--no-ask") == 0
    assert "# a and b give the same addresses; modems_separation: auto keeps them apart" in capsys.readouterr().out


def test_a_sticks_own_web_server_is_asked(bench, capsys, monkeypatch):
    bench.sys.hilink("1-1.2", "lo")
    stick = WebStick()
    monkeypatch.setattr(modem_proposal, "WebChannel", lambda _url, interface: WebChannel(stick.url, interface))
    try:
        assert bench.ask("--json") == 0
        good = told(capsys)
        stick.refused["*"] = 100003
        assert bench.ask("--json") == 0
        bad = told(capsys)
    finally:
        stick.close()
    assert (good["paths"][0]["driver"], good["problems"]) == ("hilink", [])
    assert [(one["kind"], one["path"]) for one in bad["problems"]] == [("sim", "a")]


def test_a_modem_with_one_port_is_modemmanagers_and_its_sim_is_told_by_it(bench, capsys):
    bench.sys.plug("1-1.2", "1199", "9071", [Face(12, "02/0e/00", "cdc_mbim", wdm="cdc-wdm0", net="wwan0")])
    assert bench.ask("--json") == 0
    assert [(one["kind"], one["path"]) for one in told(capsys)["problems"]] == [("modem", "a")]
    bench.bus = FakeBus()
    bench.bus.properties[SIM] = {"OperatorIdentifier": "24405", "OperatorName": ""}
    bench.bus.properties[MODEM_3GPP] |= {"OperatorName": "Red net"}
    answer = bench.bus._answer
    bench.bus._answer = lambda call: (
        dict(bench.bus.properties[SIM]) if bench.bus and call.path == f"{ROOT}/SIM/0" else answer(call)
    )
    assert bench.ask() == 0
    text = capsys.readouterr().out
    assert pasted(text) == [
        {"name": "a", "usb": "1-1.2", "port": "modemmanager:1-1.2", "operator": "Red net", "apn": "internet"}
    ]
    bench.bus.properties[MODEM] |= {"State": 2, "UnlockRequired": 2}
    assert bench.ask("--json") == 0
    assert [one["kind"] for one in told(capsys)["problems"]] == ["pin"]
    assert PATH in bench.bus._answer(mm_sims.Call(ROOT, mm_sims.OBJECTS, "GetManagedObjects"))


def test_paths_of_the_configuration_keep_their_names_while_the_collector_holds_their_ports(bench, capsys):
    bench.sys.quectel("1-1.1", 0, "wwan0")
    bench.sys.quectel("1-1.3", 4, "wwan1")
    bench.config.write_text(
        GOOD[: GOOD.index("[[path]]")]
        + '[[path]]\nname = "a"\noperator = "Mine"\nusb = "1-1.3"\n[path.modem]\nusb = "1-1.3"\n'
        + '[path.modem.connection]\napn = "own"\n'
        + '[[path]]\nname = "home"\ninterface = "eth9"\n'
    )
    assert bench.ask("--json") == 0
    found = told(capsys)
    assert found["paths"] == [
        {"name": "b", "usb": "1-1.1", "operator": "Red", "apn": "internet"},
        {"name": "a", "usb": "1-1.3", "operator": "Mine", "apn": "own"},
    ]
    assert found["problems"] == []


def test_it_waits_for_a_modem_that_comes_and_a_list_that_is_missing_is_one_line(bench, capsys, monkeypatch):
    monkeypatch.setattr("tandem.cli.modem.time.sleep", lambda _s: bench.sys.quectel("1-1.2", 0, "wwan0"))
    assert bench.ask("--wait", "600") == 0
    assert [path["name"] for path in pasted(capsys.readouterr().out)] == ["a"]
    bench.providers.unlink()
    assert bench.ask() == 3
    assert "hint: apt install mobile-broadband-provider-info" in capsys.readouterr().err
