"""What stands around the collector of the incident run: a Raspberry Pi's files, a boot of its own, a small disk of the server's."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.pi_tree import plant

WELL, TOO_LOW = "0", "50005"
"""``get_throttled``: undervoltage and throttling now, and since the boot."""

ENTER = """
planted=$1; shift
for folder in class/thermal devices/platform block; do mount --bind "$planted/sys/$folder" "/sys/$folder" || exit 3; done
mount --bind "$planted/boot_id" /proc/sys/kernel/random/boot_id || exit 3
exec "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A Raspberry Pi 4 as far as the collector looks, in ``folder``."""

    folder: Path

    @classmethod
    def planted(cls, folder: Path) -> Machine:
        """Made, with a supply that is well."""
        folder.mkdir(parents=True)
        plant("pi4", folder)
        made = cls(folder)
        made.supply(WELL)
        made.booted()
        for place in (folder, *folder.rglob("*")):
            if not place.is_symlink():
                os.chmod(place, 0o755)  # noqa: PTH101, S103  the collector reads it as whoever called sudo
        return made

    @property
    def around(self) -> list[str]:
        """What the collector's command line is given to: it sees this machine in place of the one that it runs on."""
        return ["unshare", "--mount", "sh", "-c", ENTER, "sh", str(self.folder)]

    def supply(self, bits: str) -> None:
        """What the firmware tells of it from now on."""
        (self.folder / "sys/devices/platform/soc/soc:firmware/get_throttled").write_text(bits + "\n")

    def booted(self) -> None:
        """The collector's next start is in another boot."""
        (self.folder / "boot_id").write_text(f"{uuid.uuid4()}\n")


@dataclass(frozen=True)
class SmallDisk:
    """A file system of its own at ``folder``."""

    folder: Path

    def fill(self, leave_bytes: int) -> None:
        """So that no more than this is free."""
        room = os.statvfs(self.folder)
        with (self.folder / "filler").open("wb") as filler:
            os.posix_fallocate(filler.fileno(), 0, room.f_bavail * room.f_frsize - leave_bytes)

    def clear(self) -> None:
        (self.folder / "filler").unlink()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of ``size`` (as ``mount -o size=``) at ``folder``; made before the rig, whose programs else do not see it."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    try:
        yield SmallDisk(folder)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
