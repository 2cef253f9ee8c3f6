"""The boot partition (FAT32) inside the image file, by mtools."""

from __future__ import annotations

from pathlib import Path

from tandem_image.errors import ImageError
from tandem_image.programs import run

# Its own settings and none of the user's; it would refuse a partition whose size its disk's geometry does not divide.
_ENV = {"MTOOLSRC": "/dev/null", "MTOOLS_SKIP_CHECK": "1", "MTOOLS_NO_VFAT": "0"}


class BootPartition:
    """Files at the top of the boot partition at ``offset`` bytes into the image."""

    def __init__(self, image: Path, offset: int) -> None:
        self._place = f"{image}@@{offset}"

    def names(self) -> frozenset[str]:
        """What lies at the top, folders without a slash. Raises ImageError when this is no FAT file system."""
        listed = run("mdir", "-b", "-i", self._place, "::", env=_ENV)
        if listed.returncode != 0:
            raise ImageError(f"the boot partition cannot be read ({_said(listed.stderr)}); mend: load the image again")
        return frozenset(
            line.removeprefix("::/").rstrip("/") for line in listed.stdout.decode(errors="replace").splitlines() if line
        )

    def read(self, name: str) -> bytes:
        """A file's content. Raises ImageError where it is not there."""
        read = run("mtype", "-i", self._place, f"::/{name}", env=_ENV)
        if read.returncode != 0:
            raise ImageError(
                f"{name} cannot be read from the boot partition ({_said(read.stderr)}); mend: load the image again"
            )
        return read.stdout

    def write(self, name: str, content: bytes) -> None:
        """Put a file there, in place of one of that name, and read it back."""
        written = run("mcopy", "-o", "-i", self._place, "-", f"::/{name}", stdin=content, env=_ENV)
        if written.returncode != 0:
            raise ImageError(
                f"{name} cannot be written to the boot partition ({_said(written.stderr)}); mend: is the disk full?"
            )
        if self.read(name) != content:
            raise ImageError(f"{name} on the boot partition is not what was written; mend: check this machine's disk")


def _said(stderr: bytes) -> str:
    return " ".join(stderr.decode(errors="replace").split()) or "no reason told"
