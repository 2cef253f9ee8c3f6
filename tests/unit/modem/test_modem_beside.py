"""A modem's other ports, found from one of them: its NMEA port beside its AT port."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_sys import Face, FakeSys

from tandem.modem.discovery import beside, place_of
from tandem.modem.ports import InterfaceRule, KnownDevice

KNOWN = (
    KnownDevice("quectel", "2c7c", "0125", ("EC25",), (), (InterfaceRule("nmea", 1), InterfaceRule("at", 2))),
    KnownDevice("u-blox", "1546", "1102", ("LARA",), (), (InterfaceRule("nmea", None, "02", None, "ff"),)),
)


@pytest.fixture
def sys(tmp_path: Path) -> FakeSys:
    made = FakeSys(tmp_path / "sys")
    made.plug("1-1", "2c7c", "0125", [Face(n, tty=f"ttyUSB{n}") for n in range(3)])
    made.plug("1-2", "2c7c", "0125", [Face(0, tty="ttyUSB7"), Face(1, tty="ttyUSB4"), Face(2, tty="ttyUSB5")])
    made.plug("1-3", "1546", "1102", [Face(0, "02/02/01", tty="ttyACM0"), Face(4, "02/02/ff", tty="ttyACM1")])
    made.plug("1-4", "dead", "beef", [Face(0, tty="ttyUSB9")])
    return made


@pytest.mark.parametrize(
    ("at_port", "found"),
    [
        ("/dev/ttyUSB2", "/dev/ttyUSB1"),
        ("/dev/ttyUSB5", "/dev/ttyUSB4"),  # of two alike each has its own
        ("/dev/ttyACM0", "/dev/ttyACM1"),
        ("/dev/ttyUSB9", None),  # a stranger
        ("/dev/ttyUSB33", None),  # not there
    ],
)
def test_the_nmea_port_is_on_the_same_device(sys: FakeSys, at_port: str, found: str | None) -> None:
    assert beside(at_port, "nmea", sys.root, KNOWN) == found


def test_a_network_interface_has_a_place_too(sys: FakeSys) -> None:
    sys.quectel("1-5", 12, "wwan3")
    interface = sys.root / "devices/platform/scb/usb1/1-5/1-5:1.4"
    (interface / "net/wwan3/device").symlink_to(interface)
    (sys.root / "class/net").mkdir()
    (sys.root / "class/net/wwan3").symlink_to(interface / "net/wwan3")
    assert place_of("wwan3", sys.root) == "1-5"
    assert place_of("wwan4", sys.root) is None


def test_a_link_is_followed(sys: FakeSys, tmp_path: Path) -> None:
    (tmp_path / "modem-a").symlink_to("/dev/ttyUSB5")
    assert beside(str(tmp_path / "modem-a"), "nmea", sys.root, KNOWN) == "/dev/ttyUSB4"


def test_a_modem_that_came_back_elsewhere_is_found_there_and_one_that_is_away_is_not(sys: FakeSys) -> None:
    sys.unplug("1-2")
    assert place_of("/dev/ttyUSB5", sys.root) is None
    sys.plug("1-4.1", "2c7c", "0125", [Face(n, tty=f"ttyUSB{n + 3}") for n in range(3)])
    assert place_of("/dev/ttyUSB5", sys.root) == "1-4.1"
    assert beside("/dev/ttyUSB5", "nmea", sys.root, KNOWN) == "/dev/ttyUSB4"
