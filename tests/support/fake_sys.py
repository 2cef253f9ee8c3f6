"""A /sys tree laid out as the kernel does it: USB devices with their interfaces, ttys, control channels and network interfaces.

Shapes are those of real trees: usb-serial puts ``ttyUSB2/tty/ttyUSB2`` below the interface, cdc-acm ``tty/ttyACM0``, qmi_wwan
``usbmisc/cdc-wdm0`` and ``net/wwan0``; /sys/bus/usb/devices holds links into /sys/devices.
"""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Face:
    """One interface: number, class/subclass/protocol, kernel driver, and what it made."""

    number: int
    codes: str = "ff/00/00"
    driver: str = "option"
    tty: str | None = None
    wdm: str | None = None
    net: str | None = None


class FakeSys:
    """``root`` is what /sys would be."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bus/usb/devices").mkdir(parents=True)
        (root / "bus/usb/drivers").mkdir(parents=True)
        self.plug("usb1", "1d6b", "0002", [Face(0, "09/00/00", "hub")], device_class="09")

    def plug(
        self,
        path: str,
        vendor: str,
        product: str,
        faces: Sequence[Face],
        device_class: str = "00",
        serial: str = "1234567890ABCDEF",
        names: tuple[str, str] = ("Maker", "Stick"),
    ) -> None:
        device = self.root / "devices/platform/scb/usb1" / path
        self._attributes(
            device,
            idVendor=vendor,
            idProduct=product,
            bDeviceClass=device_class,
            serial=serial,
            manufacturer=names[0],
            product=names[1],
            bConfigurationValue="1",
            devnum="7",
        )
        self._link(path, device)
        for face in faces:
            name = f"{path}:1.{face.number}"
            codes = dict(zip(("Class", "SubClass", "Protocol"), face.codes.split("/"), strict=True))
            below = device / name
            self._attributes(
                below, bInterfaceNumber=f"{face.number:02x}", **{f"bInterface{k}": v for k, v in codes.items()}
            )
            driver = self.root / "bus/usb/drivers" / face.driver
            driver.mkdir(exist_ok=True)
            (below / "driver").symlink_to(driver)
            if face.tty is not None and face.tty.startswith("ttyACM"):
                self._tty(below / "tty" / face.tty, below)
            elif face.tty is not None:
                self._tty(below / face.tty / "tty" / face.tty, below / face.tty)
            if face.wdm is not None:
                (below / "usbmisc" / face.wdm).mkdir(parents=True)
            if face.net is not None:
                self._attributes(below / "net" / face.net, address="0c:5b:8f:27:9a:64")
            (below / "power").mkdir()
            self._link(name, below)

    def unplug(self, path: str) -> None:
        links = self.root / "bus/usb/devices"
        for link in list(links.iterdir()):
            if link.name == path or link.name.startswith(f"{path}:"):
                link.unlink()
        shutil.rmtree(self.root / "devices/platform/scb/usb1" / path)

    def quectel(self, path: str, first: int, net: str, product: str = "0125") -> None:
        """An EC25: ttys for diagnostics, NMEA, AT, second AT, and QMI."""
        faces = [Face(i, "ff/ff/ff" if i == 0 else "ff/00/00", tty=f"ttyUSB{first + i}") for i in range(4)]
        wdm = Face(4, "ff/ff/ff", "qmi_wwan", wdm=f"cdc-wdm{first // 4}", net=net)
        self.plug(path, "2c7c", product, [*faces, wdm], names=("Quectel", "EC25-AF"))

    def hilink(self, path: str, net: str) -> None:
        """A Huawei stick with a web server: a network function only."""
        faces = [Face(0, "02/06/00", "cdc_ether", net=net), Face(1, "0a/00/00", "cdc_ether")]
        self.plug(path, "12d1", "14dc", faces, names=("HUAWEI_MOBILE", "HUAWEI_MOBILE"))

    @staticmethod
    def _attributes(folder: Path, **values: str) -> None:
        folder.mkdir(parents=True)
        for name, value in values.items():
            (folder / name).write_text(value + "\n")

    def _tty(self, place: Path, device: Path) -> None:
        place.mkdir(parents=True)
        (place / "device").symlink_to(device)
        by_name = self.root / "class/tty" / place.name
        by_name.parent.mkdir(parents=True, exist_ok=True)
        by_name.unlink(missing_ok=True)  # of a device that was unplugged
        by_name.symlink_to(place)

    def _link(self, name: str, target: Path) -> None:
        (self.root / "bus/usb/devices" / name).symlink_to(target)
