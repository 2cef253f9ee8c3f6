"""In the virtual machine: the role `modems`, udevd and systemd-networkd, two modems on USB that come back with other names; and, in the
same boot, the role `indicator`'s rights over the status LED (``leds.py``).

``{folder}`` holds the role's files, named as ``test_vm_places.py`` gave them. Prints what was seen as one JSON object.
"""

from __future__ import annotations

import grp
import json
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from vm.guest import Guest, awaited, evidence, told
from vm.leds import leds

from tandem.modem.usb import known_devices, network_interface, rules
from tandem_bench.gadget.description import UBLOX_TOBY_L200, gadget_of
from tandem_bench.gadget.device import Controller, Device

PLACES = {"a": "1-1", "b": "2-1"}
OURS = ["from", "198.51.100.7", "table", "7100", "priority", "7100"]
"""A rule as the collector makes them."""
FILES = {
    "paths.rules": "/etc/udev/rules.d/79-tandem-paths.rules",
    "networkd.conf": "/etc/systemd/networkd.conf.d/tandem.conf",
    "a.network": "/etc/systemd/network/10-tandem-a.network",
    "b.network": "/etc/systemd/network/10-tandem-b.network",
}
AGAIN_S = 5.0
"""usbnet loses the word that there is a network now and then: the modem says it again after so long."""
seen: dict[str, Any] = {"took_s": {}}


class Modems:
    """Two gadgets, each with its operator's DHCP server in a namespace behind it."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.devices = {
            path: Device(
                gadget_of(f"modem-{path}", UBLOX_TOBY_L200, 1), Controller(f"dummy_udc.{number}", "dummy_udc", None)
            )
            for number, path in enumerate(PLACES)
        }
        self.ends: dict[str, str] = {}

    def plug(self, path: str) -> None:
        """Into its place; the first time its operator's side is made."""
        device = self.devices[path]
        if path not in self.ends:
            device.make()
        device.plug()
        awaited(f"{path}'s interface", lambda: network_interface(PLACES[path]))
        if path in self.ends:
            return
        place, network = f"op-{path}", f"192.168.{8 if path == 'a' else 9}"
        self.ends[path] = device.interface() or ""
        told(["ip", "netns", "add", place])
        told(["ip", "link", "set", self.ends[path], "netns", place])
        told(["ip", "-n", place, "address", "add", f"{network}.1/24", "dev", self.ends[path]])
        told(["ip", "-n", place, "link", "set", self.ends[path], "up"])
        serve = f"--dhcp-range={network}.100,{network}.100,255.255.255.0,1h"
        self.guest.service(
            f"dhcp-{path}",
            ["ip", "netns", "exec", place, "dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--port=0", "--user=root",
             f"--dhcp-leasefile=/run/lease-{path}", f"--interface={self.ends[path]}", serve],
        )  # fmt: skip

    def await_address(self, path: str) -> dict[str, Any]:
        """What the interface at its place has, once it has an address."""
        patience_s = AGAIN_S
        until = time.monotonic() + patience_s

        def has_it() -> dict[str, Any] | None:
            nonlocal patience_s, until
            interface = network_interface(PLACES[path])
            if interface is None:
                return None
            if time.monotonic() > until:
                for state in ("down", "up"):
                    told(["ip", "-n", f"op-{path}", "link", "set", self.ends[path], state])
                patience_s *= 2  # what is told again too soon never comes
                until = time.monotonic() + patience_s
            routes = [r for r in json.loads(told(["ip", "-j", "route", "show", "default"])) if r["dev"] == interface]
            rows = json.loads(told(["ip", "-j", "-4", "address", "show", "dev", interface]))
            found = [a["local"] for row in rows for a in row.get("addr_info", [])]
            if not found or not routes:
                return None
            words = dict(
                line.split("=", 1)
                for line in told(["udevadm", "info", "-q", "property", f"/sys/class/net/{interface}"]).splitlines()
            )
            return {
                "interface": interface,
                "address": found,
                "routes": [(r.get("gateway"), r["metric"]) for r in routes],
                "path": words.get("TANDEM_PATH"),
                "unmanaged": words.get("NM_UNMANAGED"),
            }

        return awaited(f"an address for {path}", has_it, 120.0)


def rights(place: str) -> dict[str, Any]:
    """Of the device at ``place``, and of the hub it hangs on."""
    device = Path("/sys/bus/usb/devices") / place
    node = Path(f"/dev/bus/usb/{int((device / 'busnum').read_text()):03}/{int((device / 'devnum').read_text()):03}")
    hub = Path(f"/dev/bus/usb/{int((device / 'busnum').read_text()):03}/001")
    allowed = (device / "authorized").stat()
    return {
        "group": grp.getgrgid(node.stat().st_gid).gr_name,
        "hub_group": grp.getgrgid(hub.stat().st_gid).gr_name,
        "authorized": (grp.getgrgid(allowed.st_gid).gr_name, bool(allowed.st_mode & stat.S_IWGRP)),
        "power": (device / "power/control").read_text().strip(),
        "port": (Path("/dev/tandem") / f"{place}-at").exists(),
    }


def part(name: str, began_s: float) -> float:
    now = time.monotonic()
    seen["took_s"][name] = round(now - began_s, 1)
    return now


def main() -> int:
    folder = Path.cwd()
    for name, target in FILES.items():
        Path(target).parent.mkdir(parents=True, exist_ok=True)
        Path(target).write_bytes((folder / name).read_bytes())
    with Guest(rules(known_devices())) as guest:
        modems = Modems(guest)
        try:
            at = time.monotonic()
            seen["leds"] = leds((folder / "indicator.rules").read_bytes())
            at = part("the status LED", at)
            told(["ip", "rule", "add", *OURS])
            Path("/run/systemd/netif").mkdir(parents=True)
            told(["chown", "-R", "systemd-network:systemd-network", "/run/systemd/netif"])
            guest.service("networkd", ["/usr/lib/systemd/systemd-networkd"])
            for path in PLACES:
                modems.plug(path)
            seen["first"] = {path: modems.await_address(path) for path in PLACES}
            seen["rights"] = {path: rights(place) for path, place in PLACES.items()}
            at = part("plugged in", at)
            for path in PLACES:
                modems.devices[path].unplug()
            awaited("both are gone", lambda: not any(network_interface(place) for place in PLACES.values()))
            for path in reversed(PLACES):
                modems.plug(path)
            seen["second"] = {path: modems.await_address(path) for path in PLACES}
            seen["rights_again"] = {path: rights(place) for path, place in PLACES.items()}
            at = part("plugged in again in the other order", at)
            seen["rule"] = "198.51.100.7" in told(["ip", "rule", "show"])
        except BaseException:
            evidence(
                {
                    f"op-{path}": f"/run/netns/op-{path}"
                    for path in modems.ends
                    if Path(f"/run/netns/op-{path}").exists()
                }
            )
            raise
        finally:
            for device in modems.devices.values():
                device.unplug()
            subprocess.run(["ip", "rule", "delete", *OURS], check=False)
    print(json.dumps(seen))
    return 0


if __name__ == "__main__":
    sys.exit(main())
