"""One modem with two ports and one plug, and its tree in configfs, of which nothing stays. A folder plays configfs."""

import fcntl
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from support.modem_on_fake_clock import MODEM, Desk, write_timeline
from tandem_bench.gadget import device
from tandem_bench.gadget.description import UBLOX_TOBY_L200, Endpoints, Function, Gadget, GadgetError, fits, gadget_of
from tandem_bench.gadget.device import Controller, Device, choose, clear, controllers
from tandem_bench.gadget.modem import UsbModem
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


class Bus(Desk):
    """Two lines, one plug, and a clock that runs as told."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.lines = [Line(), Line()]
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

    def said(self, port: int, command: str, seconds: float = 1.0) -> str:
        self.lines[port].said = b""
        self.usb.ports[port].received(command.encode() + b"\r")
        self.advance(seconds)
        return self.lines[port].said.decode()


@pytest.fixture
def bus(tmp_path: Path) -> Bus:
    return Bus(tmp_path)


def test_echo_and_error_style_are_each_ports_own(bus: Bus) -> None:
    assert "OK" in bus.said(0, "ATE1")
    assert bus.said(0, "AT").startswith("AT\r")
    assert bus.said(1, "AT") == "\r\nOK\r\n"
    bus.said(0, "AT+CMEE=1")
    assert "+CME ERROR: 4" in bus.said(0, "AT+NONE")
    assert bus.said(1, "AT+NONE") == "\r\nERROR\r\n"


def test_the_radio_is_the_modems_whole(bus: Bus) -> None:
    bus.said(0, "AT+CFUN=4")
    assert "+CFUN: 4" in bus.said(1, "AT+CFUN?")
    assert "+CEREG: 0,0" in bus.said(1, "AT+CEREG?")
    bus.said(1, "AT+CFUN=1")
    assert "+CEREG: 0,1" in bus.said(0, "AT+CEREG?")


def test_a_restart_on_one_port_takes_the_other_along_and_forgets_settings(bus: Bus) -> None:
    bus.said(0, "AT+CMEE=1;+CEREG=2")
    assert "OK" in bus.said(1, "AT+CFUN=1,1", 0.5)
    assert bus.moves == ["in", "out"]
    assert bus.said(0, "AT", 1.0) == ""
    bus.advance(3.0)
    assert bus.moves == ["in", "out", "in"]
    assert "+CMEE: 0" in bus.said(0, "AT+CMEE?")
    assert "+CEREG: 0,1" in bus.said(0, "AT+CEREG?")
    assert bus.noted == []  # it was asked for, it is no fault


def test_where_numpy_is_not_a_modem_is_played() -> None:
    """A Pi that plays one, and the tests' virtual machines, have Python alone."""
    script = "import sys; sys.modules['numpy'] = None; from tandem_bench.cli.main import main; main(sys.argv[1:])"
    for command in (["gadget", "modem", "--help"], ["modem", "--help"]):
        done = subprocess.run([sys.executable, "-c", script, *command], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), command


# --- the tree in configfs, its order, and that nothing of it stays. A folder plays configfs: rmdir there takes attributes along


GADGET = gadget_of("tandem-a", UBLOX_TOBY_L200, 1)


def as_configfs_removes(path: Path) -> None:
    """Attributes and the groups that the kernel made go with their folder; what was made by mkdir or linked must be gone before."""
    made = [p for p in path.rglob("*") if p.is_symlink() or p.parent.name in ("functions", "configs", "strings")]
    assert made == [], f"{path} is not empty"
    shutil.rmtree(path)


def test_ports_are_numbered_first_and_it_is_described_not_plugged_in() -> None:
    done = device.build(GADGET)
    links = [action.path.rpartition("/")[2] for action in done if action.verb == "link"]
    assert links == ["acm.a0", "acm.a1", "ecm.e0"]
    assert [action for action in done if action.path.endswith("/UDC")] == []


def test_teardown_leaves_nothing_and_needs_its_order(tmp_path: Path) -> None:
    device.perform(device.build(GADGET), tmp_path)
    device.perform(device.teardown(GADGET), tmp_path, as_configfs_removes)
    assert list(tmp_path.iterdir()) == []
    assert clear(["tandem-a", "tandem-b"], tmp_path) == []
    device.perform(device.build(GADGET), tmp_path)
    with pytest.raises(AssertionError):
        device.perform(device.teardown(GADGET)[::-1], tmp_path, as_configfs_removes)


