"""The files that both releases get alike: who comes in, watchdog, spool, enrolment, modems."""

from __future__ import annotations

import json
import uuid
from importlib.resources import files as package_files

from tandem_image.ext4 import Entry, File, Folder, Link
from tandem_image.mbr import Table
from tandem_image.release import Stock
from tandem_image.settings import Bearer, Enrolment, Settings

BOOT, ROOT, SPOOL = 1, 2, 3
UNITS = "/etc/systemd/system"
WANTS = f"{UNITS}/multi-user.target.wants"
CONNECTIONS = "/etc/NetworkManager/system-connections"
_WATCHDOG_S = 15
# Words of the kernel's command line at which the image's own first start grows the root to the card's end: bookworm's initramfs at
# anything with "firstboot", trixie's at " resize" (raspberrypi-sys-mods, initramfs-tools/scripts/local-premount). What bookworm's init=
# does besides is done here.
_GROWING = ("firstboot", "init_resize.sh", "resize")


def shipped(name: str) -> bytes:
    """A file that goes on the probe as it is."""
    return package_files("tandem_image").joinpath("files", name).read_bytes()


def cmdline(stock: Stock, table: Table, country: str | None) -> str:
    """The kernel's command line: the new disk id, the radio's country, nothing that grows the root, USB devices awake."""
    gone = ("root=", "cfg80211.ieee80211_regdom=", "usbcore.autosuspend=")
    words = [
        word
        for word in stock.cmdline.split()
        if not word.startswith(gone) and not any(growing in word for growing in _GROWING)
    ]
    words += [f"root=PARTUUID={table.partuuid(ROOT)}", "usbcore.autosuspend=-1"]
    if country is not None:
        words.append(f"cfg80211.ieee80211_regdom={country}")
    return " ".join(words) + "\n"


def config(stock: Stock) -> str:
    """config.txt: the hardware's watchdog (the role base's own block, which then changes nothing), and all the current USB can have."""
    return (
        stock.config.rstrip("\n")
        + "\n\n# Tandem: two modems draw what two modems draw (Pi 2 and 3; Pi 5)\n[all]\nmax_usb_current=1\nusb_max_current_enable=1\n"
        + "# BEGIN Tandem: watchdog (role base)\n[all]\ndtparam=watchdog=on\n# END Tandem: watchdog (role base)\n"
    )


def fstab(stock: Stock, old_disk_id: int, table: Table) -> str:
    """The partitions by their new names. The spool is not among them: files/tandem-spool says why."""
    return stock.fstab.replace(f"{old_disk_id:08x}-", f"{table.disk_id:08x}-")


def common(stock: Stock, old_disk_id: int, table: Table, settings: Settings, spool: uuid.UUID) -> list[Entry]:
    """What goes into the root file system on either release."""
    entries: list[Entry] = [
        File("/etc/fstab", fstab(stock, old_disk_id, table).encode()),
        Folder("/var/lib/tandem"),
        File(f"{UNITS}/tandem-spool.service", shipped("tandem-spool.service")),
        File("/usr/local/sbin/tandem-spool", shipped("tandem-spool"), 0o755),
        File("/etc/tandem/spool.conf", f"partuuid={table.partuuid(SPOOL)}\nuuid={spool}\n".encode()),
        Link(f"{UNITS}/local-fs.target.wants/tandem-spool.service", f"{UNITS}/tandem-spool.service"),
        # The same names as the role base uses. 90: trixie has a file of its own, 40 or 70, and the last one wins.
        File(
            "/etc/systemd/system.conf.d/90-tandem.conf",
            f"# Tandem: as the role base writes it.\n[Manager]\nRuntimeWatchdogSec={_WATCHDOG_S}s\nRebootWatchdogSec=2min\n".encode(),
        ),
        File("/etc/sudoers.d/tandem", f"{settings.user} ALL=(ALL) NOPASSWD: ALL\n".encode(), 0o440),
        File("/etc/ssh/sshd_config.d/10-tandem.conf", shipped("sshd.conf")),
        *(_radio(stock) if settings.wifi is not None else []),
        *(
            File(f"{CONNECTIONS}/tandem-mobile-{n}.nmconnection", _mobile(one, n), 0o600)
            for n, one in enumerate(settings.bearers, 1)
        ),
    ]
    if settings.enrolment is not None:
        entries += _enrolment(settings.probe, settings.enrolment)
    return entries


def _enrolment(probe: str, enrolment: Enrolment) -> list[Entry]:
    ca_file = None if enrolment.ca_pem is None else "/etc/tandem/ca.pem"
    asked = {"probe": probe, "gateway": enrolment.gateway, "code": enrolment.code, "ca_file": ca_file}
    entries: list[Entry] = [
        File("/usr/local/sbin/tandem-enrol", shipped("tandem-enrol"), 0o755),
        File(f"{UNITS}/tandem-enrol.service", shipped("tandem-enrol.service")),
        Link(f"{WANTS}/tandem-enrol.service", f"{UNITS}/tandem-enrol.service"),
        File("/etc/tandem/enrol.json", json.dumps(asked, indent=1).encode() + b"\n", 0o600),
    ]
    if enrolment.ca_pem is not None:
        entries.append(File("/etc/tandem/ca.pem", enrolment.ca_pem))
    return entries


def _radio(stock: Stock) -> list[Entry]:
    """Wi-Fi is off in a stock image until a country is set: in NetworkManager's own state, and in rfkill's."""
    on = b"[main]\nNetworkingEnabled=true\nWirelessEnabled=true\nWWANEnabled=true\n"
    return [
        File("/var/lib/NetworkManager/NetworkManager.state", on),
        *(File(f"/var/lib/systemd/rfkill/{name}", b"0\n") for name in stock.blocked_radios),
    ]


def _mobile(bearer: Bearer, number: int) -> bytes:
    """A connection over any modem with such a SIM (nm-settings-keyfile(5)). No PIN: one tried on the wrong SIM would lock it."""
    lines = [
        "[connection]",
        f"id=tandem-mobile-{number}",
        f"uuid={uuid.uuid4()}",
        "type=gsm",
        "multi-connect=3",
        "autoconnect-retries=0",
        "",
        "[gsm]",
        f"apn={keyfile(bearer.apn)}",
        *([f"username={keyfile(bearer.user)}"] if bearer.user is not None else []),
        *([f"password={keyfile(bearer.password)}"] if bearer.password is not None else []),
        "home-only=true",
        "",
        "[ipv4]",
        "method=auto",
        "route-metric=800",
        "",
        "[ipv6]",
        "method=auto",
        "route-metric=800",
        "",
    ]
    return "\n".join(lines).encode()


def keyfile(text: str) -> str:
    """A text as GLib's key files have it: backslashes doubled, a blank at its start written as \\s."""
    escaped = text.replace("\\", "\\\\")
    return "\\s" + escaped[1:] if escaped.startswith(" ") else escaped
