"""Raspberry Pi OS bookworm: the older way.

``userconf.txt`` (userconf-pi) gives the first user its name and a password's hash; ``*`` is a hash that no password has, so that the
account has none and is not locked either. Its keys lie in its home already, which is moved with it. Host name and Wi-Fi are the files of
a running system. The image's own first start (``init=…/firstboot``, custom.toml) is left out: it would grow the root over the spool, and
all else it does is done here.
"""

from __future__ import annotations

import re
import uuid

from tandem_image.ext4 import Entry, File, Folder
from tandem_image.parts import CONNECTIONS, keyfile
from tandem_image.release import Stock
from tandem_image.settings import Settings, Wifi

NO_PASSWORD = "*"  # noqa: S105 - the hash of no password


def boot_files(stock: Stock, settings: Settings) -> dict[str, bytes]:
    """For the boot partition. ``ssh`` switches SSH on (sshswitch.service)."""
    del stock
    return {"userconf.txt": f"{settings.user}:{NO_PASSWORD}\n".encode(), "ssh": b""}


def root_files(stock: Stock, settings: Settings) -> list[Entry]:
    """For the root partition."""
    user = stock.first_user
    if user is None:
        raise ValueError("identify() lets no bookworm image without its first user pass")
    keys = "".join(f"{key}\n" for key in settings.keys).encode()
    entries: list[Entry] = [
        File("/etc/hostname", f"{settings.probe}\n".encode()),
        File("/etc/hosts", hosts(stock.hosts, settings.probe).encode()),
        Folder(f"{user.home}/.ssh", 0o700, user.uid, user.gid),
        File(f"{user.home}/.ssh/authorized_keys", keys, 0o600, user.uid, user.gid),
    ]
    if settings.wifi is not None and settings.wifi.ssid is not None:
        entries.append(
            File(f"{CONNECTIONS}/tandem-wifi.nmconnection", connection(settings.wifi, settings.wifi.ssid), 0o600)
        )
    return entries


def hosts(text: str, name: str) -> str:
    """/etc/hosts with the machine's own name, which must be found without asking anybody."""
    line = f"127.0.1.1\t{name}"
    replaced, count = re.subn(r"(?m)^127\.0\.1\.1\s.*$", line, text)
    return replaced if count else f"{text.rstrip(chr(10))}\n{line}\n"


def connection(wifi: Wifi, ssid: str) -> bytes:
    """A Wi-Fi network for NetworkManager (nm-settings-keyfile(5)); it takes 64 hex digits as the key itself."""
    lines = [
        "[connection]",
        "id=tandem-wifi",
        f"uuid={uuid.uuid4()}",
        "type=wifi",
        "",
        "[wifi]",
        "mode=infrastructure",
        f"ssid={_network(ssid)}",
        "",
        *(["[wifi-security]", "key-mgmt=wpa-psk", f"psk={wifi.psk}", ""] if wifi.psk is not None else []),
        "[ipv4]",
        "method=auto",
        "",
        "[ipv6]",
        "method=auto",
        "",
    ]
    return "\n".join(lines).encode()


def _network(ssid: str) -> str:
    """A network's name: a list of numbers where NetworkManager would take it for one; and a ; that is meant is marked (ssid, same page)."""
    if all(character in "0123456789; " for character in ssid):
        return "".join(f"{byte};" for byte in ssid.encode())
    return keyfile(ssid).replace(";", "\\;")
