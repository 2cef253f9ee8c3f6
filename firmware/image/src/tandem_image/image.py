"""The stock image: unpacked, and files put into its FAT partition by mtools. No mount, no loop device, no root."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tandem_image import ImageError

_SECTOR = 512
_FAT, _LINUX = (0x0B, 0x0C, 0x0E), 0x83
_XZ = b"\xfd7zXZ\x00"
# mtools with its own settings and none of the user's; it would refuse a partition whose size its disk's geometry does not divide.
_MTOOLS = {**os.environ, "MTOOLSRC": "/dev/null", "MTOOLS_SKIP_CHECK": "1", "MTOOLS_NO_VFAT": "0", "LC_ALL": "C.UTF-8"}
_OFFICIAL = "hint: download the official image of Raspberry Pi OS Lite and compare its SHA-256"


def run(*command: str, given: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """One program to its end, output kept. Raises ImageError where it is missing."""
    try:
        return subprocess.run(command, input=given, capture_output=True, check=False, env=_MTOOLS)
    except FileNotFoundError:
        raise ImageError(f"{command[0]} is missing; hint: apt-get install mtools xz-utils util-linux", 3) from None


def unpack(source: Path, target: Path) -> None:
    """Copy ``source`` (.img, or .img.xz whatever its name) to the new file ``target``. Raises ImageError where it cannot be read whole."""
    try:
        with source.open("rb") as file:
            packed = file.read(len(_XZ)) == _XZ
        # Whoever has the image has the probe's invitation.
        with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as out:
            if packed:
                words = ["xz", "--decompress", "--stdout", *(["--verbose"] if sys.stderr.isatty() else ["--quiet"])]
                if subprocess.run([*words, str(source)], stdout=out, check=False).returncode != 0:
                    raise ImageError(f"{source}: damaged or cut off; {_OFFICIAL}")
        if not packed:
            shutil.copyfile(source, target)
    except OSError as error:
        reason = "there is no such file" if isinstance(error, FileNotFoundError) else error.strerror
        hint = "hint: --image with the file of Raspberry Pi OS Lite (.img or .img.xz)"
        raise ImageError(f"{error.filename or source}: {reason}; {hint}") from None


class BootPartition:
    """The FAT partition of an unpacked stock image. ``disk_id`` is what the image's PARTUUIDs begin with."""

    def __init__(self, image: Path) -> None:
        """Raises ImageError where ``image`` has not the two partitions of a stock image."""
        with image.open("rb") as file:
            sector = file.read(_SECTOR)
        if len(sector) < _SECTOR or sector[510:] != b"\x55\xaa":
            raise ImageError(f"there is no partition table in the image; {_OFFICIAL}")
        # The partition table (MBR): the disk's id at 440, four entries of 16 bytes from 446: type at 4, first sector at 8, sectors at 12.
        entries = [struct.unpack_from("<4xB3xII", sector, 446 + 16 * number) for number in range(4)]
        (boot, start, _), (root, root_start, root_sectors), *others = entries
        if boot not in _FAT or root != _LINUX:
            raise ImageError(f"the image has not the partitions of Raspberry Pi OS (FAT, then Linux); {_OFFICIAL}")
        if any(kind for kind, _, _ in others):
            raise ImageError(
                "the image has more than two partitions: it was started before; hint: take a fresh official image"
            )
        if (root_start + root_sectors) * _SECTOR > image.stat().st_size:
            raise ImageError(f"the image ends before its partitions do; {_OFFICIAL}")
        self.disk_id = f"{int.from_bytes(sector[440:444], 'little'):08x}"
        self._place = f"{image}@@{start * _SECTOR}"
        self.names = frozenset(name.removeprefix("::/").rstrip("/") for name in self._listed())

    def _listed(self) -> list[str]:
        listed = run("mdir", "-b", "-i", self._place, "::")
        if listed.returncode != 0:
            raise ImageError(f"the image's FAT partition cannot be read; {_OFFICIAL}")
        return listed.stdout.decode(errors="replace").splitlines()

    def read(self, name: str) -> str:
        """A file's text. Raises ImageError where it is not there."""
        read = run("mtype", "-i", self._place, f"::/{name}")
        if read.returncode != 0:
            raise ImageError(f"the image's FAT partition has no {name}; {_OFFICIAL}")
        return read.stdout.decode(errors="replace")

    def write(self, files: Mapping[str, str]) -> None:
        """Put these files there, in place of those of the same names, and read them back."""
        for name, text in files.items():
            written = run("mcopy", "-o", "-i", self._place, "-", f"::/{name}", given=text.encode())
            if written.returncode != 0 or self.read(name) != text:
                raise ImageError(f"{name} does not fit into the image's FAT partition; {_OFFICIAL}")
