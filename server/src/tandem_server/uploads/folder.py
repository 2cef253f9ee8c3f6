"""Traces in a folder: ``PROBE/NAME``, with ``.gz`` behind it when it came as gzip; read-only, never replaced."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import BinaryIO

from tandem.schema.trace import Encoding
from tandem_server.uploads.store import Held, NotTheFile, Stored, TraceStoreDown, TraceStoreFull, content_of, places

TABLES = ".tables"
"""Below a probe's traces, whose names never begin with a dot: tables of its captures."""
_FULL = (errno.ENOSPC, errno.EDQUOT)


class TraceFolder:
    """``stream`` in ``put`` must be on the folder's file system: it is linked, not copied, so that it is there whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, stream: Path, probe: str, name: str, sha256: str, encoding: Encoding) -> Stored:
        """See TraceStore."""
        try:
            stream.chmod(0o440)
            sync(stream)
            for place in places(probe, name, sha256, encoding):
                if self._linked(stream, place, sha256, encoding):
                    return Stored(place, (self.folder / place).stat().st_size)
        except OSError as error:
            kind = TraceStoreFull if error.errno in _FULL else TraceStoreDown
            raise kind(f"{error.filename2 or error.filename}: {error.strerror}") from error
        raise TraceStoreDown(f"{self.folder / place}: another file is there; hint: move it away")

    def _linked(self, stream: Path, place: str, sha256: str, encoding: Encoding) -> bool:
        """Whether the trace is now there; False: something else is."""
        target = self.folder / place
        try:
            _make_folders(self.folder, target.parent)
            os.link(stream, target)
        except FileExistsError:
            if not _is_it(stream, target, sha256, encoding):
                return False
        except NotADirectoryError:
            return False
        sync(target.parent)
        return True

    def open(self, place: str, offset: int = 0) -> BinaryIO:
        """See TraceStore."""
        try:
            stored = (self.folder / place).open("rb")
            stored.seek(offset)
            return stored
        except FileNotFoundError:
            raise
        except OSError as error:
            raise TraceStoreDown(f"{error.filename}: {error.strerror}") from error

    def free_bytes(self) -> int | None:
        """See TraceStore."""
        return free_bytes(self.folder)

    def held(self, probe: str) -> Held:
        """See TraceStore."""
        try:
            return held(self.folder / probe)
        except OSError as error:
            raise TraceStoreDown(f"{error.filename}: {error.strerror}") from error

    def erase(self, probe: str) -> None:
        """See TraceStore."""
        try:
            erase(self.folder / probe)
        except OSError as error:
            raise TraceStoreDown(f"{error.filename}: {error.strerror}") from error


def held(folder: Path) -> Held:
    """All files below ``folder``, which need not exist; OSError."""
    sizes = [path.lstat().st_size for path in folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return Held(len(sizes), sum(sizes))


def erase(folder: Path) -> None:
    """Take ``folder`` and all below it away, durably; it need not exist. OSError."""
    if folder.is_dir():
        shutil.rmtree(folder)
        sync(folder.parent)


def free_bytes(folder: Path) -> int:
    """What this user may still write on the folder's file system."""
    return shutil.disk_usage(folder).free


def make_folder(folder: Path) -> None:
    """``folder`` with all above it, its entry on disk; for the server's user and group only."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    try:
        folder.mkdir(mode=0o750)
    except FileExistsError:
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder)) from None
    sync(folder.parent)


def _make_folders(root: Path, folder: Path) -> None:
    make_folder(root)
    make_folder(folder)


def _is_it(stream: Path, target: Path, sha256: str, encoding: Encoding) -> bool:
    """Ours already (linked before a crash), or a file with the content that the registry does not know any more."""
    if not target.is_file() or target.is_symlink():
        return False
    if not target.samefile(stream):
        try:
            with target.open("rb") as there:
                if content_of(there, encoding)[1] != sha256:
                    return False
        except NotTheFile:
            return False
        target.chmod(0o440)
        sync(target)
    return True


def sync(path: Path) -> None:
    """What this file holds, or which entries this folder has, is on disk when it returns."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
