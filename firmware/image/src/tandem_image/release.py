"""What the image is: read off the image itself, never asked of the user."""

from __future__ import annotations

from dataclasses import dataclass

from tandem_image.errors import ImageError
from tandem_image.ext4 import RootPartition
from tandem_image.fat import BootPartition

RELEASES = ("bookworm", "trixie")
_LIBRARIES = {"armhf": "/usr/lib/arm-linux-gnueabihf", "arm64": "/usr/lib/aarch64-linux-gnu"}
_FIRST_USER = 1000


@dataclass(frozen=True)
class Account:
    """The image's own first user, whom the release renames or leaves alone."""

    name: str
    uid: int
    gid: int
    home: str


@dataclass(frozen=True)
class Stock:
    """What of the image the files to be written depend on."""

    release: str
    architecture: str
    cmdline: str
    config: str
    fstab: str
    hosts: str
    first_user: Account | None
    blocked_radios: tuple[str, ...]


def identify(boot: BootPartition, root: RootPartition) -> Stock:
    """Read both partitions. Raises ImageError, with its mend, for what is not Raspberry Pi OS bookworm or trixie."""
    names = boot.names()
    if not {"cmdline.txt", "config.txt"} <= names:
        raise ImageError(
            "the boot partition has no cmdline.txt and config.txt: this is not Raspberry Pi OS; mend: take the official image"
        )
    os_release = assignments(_text(root, "/etc/os-release"))
    release = os_release.get("VERSION_CODENAME", "")
    if root.found("/etc/rpi-issue") is None:
        raise ImageError(
            "this is not Raspberry Pi OS (no /etc/rpi-issue); mend: take the official image of Raspberry Pi OS Lite"
        )
    if release not in RELEASES:
        named = os_release.get("PRETTY_NAME", release or "nothing in /etc/os-release")
        raise ImageError(f"the image is {named}; mend: take Raspberry Pi OS Lite bookworm or trixie")
    architecture = next((name for name, folder in _LIBRARIES.items() if root.found(folder) is not None), None)
    if architecture is None:
        raise ImageError("the image is for neither armhf nor arm64; mend: take the official image")
    stock = Stock(
        release,
        architecture,
        boot.read("cmdline.txt").decode(errors="replace"),
        boot.read("config.txt").decode(errors="replace"),
        _text(root, "/etc/fstab"),
        _text(root, "/etc/hosts"),
        first_user(_text(root, "/etc/passwd")),
        tuple(name for name in root.names("/var/lib/systemd/rfkill") if name.endswith(":wlan")),
    )
    if release == "trixie" and root.found("/usr/bin/cloud-init") is None:
        raise ImageError(
            "this trixie image has no cloud-init, which sets it up; mend: take an official image of October 2025 or later"
        )
    if release == "bookworm" and (stock.first_user is None or root.found("/usr/lib/userconf-pi/userconf") is None):
        raise ImageError(
            "this bookworm image has no first user or no userconf, which names it; mend: take the official image"
        )
    return stock


def assignments(text: str) -> dict[str, str]:
    """NAME=value lines as in os-release(5), quotes taken off."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.lstrip().startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}


def first_user(passwd: str) -> Account | None:
    """The account with uid 1000, as userconf finds it."""
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) == 7 and fields[2] == str(_FIRST_USER) and fields[3].isdecimal():
            return Account(fields[0], _FIRST_USER, int(fields[3]), fields[5])
    return None


def _text(root: RootPartition, path: str) -> str:
    content = root.read(path)
    if content is None:
        raise ImageError(
            f"the root partition has no {path}: this is not Raspberry Pi OS; mend: take the official image"
        )
    return content.decode(errors="replace")
