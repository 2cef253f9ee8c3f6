"""A small disk that only this test sees: a tmpfs in a mount namespace that lives as long as a process that holds it."""

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SLACK_BYTES = 3_000_000
"""What a rehearsal may write while the filler is being made."""


@dataclass
class SmallDisk:
    """``inside``: the disk's folder for programs on it; ``seen``: the same from here."""

    inside: Path
    seen: Path
    enter: list[str]

    def fill(self) -> None:
        """Fill it with a file. What is given free meanwhile is not taken, but for a little."""
        free = shutil.disk_usage(self.seen).free
        with (self.seen / "filler").open("wb", buffering=0) as filler:
            os.posix_fallocate(filler.fileno(), 0, free - SLACK_BYTES)
            filler.seek(free - SLACK_BYTES)
            try:
                for _ in range(SLACK_BYTES // 4096):
                    filler.write(b"\0" * 4096)
            except OSError:
                return  # full

    def keep_full(self, enough: threading.Event) -> None:
        """Take whatever is free, at once and again and again, until ``enough``."""
        with (self.seen / "filler").open("wb", buffering=0) as filler:
            while True:
                try:
                    while not enough.is_set():
                        filler.write(b"\0" * 1_000_000)
                except OSError:
                    pass  # full
                if enough.wait(0.02):
                    return


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[SmallDisk]:
    """A disk of ``size`` (as ``mount -o size=``) at ``folder``."""
    folder.mkdir()
    script = 'mount -t tmpfs -o size="$1" none "$2" && echo there && exec cat'
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", script, "sh", size, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "there\n"
        seen = Path(f"/proc/{holder.pid}/root{folder}")
        yield SmallDisk(folder, seen, ["nsenter", f"--target={holder.pid}", "--mount", f"--wdns={folder}", "--"])
        holder.stdin.close()
        holder.wait(10)
