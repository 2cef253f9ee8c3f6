"""One modem with two ports: what is shared, what is each port's own, and the one plug."""

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from support.modem_on_fake_clock import MODEM, write_timeline
from tandem_bench.gadget.modem import UsbModem
from tandem_bench.modem.emulator import Agenda
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.faults import Fault
from tandem_bench.modem.timeline import read


class Line:
    def __init__(self) -> None:
        self.said = b""

    def write(self, sent: bytes) -> None:
        self.said += sent

    def unread(self) -> int:
        return 0


class Bus:
    """Two lines, one plug, and a clock that runs as told."""

    def __init__(self, folder: Path) -> None:
        self.now_s, self.agenda, self.lines = 0.0, Agenda(), [Line(), Line()]
        self.moves: list[str] = []
        self.noted: list[Fault] = []
        timeline = read(write_timeline(folder / "timeline.jsonl", [{}]))
        who = replace(MODEM, echo=False, powers_up_echoing=False)
        self.usb = UsbModem(
            FAMILIES["ublox"], who, timeline, self.lines, self, self.agenda, lambda: self.now_s, random.Random(1), self.noted.append
        )  # fmt: skip
        self.usb.start()

    def plug(self) -> None:
        self.moves.append("in")

    def unplug(self) -> None:
        self.moves.append("out")

    def run(self, seconds: float) -> None:
        until = self.now_s + seconds
        while (due := self.agenda.next_due_s()) is not None and due <= until:
            self.now_s = max(self.now_s, due)
            self.agenda.run(self.now_s)
        self.now_s = until

    def ask(self, port: int, command: str, seconds: float = 1.0) -> str:
        self.lines[port].said = b""
        self.usb.ports[port].received(command.encode() + b"\r")
        self.run(seconds)
        return self.lines[port].said.decode()


@pytest.fixture
def bus(tmp_path: Path) -> Bus:
    return Bus(tmp_path)


def test_echo_and_error_style_are_each_ports_own(bus: Bus) -> None:
    assert "OK" in bus.ask(0, "ATE1")
    assert bus.ask(0, "AT").startswith("AT\r")
    assert bus.ask(1, "AT") == "\r\nOK\r\n"
    bus.ask(0, "AT+CMEE=1")
    assert "+CME ERROR: 4" in bus.ask(0, "AT+NONE")
    assert bus.ask(1, "AT+NONE") == "\r\nERROR\r\n"


def test_the_radio_is_the_modems_whole(bus: Bus) -> None:
    bus.ask(0, "AT+CFUN=4")
    assert "+CFUN: 4" in bus.ask(1, "AT+CFUN?")
    assert "+CEREG: 0,0" in bus.ask(1, "AT+CEREG?")
    bus.ask(1, "AT+CFUN=1")
    assert "+CEREG: 0,1" in bus.ask(0, "AT+CEREG?")


def test_a_restart_on_one_port_takes_the_other_along_and_forgets_settings(bus: Bus) -> None:
    bus.ask(0, "AT+CMEE=1;+CEREG=2")
    assert "OK" in bus.ask(1, "AT+CFUN=1,1", 0.5)
    assert bus.moves == ["in", "out"]
    assert bus.ask(0, "AT", 1.0) == ""
    bus.run(3.0)
    assert bus.moves == ["in", "out", "in"]
    assert "+CMEE: 0" in bus.ask(0, "AT+CMEE?")
    assert "+CEREG: 0,1" in bus.ask(0, "AT+CEREG?")
    assert bus.noted == []  # it was asked for, it is no fault


@pytest.mark.parametrize("command", [["gadget", "modem", "--help"], ["modem", "--help"]], ids=" ".join)
def test_where_numpy_is_not_a_modem_is_played(command: list[str]) -> None:
    """A Pi that plays one, and the tests' virtual machines, have Python alone."""
    script = "import sys; sys.modules['numpy'] = None; from tandem_bench.cli.main import main; main(sys.argv[1:])"
    done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
