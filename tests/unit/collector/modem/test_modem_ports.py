"""The families' USB devices: how one is written, and the udev rules made of them."""

from pathlib import Path

from tandem.modem.base import KnownDevice, device
from tandem.modem.usb import known_devices, rules

GOLDEN = Path(__file__).with_name("golden-udev.rules")


def test_a_device_is_written_by_what_is_known_of_it() -> None:
    first = device(
        "2c7c:0125", "EC25, EC21", at=2, at_second=3, switched_from="1f01 1f02", mode_switch="usb_modeswitch -J"
    )
    faces = {2: "at", 3: "at-second"}
    assert first == KnownDevice("", "2c7c", "0125", ("EC25", "EC21"), ("1f01", "1f02"), faces, "usb_modeswitch -J")
    second = device("12d1:1506", "E3372s", by_protocol={"02": "at"})
    assert second.roles == {"02": "at"}
    assert (first.has_second_port, second.has_second_port) == (True, False)
    assert {one.family for one in known_devices() if one.vendor == "2c7c"} == {"quectel"}


KNOWN = (
    KnownDevice("quectel", "2c7c", "0125", ("EC25", "EC21"), (), {1: "nmea", 2: "at", 3: "at-second"}),
    KnownDevice("huawei", "12d1", "1506", ("E3372 in\nstick mode",), ("15cd",), {"02": "at"}),
    KnownDevice("hilink", "12d1", "14dc", ("E3372h",), (), {0: "network"}),
    KnownDevice("twin", "2c7c", "0125", ("EC25",), (), {10: "at-second"}),
)


def test_the_rules_are_the_golden_ones_whatever_the_order() -> None:
    assert rules(KNOWN) == GOLDEN.read_text()
    assert rules((KNOWN[2], KNOWN[0], KNOWN[1], KNOWN[3])) == GOLDEN.read_text()
    assert "SYMLINK" not in rules(())
