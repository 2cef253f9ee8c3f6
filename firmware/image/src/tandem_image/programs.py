"""The programs that open file systems inside a file: mtools (FAT) and e2fsprogs (ext4). No mount, no loop device, no root."""

from __future__ import annotations

import os
import shutil
import subprocess

from tandem_image.errors import LackingError

PACKAGES = {
    "mcopy": "mtools",
    "mtype": "mtools",
    "mdir": "mtools",
    "debugfs": "e2fsprogs",
    "e2fsck": "e2fsprogs",
    "xz": "xz-utils",
}
_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def find(program: str) -> str:
    """Where a program is. Raises LackingError with its package."""
    found = shutil.which(program, path=_PATH)
    if found is None:
        raise LackingError(f"{program} is missing; mend: apt install {PACKAGES.get(program, program)}")
    return found


def run(
    program: str, *arguments: str, stdin: bytes | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """One program to its end, output kept, whatever its exit status."""
    return subprocess.run(
        [find(program), *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        check=False,
        env={**os.environ, "LC_ALL": "C.UTF-8", **(env or {})},
    )
