"""The folder of the check's own collector: for one account only, in memory where it can be, and removed also after a sudden end."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RUN = Path("/run")
"""Of this boot, in memory, and written to by root."""
_NAME = "tandem-preflight"


class OwnFolder:
    """``path``, held by this process until it ends, however that is. What others left that ended without ``remove`` is removed first.
    OSError."""

    def __init__(self, run: Path = RUN) -> None:
        base = _base(run)
        with _locked(base):
            _sweep(base)
            self.path = Path(tempfile.mkdtemp(dir=base))
            self._held = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(self._held, fcntl.LOCK_EX)

    def remove(self) -> None:
        """All of it."""
        with _locked(self.path.parent):  # another check, which looks at what is there, must not meet half of it
            shutil.rmtree(self.path)
        os.close(self._held)


def sweep(run: Path = RUN) -> int:
    """Remove what ended checks of this account left; how many folders. OSError."""
    swept = 0
    for base in _places(run):
        if _ours(base):
            with _locked(base):
                swept += _sweep(base)
    return swept


def _places(run: Path) -> tuple[Path, Path]:
    return run / _NAME, Path(tempfile.gettempdir()) / f"{_NAME}-{os.geteuid()}"


def _base(run: Path) -> Path:
    """The first of the places that can be had; OSError of the last."""
    first, last = _places(run)
    with contextlib.suppress(OSError):
        first.mkdir(mode=0o700, exist_ok=True)
        if _ours(first):
            return first
    last.mkdir(mode=0o700, exist_ok=True)
    if not _ours(last):
        raise PermissionError(f"{last} is another account's, or others may look into it")
    return last


def _ours(base: Path) -> bool:
    """A folder, and no link, of this account, closed to others: anybody may make names among temporary files."""
    try:
        of = base.lstat()
    except (FileNotFoundError, PermissionError):
        return False
    return stat.S_ISDIR(of.st_mode) and of.st_uid == os.geteuid() and not of.st_mode & 0o077


@contextmanager
def _locked(base: Path) -> Iterator[None]:
    """Nobody else makes a folder there or sweeps: between making and holding one it looks like left."""
    opened = os.open(base, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _sweep(base: Path) -> int:
    swept = 0
    for folder in base.iterdir():
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its owner lives
        else:
            shutil.rmtree(folder)
            swept += 1
        finally:
            os.close(opened)
    return swept
