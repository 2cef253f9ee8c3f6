"""A modem's NMEA port, in a made-up /sys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandem.app import nmea_port as module
from tandem.app.nmea_port import nmea_port

ROWS = (
    {"vendor": "2c7c", "product": "0125", "interface": [{"number": 1, "role": "nmea"}, {"number": 2, "role": "at"}]},
    {"vendor": "1546", "product": "1102", "interface": [{"class": "02", "protocol": "ff", "role": "nmea"}]},
)


def modem(sys: Path, at: str, vendor: str, product: str, ttys: dict[int, str], *, acm: bool = False) -> None:
    device = sys / "devices" / "usb1" / at
    device.mkdir(parents=True)
    (device / "idVendor").write_text(f"{vendor}\n")
    (device / "idProduct").write_text(f"{product}\n")
    for number, tty in ttys.items():
        interface = device / f"{at}:1.{number}"
        place = interface / "tty" / tty if acm else interface / tty / "tty" / tty
        place.mkdir(parents=True)
        for name, value in (("Number", f"{number:02x}"), ("Class", "02"), ("Protocol", "ff" if number == 4 else "01")):
            (interface / f"bInterface{name}").write_text(f"{value}\n")
        (place / "device").symlink_to(interface if acm else interface / tty)
        (sys / "class" / "tty").mkdir(parents=True, exist_ok=True)
        (sys / "class" / "tty" / tty).symlink_to(place)


@pytest.fixture
def sys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_rows", lambda: ROWS)
    modem(tmp_path, "1-1", "2c7c", "0125", {0: "ttyUSB0", 1: "ttyUSB1", 2: "ttyUSB2"})
    modem(tmp_path, "1-2", "2c7c", "0125", {0: "ttyUSB7", 1: "ttyUSB4", 2: "ttyUSB5"})
    modem(tmp_path, "1-3", "1546", "1102", {0: "ttyACM0", 4: "ttyACM1"}, acm=True)
    modem(tmp_path, "1-4", "dead", "beef", {0: "ttyUSB9"})
    return tmp_path


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
def test_the_nmea_port_is_on_the_same_device(sys: Path, at_port: str, found: str | None) -> None:
    assert nmea_port(at_port, sys) == found


def test_a_link_is_followed(sys: Path, tmp_path: Path) -> None:
    (tmp_path / "modem-a").symlink_to("/dev/ttyUSB5")
    assert nmea_port(str(tmp_path / "modem-a"), sys) == "/dev/ttyUSB4"


def test_the_real_files_can_be_read() -> None:
    module._rows.cache_clear()
    assert all("vendor" in row for row in module._rows())
