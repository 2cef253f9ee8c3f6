"""Where received traces are kept for good: the interface that a folder and S3 share, reading back what is there, and the folder.

In a folder a trace is ``PROBE/NAME``, with ``.gz`` behind it when it came as gzip; read-only, never replaced.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol

from tandem.schema.trace import Encoding, Offer, is_name, is_sha256
from tandem_server.durable import sync
from tandem_server.registry import TraceRow

_PIECE_BYTES = 1024 * 1024
_PACKED_BYTES = 64 * 1024  # behind each member's end the rest of what was given is copied: not too much of it
BY_HASH = ".by-hash"
"""Beside a probe's names, which never begin with a dot: what cannot be kept under its own name."""


class TraceStoreDown(RuntimeError):  # noqa: N818  (it reads as what it is)
    """The store does not take or give traces now; one line says why. Worth trying again."""


class TraceStoreFull(TraceStoreDown):
    """The store has no room."""


class NotTheFile(ValueError):  # noqa: N818  (it reads as what it is)
    """The bytes are not the file that they were said to be; one line says where."""


@dataclass(frozen=True, slots=True)
class Stored:
    """``place``: as the registry keeps it. ``stored_bytes``: how long it is there."""

    place: str
    stored_bytes: int


@dataclass(frozen=True, slots=True)
class Held:
    """Files, or versions of objects, and their bytes."""

    files: int = 0
    bytes: int = 0


class TraceStore(Protocol):
    """Traces under names that are never used for another content."""

    def put(self, stream: Path, probe: str, name: str, sha256: str, encoding: Encoding) -> Stored:
        """Keep ``stream``, a verified file of this encoding that nobody writes any more. When it returns, the trace is there for good.
        The same again is the same. TraceStoreDown, TraceStoreFull; nothing that is there is ever replaced."""

    def open(self, place: str, offset: int = 0) -> BinaryIO:
        """What is stored there, to be read from ``offset`` on, which must be less than its length or 0. FileNotFoundError when there is
        nothing, TraceStoreDown."""

    def held(self, probe: str) -> Held:
        """What there is of a probe. TraceStoreDown."""

    def erase(self, probe: str) -> None:
        """Take out all of it, earlier versions too. TraceStoreDown."""


def places(probe: str, name: str, sha256: str, encoding: Encoding) -> tuple[str, str]:
    """The readable place and the one to fall back on when something else is there (``a`` as gzip and ``a.gz``, ``a`` and ``a/b``)."""
    if not is_name(name) or not is_sha256(sha256) or "/" in probe or not is_name(probe):
        raise ValueError(f"{probe!r}, {name!r}: no names of a probe and a trace")
    end = ".gz" if encoding == "gzip" else ""
    return f"{probe}/{name}{end}", f"{probe}/{BY_HASH}/{sha256}{end}"


def check_stream(stream: BinaryIO, offer: Offer) -> None:
    """Read the whole stream of ``offer``: each chunk one gzip member of just its part of the file, all together the hash; else
    NotTheFile. Holds one chunk at a time, whatever it unpacks to."""
    whole, left = hashlib.sha256(), offer.bytes
    for number, chunk in enumerate(offer.chunks):
        part = stream.read(chunk.bytes)
        plain = min(offer.chunk_bytes, left)
        if offer.encoding == "gzip":
            part = _one_member(part, plain, number)
        if len(part) != plain:
            raise NotTheFile(f"chunk {number} holds {len(part)} bytes of the file, not {plain}")
        whole.update(part)
        left -= plain
    if stream.read(1):
        raise NotTheFile("there is more than the last chunk")
    if whole.hexdigest() != offer.sha256:
        raise NotTheFile("the whole has another hash than was offered")


def _one_member(part: bytes, plain: int, number: int) -> bytes:
    member = zlib.decompressobj(wbits=31)
    try:
        out = member.decompress(part, plain + 1)
    except zlib.error as error:
        raise NotTheFile(f"chunk {number} is no gzip: {error}") from None
    if len(out) > plain:
        raise NotTheFile(f"chunk {number} unpacks to more than {plain} bytes")
    if not member.eof or member.unused_data:
        raise NotTheFile(f"chunk {number} is not one member of gzip")
    return out


def file_parts(stored: BinaryIO, encoding: Encoding) -> Iterator[bytes]:
    """The file, in pieces of at most 1 MiB, out of what is stored. NotTheFile where it is no gzip."""
    if encoding == "identity":
        while piece := stored.read(_PIECE_BYTES):
            yield piece
        return
    member, held, begun = zlib.decompressobj(wbits=31), b"", False
    try:
        while piece := held or stored.read(_PACKED_BYTES):
            if member.eof:
                member = zlib.decompressobj(wbits=31)
            begun = True
            if out := member.decompress(piece, _PIECE_BYTES):
                yield out
            held = member.unused_data if member.eof else member.unconsumed_tail
        while not member.eof and (out := member.decompress(b"", _PIECE_BYTES)):
            yield out
    except zlib.error as error:
        raise NotTheFile(f"no gzip: {error}") from None
    if begun and not member.eof:
        raise NotTheFile("it ends in the middle of a member")


def content_of(stored: BinaryIO, encoding: Encoding) -> tuple[int, str]:
    """Length and SHA-256 of the file in what is stored; NotTheFile when it cannot be read."""
    whole, length = hashlib.sha256(), 0
    for part in file_parts(stored, encoding):
        whole.update(part)
        length += len(part)
    return length, whole.hexdigest()


def copy_out(store: TraceStore, row: TraceRow, write: Callable[[bytes], object] = lambda _: None) -> None:
    """The file of ``row``, piece by piece. NotTheFile when it is gone, or, at its end, when it is another one; TraceStoreDown, and what
    ``write`` raises."""
    whole, length = hashlib.sha256(), 0
    try:
        stored = store.open(row.place)
    except FileNotFoundError as error:
        raise NotTheFile("it is gone") from error
    with stored:
        for part in file_parts(stored, row.encoding):
            whole.update(part)
            length += len(part)
            write(part)
    if length != row.bytes:
        raise NotTheFile(f"{length} bytes instead of {row.bytes}")
    if whole.hexdigest() != row.sha256:
        raise NotTheFile("the SHA-256 is another than was promised")


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
