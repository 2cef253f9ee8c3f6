"""A card: which disk may be one, and its writing. Run as ``python -m tandem_image.card IMAGE DEVICE`` it writes, with root's rights."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from tandem_image import ImageError

LEAST_BYTES = 14_000_000_000  # the system has 8 GiB, the spool the rest
_COLUMNS = "NAME,PATH,TYPE,RM,RO,SIZE,VENDOR,MODEL,MOUNTPOINTS"
_BLKFLSBUF = 0x1261  # linux/fs.h: what the kernel remembers of a block device is forgotten
_CARDS = "hint: ./kit image --cards"


def disks(*devices: str) -> list[dict[str, Any]]:
    """What lsblk says of all disks, or of these."""
    told = subprocess.run(
        ["lsblk", "--json", "--bytes", "--output", _COLUMNS, *devices], capture_output=True, check=False
    )
    return list(json.loads(told.stdout)["blockdevices"]) if told.returncode == 0 else []


def removable(disk: dict[str, Any]) -> bool:
    """A reader that is built in says of its card that it is an SD card, and of itself not that it is removable."""
    kind = Path("/sys/block") / disk["name"] / "device/type"
    return bool(disk["rm"]) or (kind.is_file() and kind.read_text().strip() == "SD")


def uses(disk: dict[str, Any]) -> list[str]:
    """Where the disk, its partitions and what lies on them are mounted; swap as lsblk calls it, [SWAP]."""
    here = [place for place in disk["mountpoints"] if place]
    return here + [place for child in disk.get("children", []) for place in uses(child)]


def named(disk: dict[str, Any]) -> str:
    """A disk as people know it."""
    model = " ".join(word.strip() for word in (disk["vendor"], disk["model"]) if word)
    return f"{disk['path']} ({model or 'no model'}, {disk['size'] / 1e9:.1f} GB)"


def check(device: Path) -> dict[str, Any]:
    """The disk at ``device``, if it may be written. Raises ImageError with the reason."""
    found = disks(str(device))
    if len(found) != 1:
        raise ImageError(f"{device}: there is no such disk; {_CARDS}", 1)
    refuse(found[0])
    return found[0]


def refuse(disk: dict[str, Any]) -> None:
    """Raise ImageError for what is no card, or none that may be written."""
    if disk["type"] == "part":
        raise ImageError(f"{disk['path']} is a partition; hint: give the whole disk", 1)
    if disk["type"] != "disk":
        raise ImageError(f"{disk['path']} is no disk but {disk['type']}; {_CARDS}", 1)
    if not removable(disk):
        what = f"{named(disk)} is a disk of this machine, not a card"
        raise ImageError(f"{what}{', with ' if uses(disk) else ''}{', '.join(uses(disk))}; {_CARDS}", 1)
    if uses(disk):
        raise ImageError(f"{named(disk)} is mounted: {', '.join(uses(disk))}; hint: umount {disk['path']}?*", 1)
    if disk["ro"]:
        raise ImageError(f"{named(disk)} is read-only; hint: slide the card's lock", 1)
    if disk["size"] == 0:
        raise ImageError(f"{disk['path']}: the reader is empty; hint: put a card into it", 1)
    if disk["size"] < LEAST_BYTES:
        raise ImageError(f"{named(disk)} is too small; hint: 16 GB at the least, better 32 GB or more", 1)


def write_as_root(image: Path, device: Path) -> None:
    """By rpi-imager where it is installed, else by this module; only this is done with root's rights."""
    imager = shutil.which("rpi-imager")
    words = [imager, "--cli"] if imager else [sys.executable, "-B", "-m", "tandem_image.card"]
    may = os.geteuid() == 0 or (imager is None and os.access(device, os.R_OK | os.W_OK))
    if not may and shutil.which("sudo") is None:
        raise ImageError(f"{device}: only root may write it and there is no sudo; hint: run the command as root", 3)
    done = subprocess.run([*([] if may else ["sudo", "--"]), *words, str(image), str(device)], check=False)
    if done.returncode != 0 and imager is not None:
        raise ImageError(f"{device}: rpi-imager failed; hint: try another card or another reader", 1)
    if done.returncode != 0:
        raise SystemExit(done.returncode)  # it has said why


def write(image: Path, device: Path) -> None:
    """Write ``image`` over the start of ``device`` and compare what the card itself gives back. Raises ImageError."""
    try:
        # Exclusive: the kernel itself refuses a disk of which anything is mounted or held.
        out = os.open(device, os.O_RDWR | os.O_EXCL | os.O_CLOEXEC)
    except OSError as error:
        raise ImageError(f"{device}: {error.strerror}; hint: umount {device}?*", 1) from None
    try:
        progress = "progress" if sys.stderr.isatty() else "none"
        words = ["dd", f"if={image}", "bs=4M", "conv=notrunc,fsync", f"status={progress}"]
        if subprocess.run(words, stdout=out, check=False).returncode != 0:
            raise ImageError(f"{device} cannot be written; hint: try another card or another reader", 1)
        fcntl.ioctl(out, _BLKFLSBUF)
        compare(image, out, device)
    finally:
        os.close(out)


def compare(image: Path, card: int, device: Path) -> None:
    """Raise ImageError where ``card`` does not begin with ``image``."""
    os.lseek(card, 0, os.SEEK_SET)
    words = ["cmp", f"--bytes={image.stat().st_size}", str(image), "-"]
    if subprocess.run(words, stdin=card, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise ImageError(f"{device} gives back something else than was written; hint: throw this card away", 1)


if __name__ == "__main__":
    try:
        check(Path(sys.argv[2]))
        write(Path(sys.argv[1]), Path(sys.argv[2]))
    except ImageError as error:
        print(f"tandem-image: {error}", file=sys.stderr)
        raise SystemExit(error.status) from None
