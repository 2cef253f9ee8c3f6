"""Raspberry Pi OS trixie: cloud-init's files on the boot partition (NoCloud, seedfrom file:///boot/firmware).

They are written as JSON, which is YAML too. Nothing secret but the Wi-Fi's key is among them: any computer shows this partition.
"""

from __future__ import annotations

import json
import uuid

from tandem_image.ext4 import Entry, Link
from tandem_image.parts import UNITS
from tandem_image.release import Stock
from tandem_image.settings import Settings

# Of the image's own first user (pi-gen, stage2): the account that cloud-init makes shall be able to do what that one could.
_GROUPS = ("adm", "dialout", "sudo", "video", "plugdev", "gpio", "i2c", "spi", "netdev", "systemd-journal")


def boot_files(stock: Stock, settings: Settings) -> dict[str, bytes]:
    """user-data, network-config, meta-data, and ``ssh``, which switches SSH on (sshswitch.service)."""
    del stock
    return {
        "user-data": b"#cloud-config\n" + _yaml(user_data(settings)),
        "network-config": _yaml(network_config(settings)),
        "meta-data": _yaml(
            {
                "instance-id": f"tandem-{settings.probe}-{uuid.uuid4()}",
                "local-hostname": settings.probe,
                "dsmode": "local",
            }
        ),
        "ssh": b"",
    }


def root_files(stock: Stock, settings: Settings) -> list[Entry]:
    """The wizard that asks for a user on the screen is off: cloud-init has made one."""
    del stock, settings
    return [Link(f"{UNITS}/userconfig.service", "/dev/null")]


def user_data(settings: Settings) -> dict[str, object]:
    """Host name and user; the root is left as large as the table says."""
    user = {
        "name": settings.user,
        "groups": list(_GROUPS),
        "shell": "/bin/bash",
        "lock_passwd": True,
        "ssh_authorized_keys": list(settings.keys),
    }
    return {
        "hostname": settings.probe,
        "manage_etc_hosts": "localhost",
        "users": [user],
        "ssh_pwauth": False,
        "disable_root": True,
        "growpart": {"mode": "off"},
        "resize_rootfs": False,
    }


def network_config(settings: Settings) -> dict[str, object]:
    """Ethernet by DHCP and, where it is given, one Wi-Fi network (netplan)."""
    automatic = {"dhcp4": True, "dhcp6": True, "optional": True}
    network: dict[str, object] = {"version": 2, "renderer": "NetworkManager", "ethernets": {"eth0": dict(automatic)}}
    wifi = settings.wifi
    if wifi is not None and wifi.ssid is not None:
        access: dict[str, object] = {} if wifi.psk is None else {"password": wifi.psk}
        network["wifis"] = {
            "wlan0": {**automatic, "regulatory-domain": wifi.country, "access-points": {wifi.ssid: access}}
        }
    return {"network": network}


def _yaml(document: dict[str, object]) -> bytes:
    # Not escaped: YAML knows no pairs of escapes for what lies beyond 16 bits. What settings.py lets pass is printable.
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"