def test_what_hinders_is_named_with_its_hint(tmp_path: Path) -> None:
    (tmp_path / "tandem-a").mkdir()
    with pytest.raises(GadgetError, match="tandem-bench gadget clear"):
        Device(GADGET, Controller("u", "dummy_udc", None), tmp_path).make()
    (tmp_path / "root").write_text("no folder: no gadget stack")
    with pytest.raises(GadgetError, match="modprobe libcomposite"):
        device.perform(device.build(GADGET), tmp_path / "root")
    with pytest.raises(GadgetError, match="endpoints enough"):
        device.perform([device.bind(GADGET, "dummy_udc.0")], tmp_path / "none")


def test_controllers_are_read_with_driver_and_gadget(tmp_path: Path) -> None:
    udc, gadgets, drivers = tmp_path / "udc", tmp_path / "gadgets", tmp_path / "drivers"
    for name, driver in (("3f980000.usb", "dwc2"), ("dummy_udc.1", None)):
        (udc / name / "device").mkdir(parents=True)
        if driver:
            (drivers / driver).mkdir(parents=True)
            (udc / name / "device" / "driver").symlink_to(drivers / driver)
    (gadgets / "tandem-a").mkdir(parents=True)
    (gadgets / "tandem-a" / "UDC").write_text("3f980000.usb\n")
    (gadgets / "half-made").mkdir()
    assert controllers(udc, gadgets) == [
        Controller("3f980000.usb", "dwc2", "tandem-a"),
        Controller("dummy_udc.1", "dummy_udc", None),
    ]
    assert controllers(tmp_path / "none", tmp_path / "none") == []


def test_two_processes_never_plug_in_at_once(tmp_path: Path) -> None:
    made = Device(GADGET, Controller("dummy_udc.0", "dummy_udc", None), tmp_path)
    made.make()
    other = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    plugging = threading.Thread(target=made.plug)
    plugging.start()
    while not any("->" in line and f" {os.getpid()} " in line for line in Path("/proc/locks").read_text().splitlines()):
        assert plugging.is_alive(), "it did not wait"
    assert not (tmp_path / "tandem-a" / "UDC").exists()
    os.close(other)
    plugging.join()
    assert (tmp_path / "tandem-a" / "UDC").read_text() == "dummy_udc.0"


# --- what a gadget needs of a controller


def test_a_modem_fits_a_raspberry_pi_with_one_endpoint_to_spare() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1)
    assert modem.endpoints == Endpoints(6, 3)
    fits(modem, "dwc2")
    fits(modem, "dummy_udc")


def test_a_third_port_does_not_and_the_line_says_what_to_leave_out() -> None:
    modem = gadget_of("tandem-a", UBLOX_TOBY_L200, 1, ports=3)
    with pytest.raises(
        GadgetError,
        match=r"^gadget tandem-a needs 8 IN and 4 OUT endpoints, the controller dwc2 has 7 IN .*hint: fewer AT",
    ):
        fits(modem, "dwc2")
    fits(modem, "dummy_udc")
    fits(modem, "some_new_controller")  # the kernel will tell


def test_modems_differ_in_serial_number_and_addresses_and_stay_the_same_by_seed() -> None:
    first, second = (gadget_of(f"tandem-{path}", UBLOX_TOBY_L200, 1) for path in "ab")
    texts = [first.serial, first.host_mac, first.device_mac, second.serial, second.host_mac, second.device_mac]
    assert len(set(texts)) == 6
    assert gadget_of("tandem-a", UBLOX_TOBY_L200, 1) == first
    assert gadget_of("tandem-a", UBLOX_TOBY_L200, 2).serial != first.serial
    for mac in (first.host_mac, second.device_mac):
        assert re.fullmatch(r"02(:[0-9a-f]{2}){5}", mac)  # locally administered, one device's


def test_nonsense_is_refused() -> None:
    one = Function("acm", "a0")
    for name, functions in (("a/b", (one,)), ("", (one,)), ("a", ()), ("a", (one, one))):
        with pytest.raises(GadgetError):
            Gadget(name, UBLOX_TOBY_L200, "1", "02:00:00:00:00:01", "02:00:00:00:00:02", functions)


def test_a_controller_is_chosen() -> None:
    found = [Controller("dummy_udc.0", "dummy_udc", "tandem-a"), Controller("dummy_udc.1", "dummy_udc", None)]
    assert choose(None, found).name == "dummy_udc.1"
    assert choose("dummy_udc.1", found).name == "dummy_udc.1"
    with pytest.raises(GadgetError, match="taken by the gadget tandem-a"):
        choose("dummy_udc.0", found)
    with pytest.raises(GadgetError, match=r"no controller 'x'; there are: dummy_udc\.0, dummy_udc\.1"):
        choose("x", found)
    with pytest.raises(GadgetError, match="every controller is taken"):
        choose(None, found[:1])
    with pytest.raises(GadgetError, match="dr_mode=peripheral"):
        choose(None, [])
