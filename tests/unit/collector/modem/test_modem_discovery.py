"""What is plugged in, from a /sys tree laid out as real ones are; the families' USB devices and their udev rules."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.fake_sys import Face, FakeSys
from tandem.modem.usb import (
    USB_PORT,
    KnownDevice,
    beside,
    find,
    modems,
    network_interface,
    place_of,
    rules,
    usb_devices,
)

AT_PAIR = {0: "diagnostics", 1: "nmea", 2: "at", 3: "at-second", 4: "network"}
BY_PROTOCOL = {"02": "at", "01": "ppp"}
KNOWN = (
    KnownDevice("hilink", "12d1", "14dc", ("E3372h",), ("1f01",), {0: "network"}, "usb_modeswitch -J"),
    KnownDevice("huawei", "12d1", "1506", ("E3372s",), ("15cd",), BY_PROTOCOL),
    KnownDevice("quectel", "2c7c", "0125", ("EC25",), (), AT_PAIR),
    KnownDevice("u-blox", "1546", "1102", ("LARA",), (), {4: "nmea"}),
    KnownDevice("zte", "19d2", "0412", ("Telewell",), ("0413",), {2: "at"}),
)


@pytest.fixture
def sys(tmp_path: Path) -> FakeSys:
    return FakeSys(tmp_path / "sys")


def test_a_modem_is_listed_with_its_ports_roles_and_networks(sys):
    sys.quectel("1-1.2", 0, "wwan0")
    (found,) = modems(sys.root, KNOWN)
    assert (found.path, found.vendor, found.product, found.drivers) == ("1-1.2", "2c7c", "0125", ("quectel",))
    assert [(p.name, p.interface, p.role) for p in found.ports] == [
        ("/dev/ttyUSB0", 0, "diagnostics"),
        ("/dev/ttyUSB1", 1, "nmea"),
        ("/dev/ttyUSB2", 2, "at"),
        ("/dev/ttyUSB3", 3, "at-second"),
        ("/dev/cdc-wdm0", 4, "network"),
    ]
    assert found.networks == ("wwan0",)
    assert found.collector_port == "/dev/ttyUSB3"
    assert (found.manufacturer, found.name, found.mode_switch) == ("Quectel", "EC25-AF", None)


@settings(max_examples=settings.default.max_examples // 2)
@given(st.permutations(["1-1.1", "1-1.2", "1-1.4", "2-1"]), st.integers(0, 3))
def test_identical_modems_are_told_apart_by_their_place_in_any_order_and_number(tmp_path_factory, order, gap):
    sys = FakeSys(tmp_path_factory.mktemp("any") / "sys")
    for i, path in enumerate(order):
        sys.quectel(path, (i * 4) + gap * (i > 1), f"wwan{i}")
    for i, path in enumerate(order):
        first = (i * 4) + gap * (i > 1)
        assert find(path, "at-second", sys.root, KNOWN) == f"/dev/ttyUSB{first + 3}"
        assert find(path, "at", sys.root, KNOWN) == f"/dev/ttyUSB{first + 2}"
        assert find(path, "nmea", sys.root, KNOWN) == f"/dev/ttyUSB{first + 1}"
        assert network_interface(path, sys.root) == f"wwan{i}"
    assert [m.path for m in modems(sys.root, KNOWN)] == ["1-1.1", "1-1.2", "1-1.4", "2-1"]


def test_while_a_modem_comes_up_its_first_port_is_not_taken_for_its_second(sys):
    faces = [Face(i, tty=f"ttyUSB{i}") for i in range(3)]
    sys.plug("1-1", "2c7c", "0125", faces)
    assert find("1-1", "at", sys.root, KNOWN) == "/dev/ttyUSB2"
    assert find("1-1", "at-second", sys.root, KNOWN) is None


def test_roles_by_class_and_the_only_at_port_is_the_collectors(sys):
    faces = [
        Face(0, "ff/02/01", tty="ttyUSB0"),
        Face(1, "ff/02/02", tty="ttyUSB1"),
        Face(2, "ff/02/16", "huawei_cdc_ncm", wdm="cdc-wdm0", net="wwan0"),
    ]
    sys.plug("1-1", "12d1", "1506", faces)
    (found,) = modems(sys.root, KNOWN)
    assert [p.role for p in found.ports] == ["ppp", "at", None]
    assert find("1-1", "at-second", sys.root, KNOWN) == "/dev/ttyUSB1"


def test_a_stick_that_is_still_storage_is_named_as_such(sys):
    sys.plug("1-1.1", "12d1", "1f01", [Face(0, "08/06/50", "usb-storage")])
    sys.plug("1-1.3", "19d2", "0413", [Face(0, "08/06/50", "usb-storage")])
    first, second = modems(sys.root, KNOWN)
    assert (first.drivers, first.ports, first.collector_port) == (("hilink",), (), None)
    assert first.mode_switch == (
        "stands there as storage and waits for its mode switch to 12d1:14dc: usb_modeswitch -J"
    )
    assert "usb_modeswitch" in str(second.mode_switch)
    same = KnownDevice("option", "0af0", "6971", ("iCON",), ("6971",), {}, "usb_modeswitch")  # it keeps its ids
    for face, waits in ((Face(0, "08/06/50", "usb-storage"), True), (Face(0, "ff/ff/ff", "hso", net="hso0"), False)):
        sys.plug("1-2", "0af0", "6971", [face])
        assert (modems(sys.root, (same,))[0].mode_switch is not None) == waits
        sys.unplug("1-2")


def test_a_stick_with_a_web_server_has_a_network_and_no_port(sys):
    sys.hilink("1-1.2", "eth2")
    (found,) = modems(sys.root, KNOWN)
    assert (found.path, found.networks, found.collector_port) == ("1-1.2", ("eth2",), None)
    assert network_interface("1-1.2", sys.root) == "eth2"
    assert network_interface("1-1.2:1.0", sys.root) == "eth2"
    assert network_interface("1-1.2:1.1", sys.root) is None


def test_an_unknown_modem_is_listed_without_roles_and_its_port_is_named_by_interface(sys):
    faces = [Face(0, "02/02/01", "cdc_acm", tty="ttyACM0"), Face(2, "02/02/01", "cdc_acm", tty="ttyACM1")]
    sys.plug("3-2", "1546", "1143", faces)
    (found,) = modems(sys.root, KNOWN)
    assert (found.drivers, [p.role for p in found.ports]) == (("generic",), [None, None])
    assert find("3-2", "at-second", sys.root, KNOWN) is None
    assert find("3-2:1.2", "at-second", sys.root, KNOWN) == "/dev/ttyACM1"
    assert find("3-2:1.7", "at-second", sys.root, KNOWN) is None


def test_what_is_no_modem_is_not_listed(sys):
    sys.plug("1-1.1", "0781", "5567", [Face(0, "08/06/50", "usb-storage")])
    sys.plug("1-1.2", "1546", "01a8", [Face(0, "02/02/01", "cdc_acm", tty="ttyACM0")])
    sys.plug("1-1.3", "0424", "7800", [Face(0, "ff/00/ff", "lan78xx", net="eth0")])
    sys.plug("1-1.4", "046d", "c31c", [Face(0, "03/01/01", "usbhid")])
    assert modems(sys.root, KNOWN) == ()
    assert len(usb_devices(sys.root)) == 4
    assert network_interface("1-1.3", sys.root) == "eth0"


def test_a_tree_that_vanishes_or_is_odd_is_no_error(sys, tmp_path):
    assert modems(tmp_path / "nowhere", KNOWN) == ()
    sys.quectel("1-1.2", 0, "wwan0")
    device = sys.root / "bus/usb/devices/1-1.2"
    (device / "idProduct").unlink()
    assert modems(sys.root, KNOWN) == ()
    (device / "idProduct").write_bytes(b"0125\n")
    (device / "manufacturer").write_bytes(b"\xff\x00\x1b[2J\n")
    (device.resolve() / "1-1.2:1.3" / "bInterfaceNumber").write_text("zz\n")
    (sys.root / "bus/usb/devices/1-1.9").symlink_to("nowhere")
    (found,) = modems(sys.root, KNOWN)
    assert found.manufacturer == "�[2J"
    assert len(found.ports) == 4


def test_of_several_networks_the_one_of_the_lowest_interface(sys):
    faces = [Face(0, tty="ttyUSB0"), Face(10, "02/06/00", "cdc_ether", net="wwan9"), Face(4, net="wwan0")]
    sys.plug("1-1.2", "2c7c", "0125", faces)
    found = {"1-1.2": "wwan0", "1-1.2:1.10": "wwan9", "1-1.2:1.0": None, "1-1": None, "2-1": None}
    assert {place: network_interface(place, sys.root) for place in found} == found


def test_what_is_no_place_finds_nothing(sys):
    sys.quectel("1-1.2", 0, "wwan0")
    for usb in ("", "1", "usb1", "1-1.2/../..", "1-1.", "1-1.2:1", "1-1.2:1.x", "-1", "1-1\n"):
        assert (USB_PORT.match(usb), find(usb, "at", sys.root, KNOWN), network_interface(usb, sys.root)) == (None,) * 3


def test_the_nmea_port_beside_an_at_port_is_on_the_same_device_wherever_that_is(sys, tmp_path):
    sys.plug("1-2", "2c7c", "0125", [Face(0, tty="ttyUSB7"), Face(1, tty="ttyUSB4"), Face(2, tty="ttyUSB5")])
    sys.plug("1-1", "2c7c", "0125", [Face(n, tty=f"ttyUSB{n}") for n in range(3)])
    sys.plug("1-3", "1546", "1102", [Face(0, "02/02/01", tty="ttyACM0"), Face(4, "02/02/ff", tty="ttyACM1")])
    sys.plug("1-4", "dead", "beef", [Face(0, tty="ttyUSB9")])
    (tmp_path / "modem-a").symlink_to("/dev/ttyUSB5")
    asked = ("/dev/ttyUSB2", "/dev/ttyUSB5", str(tmp_path / "modem-a"), "/dev/ttyACM0", "/dev/ttyUSB9", "/dev/ttyUSB33")
    found = [beside(port, "nmea", sys.root, KNOWN) for port in asked]
    assert found == ["/dev/ttyUSB1", "/dev/ttyUSB4", "/dev/ttyUSB4", "/dev/ttyACM1", None, None]
    sys.unplug("1-2")
    assert place_of("/dev/ttyUSB5", sys.root) is None
    sys.plug("1-4.1", "2c7c", "0125", [Face(n, tty=f"ttyUSB{n + 3}") for n in range(3)])
    assert place_of("/dev/ttyUSB5", sys.root) == "1-4.1"
    assert beside("/dev/ttyUSB5", "nmea", sys.root, KNOWN) == "/dev/ttyUSB4"


def test_a_network_interface_has_a_place_too(sys):
    sys.quectel("1-5", 12, "wwan3")
    interface = sys.root / "devices/platform/scb/usb1/1-5/1-5:1.4"
    (interface / "net/wwan3/device").symlink_to(interface)
    (sys.root / "class/net").mkdir()
    (sys.root / "class/net/wwan3").symlink_to(interface / "net/wwan3")
    assert place_of("wwan3", sys.root) == "1-5"
    assert place_of("wwan4", sys.root) is None


# --- the families' USB devices: how one is written, and the udev rules made of them


GOLDEN = Path(__file__).with_name("golden-udev.rules")


RULED = (
    KnownDevice("quectel", "2c7c", "0125", ("EC25", "EC21"), (), {1: "nmea", 2: "at", 3: "at-second"}),
    KnownDevice("huawei", "12d1", "1506", ("E3372 in\nstick mode",), ("15cd",), {"02": "at"}),
    KnownDevice("hilink", "12d1", "14dc", ("E3372h",), (), {0: "network"}),
    KnownDevice("twin", "2c7c", "0125", ("EC25",), (), {10: "at-second"}),
)


def test_the_rules_are_the_golden_ones_whatever_the_order():
    for ruled in (RULED, (RULED[2], RULED[0], RULED[1], RULED[3])):
        assert rules(ruled) == GOLDEN.read_text()
