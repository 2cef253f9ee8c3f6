"""A machine's disk after a power cut has what was flushed and nothing else: QEMU's own log of writes, put into the image."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from targets.disk import Disk, Settled

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        shutil.which("qemu-io") is None or shutil.which("qemu-img") is None,
        reason="qemu-io or qemu-img not found; hint: apt-get install qemu-utils",
    ),
]
SIZE = 1 << 20


def image(folder: Path) -> Path:
    file = folder / "disk.img"
    file.write_bytes(b"\xee" * SIZE)
    return file


def written(disk: Disk, *commands: str) -> None:
    """What the emulator writes to the disk on ``commands``, with the options that it is started with."""
    disk.options()
    overlay, log = disk.image.with_suffix(".overlay"), disk.image.with_suffix(".log")
    opened = f"driver=blklogwrites,file.driver=qcow2,file.file.driver=file,file.file.filename={overlay}"
    argv = ["qemu-io", "-t", "writeback", "--image-opts", f"{opened},log.driver=file,log.filename={log}"]
    # It flushes when it ends well, which a cut does not.
    killed = "sigraise 9"
    done = subprocess.run(
        [*argv, *(word for command in (*commands, killed) for word in ("-c", command))],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr


def test_what_was_flushed_is_there_and_what_was_not_is_lost_start_after_start(tmp_path: Path) -> None:
    disk = Disk(image(tmp_path))
    written(
        disk, "write -P 0x11 0 64k", "write -P 0x22 64k 64k", "flush", "write -P 0x33 64k 64k", "write -P 0x44 512k 4k"
    )
    assert disk.settle() == Settled(kept=2 << 16, lost=(1 << 16) + 4096, flushes=1)
    content = disk.image.read_bytes()
    assert content[: 2 << 16] == b"\x11" * (1 << 16) + b"\x22" * (1 << 16)
    assert content[2 << 16 :] == b"\xee" * (SIZE - (2 << 16))
    # Zeros, and a write that reaches through the cache, which flushes what came before it.
    written(disk, "write -z 0 4k", "write -f -P 0x55 256k 4k", "write -P 0x66 512k 4k")
    disk.settle()
    content = disk.image.read_bytes()
    assert content[: 8 << 10] == bytes(4 << 10) + b"\x11" * (4 << 10)
    assert content[256 << 10 : 260 << 10] == b"\x55" * (4 << 10)
    assert content[512 << 10 : 516 << 10] == b"\xee" * (4 << 10)


def test_a_log_that_ends_in_the_middle_of_a_write_ends_there(tmp_path: Path) -> None:
    disk = Disk(image(tmp_path))
    written(disk, "write -P 0x11 0 4k", "flush", "write -P 0x22 0 4k")
    log = disk.image.with_suffix(".log")
    log.write_bytes(log.read_bytes()[:-1024])
    assert disk.settle() == Settled(kept=4096, lost=0, flushes=1)
    assert disk.image.read_bytes()[:4096] == b"\x11" * 4096


def test_a_disk_that_was_not_written_to_is_as_it_was(tmp_path: Path) -> None:
    disk = Disk(image(tmp_path))
    disk.options()
    assert disk.settle() == Settled(0, 0, 0)
    assert disk.image.read_bytes() == b"\xee" * SIZE
