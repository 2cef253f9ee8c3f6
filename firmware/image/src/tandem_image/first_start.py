"""What is put into the FAT partition: one payload for both releases, ``firstrun.sh``, and what starts it.

- trixie: cloud-init's ``user-data``, read from the FAT partition (pi-gen, stage2/04-cloud-init: NoCloud, seedfrom file:///boot/firmware).
  ``bootcmd`` runs at each start (cc_bootcmd, PER_ALWAYS); what runs once an instance, as users and runcmd, is marked as run before it
  has, and a power failure would leave it undone. meta-data and network-config (Ethernet by DHCP) stay as the image has them.
- bookworm: words on the kernel's command line, as Raspberry Pi Imager writes them (systemd-run-generator(8)), with the place that
  raspberrypi-sys-mods' initramfs (local-bottom/imager_fixup) would make of /boot/firstrun.sh by one more restart.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shlex
import tarfile
import time
import uuid
from importlib.resources import files as package_files

from tandem_image import ImageError
from tandem_image.image import BootPartition
from tandem_image.settings import Bearer, Settings

_UNITS = "etc/systemd/system"
_CONNECTIONS = "etc/NetworkManager/system-connections"
# At these words the image's own first start grows the root over the whole card: bookworm's initramfs at any "firstboot", trixie's at
# " resize" (raspberrypi-sys-mods, initramfs-tools/scripts/local-premount). What bookworm's init= does besides: SSH's host keys, which
# regenerate_ssh_host_keys.service makes too, and a disk id of its own, without which a card does as well.
_GROWING = ("firstboot", "init_resize.sh", "resize")
_SCRIPT = "/boot/firmware/firstrun.sh"
_BOOKWORM = f"systemd.run={_SCRIPT} systemd.run_success_action=reboot systemd.unit=kernel-command-line.target"
# Before the network, D-Bus and logind are up: systemd itself is asked to restart, and cloud-init goes no further.
_TRIXIE = (
    f"[ ! -e {_SCRIPT} ] || {{ sh {_SCRIPT} && systemctl start --no-block --job-mode=replace-irreversibly reboot.target"
    " && sleep 300; }"
)
_WATCHDOG = "[Manager]\nRuntimeWatchdogSec=15s\nRebootWatchdogSec=2min\n"
_CONFIG = """
# Tandem: two modems draw what two modems draw (Pi 2 and 3; Pi 5)
[all]
max_usb_current=1
usb_max_current_enable=1
# BEGIN Tandem: watchdog (role base)
[all]
dtparam=watchdog=on
# END Tandem: watchdog (role base)
"""


def release(boot: BootPartition) -> str:
    """bookworm or trixie, as the FAT partition shows it. Raises ImageError for everything else, and for an image prepared before."""
    if "firstrun.sh" in boot.names:
        raise ImageError("the image was prepared before; hint: take a fresh official image of Raspberry Pi OS Lite")
    if {"user-data", "meta-data"} <= boot.names:
        return "trixie"
    if "firstboot" in boot.read("cmdline.txt") and "auto_initramfs=1" in boot.read("config.txt"):
        return "bookworm"
    raise ImageError(
        "the image is neither bookworm nor trixie; hint: take Raspberry Pi OS Lite of October 2023 or later"
    )


def boot_files(boot: BootPartition, settings: Settings) -> dict[str, str]:
    """The files for the FAT partition, by name. The trigger comes last. ``ssh`` switches SSH on (sshswitch.service)."""
    named = release(boot)
    cmdline = [word for word in boot.read("cmdline.txt").split() if not any(text in word for text in _GROWING)]
    cmdline += ["usbcore.autosuspend=-1"]
    if settings.country is not None:
        cmdline.append(f"cfg80211.ieee80211_regdom={settings.country}")
    if named == "bookworm":
        cmdline.append(_BOOKWORM)
    config = boot.read("config.txt").rstrip("\n") + "\n" + _CONFIG
    files = {"ssh": "", "config.txt": config, "firstrun.sh": payload(boot.disk_id, settings)}
    if named == "trixie":
        files["user-data"] = user_data(settings)
    return {**files, "cmdline.txt": " ".join(cmdline) + "\n"}


def user_data(settings: Settings) -> str:
    """For cloud-init: our start, no growing root, and instead of its default user ours, who so can log in also where our start failed."""
    user = {"name": settings.user, "groups": ["sudo"], "shell": "/bin/bash", "lock_passwd": True}
    told = {
        "bootcmd": [["sh", "-c", _TRIXIE]],
        "preserve_hostname": True,
        "manage_etc_hosts": False,
        "users": [{**user, "ssh_authorized_keys": list(settings.keys)}],
        "ssh_pwauth": False,
        "disable_root": True,
        "growpart": {"mode": "off"},
        "resize_rootfs": False,
    }
    return "#cloud-config\n" + json.dumps(told, indent=1) + "\n"


def payload(disk_id: str, settings: Settings) -> str:
    """``firstrun.sh`` of this probe. The spool becomes partition 3 of the disk with this id."""
    values = {
        "USER": shlex.quote(settings.user),
        "NAME": shlex.quote(settings.probe),
        "KEYS": shlex.join(settings.keys),
        "FILES": base64.encodebytes(_archive(f"{disk_id}-03", settings)).decode().rstrip("\n"),
    }
    return re.sub("@(USER|NAME|KEYS|FILES)@", lambda found: values[found[1]], _shipped("firstrun.sh"))


def _archive(spool_partuuid: str, settings: Settings) -> bytes:
    """Everything that root owns, as tar.gz: paths, modes, links."""
    buffer, now = io.BytesIO(), int(time.time())
    with tarfile.open(fileobj=buffer, mode="w") as archive:

        def put(path: str, text: str, mode: int = 0o644) -> None:
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode, entry.mtime = len(text.encode()), mode, now
            archive.addfile(entry, io.BytesIO(text.encode()))

        def link(path: str, target: str) -> None:
            entry = tarfile.TarInfo(path)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)

        def unit(name: str, wanted_by: str) -> None:
            put(f"{_UNITS}/{name}.service", _shipped(f"{name}.service"))
            put(f"usr/local/sbin/{name}", _shipped(name), 0o755)
            link(f"{_UNITS}/{wanted_by}.target.wants/{name}.service", f"/{_UNITS}/{name}.service")

        unit("tandem-spool", "local-fs")
        put("etc/tandem/spool.conf", f"partuuid={spool_partuuid}\nuuid={uuid.uuid4()}\n")
        # 90: trixie has a file of its own, 40 or 70, and the last one wins.
        put("etc/systemd/system.conf.d/90-tandem.conf", f"# Tandem: as the role base writes it.\n{_WATCHDOG}")
        put("etc/sudoers.d/tandem", f"{settings.user} ALL=(ALL) NOPASSWD: ALL\n", 0o440)
        put("etc/ssh/sshd_config.d/10-tandem.conf", _shipped("sshd.conf"))
        # The wizard that asks for a user on the screen is off.
        link(f"{_UNITS}/userconfig.service", "/dev/null")
        if settings.country is not None:
            state = "[main]\nNetworkingEnabled=true\nWirelessEnabled=true\nWWANEnabled=true\n"
            put("var/lib/NetworkManager/NetworkManager.state", state)
        if settings.ssid is not None:
            put(f"{_CONNECTIONS}/tandem-wifi.nmconnection", wifi(settings.ssid, settings.psk), 0o600)
        for number, bearer in enumerate(settings.bearers, 1):
            put(f"{_CONNECTIONS}/tandem-mobile-{number}.nmconnection", mobile(bearer, number), 0o600)
        if settings.ca_pem is not None:
            put("etc/tandem/ca.pem", settings.ca_pem)
        if settings.code is not None:
            unit("tandem-enrol", "multi-user")
            ca_file = None if settings.ca_pem is None else "/etc/tandem/ca.pem"
            asked = {"probe": settings.probe, "gateway": settings.gateway, "code": settings.code, "ca_file": ca_file}
            put("etc/tandem/enrol.json", json.dumps(asked, indent=1) + "\n", 0o600)
    return gzip.compress(buffer.getvalue())


def wifi(ssid: str, psk: str | None) -> str:
    """A Wi-Fi network for NetworkManager (nm-settings-keyfile(5)), which takes 64 hex digits as the key itself."""
    security = "[wifi-security]\nkey-mgmt=wpa-psk\npsk={psk}\n" if psk is not None else ""
    # As numbers: no character of a name can be taken for another thing.
    name = "".join(f"{byte};" for byte in ssid.encode())
    return (
        f"[connection]\nid=tandem-wifi\nuuid={uuid.uuid4()}\ntype=wifi\n[wifi]\nmode=infrastructure\nssid={name}\n"
        + security.format(psk=psk)
        + "[ipv4]\nmethod=auto\n[ipv6]\nmethod=auto\n"
    )


def mobile(bearer: Bearer, number: int) -> str:
    """A connection over any modem with such a SIM (nm-settings-keyfile(5)). No PIN: one tried on the wrong SIM would lock it."""
    gsm = ["auto-config=true"] if bearer.apn is None else [f"apn={keyfile(bearer.apn)}"]
    gsm += [f"username={keyfile(bearer.user)}"] if bearer.user is not None else []
    gsm += [f"password={keyfile(bearer.password)}"] if bearer.password is not None else []
    return (
        f"[connection]\nid=tandem-mobile-{number}\nuuid={uuid.uuid4()}\ntype=gsm\nmulti-connect=3\nautoconnect-retries=0\n"
        + "\n".join(["[gsm]", *gsm, "home-only=true"])
        + "\n[ipv4]\nmethod=auto\nroute-metric=800\n[ipv6]\nmethod=auto\nroute-metric=800\n"
    )


def keyfile(text: str) -> str:
    """A text as GLib's key files have it: backslashes doubled, a blank at its start written as \\s."""
    escaped = text.replace("\\", "\\\\")
    return "\\s" + escaped[1:] if escaped.startswith(" ") else escaped


def _shipped(name: str) -> str:
    """A file that goes on the probe as it is."""
    return package_files("tandem_image").joinpath("files", name).read_text()
