"""Files of captured packets: their heads and records, and what a broken-off one still holds."""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from dataclasses import dataclass
from pathlib import Path

HEADER_BYTES = 24
RECORD_BYTES = 16
LONGEST_PACKET = 262_144
"""MAXIMUM_SNAPLEN of libpcap: a longer record is damage, not a packet."""

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": ("<", 10**6),
    b"\x4d\x3c\xb2\xa1": ("<", 10**9),
    b"\xa1\xb2\xc3\xd4": (">", 10**6),
    b"\xa1\xb2\x3c\x4d": (">", 10**9),
}
"""Byte order, and the fractions of a second: microseconds or nanoseconds."""


class PcapError(ValueError):
    """The bytes are no pcap stream, or it is damaged; the message says at which byte."""


class Walker:
    """Takes the stream piece by piece. ``packets``: whole packets so far; ``linktype``: None before the header is whole.

    ``torn``: the stream is a file that was not closed, whose end may be anything (zeros, what the disk held before), so that what no
    capture writes is damage too: an empty packet, more captured than there was, or than the header allows, a fraction of a second that
    is none. Damage inside of a packet's bytes shows in no format.
    """

    def __init__(self, *, torn: bool = False) -> None:
        self.packets = 0
        self.linktype: int | None = None
        self.damage: str | None = None
        """What is wrong with the stream, from the byte at which it is: nothing after it is whole."""
        self._torn = torn
        self._snaplen = LONGEST_PACKET
        self._fractions = 10**6
        self._rest = b""
        self._at = 0
        self._head = struct.Struct("<4I")

    def feed(self, piece: bytes) -> tuple[bytes, list[int]]:
        """The bytes that became whole with ``piece`` (file header and whole packets, in order), and the sizes of those units.

        What is incomplete is kept for the next piece. What was whole before damage is given, and ``damage`` set. PcapError when it is no
        pcap stream at all, or when a piece is given after damage.
        """
        if self.damage is not None:
            raise PcapError(self.damage)
        buffer = self._rest + piece if self._rest else piece
        end, at = len(buffer), 0
        sizes: list[int] = []
        if self.linktype is None:
            if end < HEADER_BYTES:
                if not any(magic.startswith(buffer[:4]) for magic in _MAGICS):
                    raise PcapError(f"no pcap file: it begins with {buffer[:4]!r}")
                self._rest = buffer
                return b"", []
            self._begin(buffer)
            sizes.append(HEADER_BYTES)
            at = HEADER_BYTES
        unpack, torn = self._head.unpack_from, self._torn
        while at + RECORD_BYTES <= end:
            _, fraction, captured, length = unpack(buffer, at)
            if captured > LONGEST_PACKET:
                self.damage = f"a packet of {captured} bytes at byte {self._at + at}"
            elif torn and (not 0 < length >= captured <= self._snaplen or fraction >= self._fractions):
                self.damage = f"no packet at byte {self._at + at}"
            size = RECORD_BYTES + captured
            if self.damage is not None or at + size > end:
                break
            sizes.append(size)
            at += size
        self.packets += len(sizes) - (HEADER_BYTES in sizes[:1] and self._at == 0)
        self._at += at
        self._rest = buffer[at:]
        return (buffer[:at] if at < end else buffer), sizes

    def _begin(self, buffer: bytes) -> None:
        layout = _MAGICS.get(buffer[:4])
        if layout is None:
            raise PcapError(f"no pcap file: it begins with {buffer[:4]!r}")
        self._head, self._fractions = struct.Struct(f"{layout[0]}4I"), layout[1]
        snaplen, linktype = struct.unpack_from(f"{layout[0]}2I", buffer, 16)
        self.linktype = linktype & 0xFFFF
        self._snaplen = min(snaplen or LONGEST_PACKET, LONGEST_PACKET)

    @property
    def whole_bytes(self) -> int:
        """Bytes that were whole so far, the file header with them."""
        return self._at

    @property
    def pending_bytes(self) -> int:
        """Bytes of a packet that is not whole yet."""
        return len(self._rest)


# ---------------------------------------------------------------------------------------------------------------------
# Captures that were never closed, since the collector was killed or the power went: their whole packets are kept. A
# capture in progress is ``NAME.pcap.tmp``, written whole packets at a time. ``kill -9`` leaves it whole; a power cut
# may leave any end: none, zeros, or what the disk held before. It is cut in place after the last packet that is
# whole, so that it takes no room.


log = logging.getLogger(__name__)

SUFFIX = ".pcap.tmp"
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Salvaged:
    """``file``: where the whole packets lie now, None when there were none (the file is gone then); ``lost_bytes``: cut off its end."""

    file: Path | None
    bytes: int
    packets: int
    sha256: str
    lost_bytes: int
    left: Path
    """What it was."""


def salvage_all(folder: Path) -> list[Salvaged]:
    """What captures left in ``folder``, nobody of which may be writing. One that cannot be read or cut stays, and is logged."""
    found: list[Salvaged] = []
    for left in sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []:
        try:
            found.append(salvage(left))
        except OSError as error:
            log.error("%s cannot be salvaged: %s; it stays as it is", left, error.strerror or error)
    return found


def salvage(left: Path) -> Salvaged:
    """One ``.pcap.tmp``: cut, synced, renamed. OSError when the disk does not let it."""
    whole, packets, digest = _walk(left)
    lost = left.stat().st_size - whole
    if not packets:
        left.unlink()
        return Salvaged(None, 0, 0, digest, lost + whole, left)
    file = _free(left.with_name(left.name.removesuffix(".tmp")))
    opened = os.open(left, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.ftruncate(opened, whole)
        os.fsync(opened)
    finally:
        os.close(opened)
    left.rename(file)
    folder = os.open(file.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return Salvaged(file, whole, packets, digest, lost, left)


def _walk(left: Path) -> tuple[int, int, str]:
    """Bytes and packets that are whole from the beginning on, and the sha256 of these."""
    walker, digest = Walker(torn=True), hashlib.sha256()
    with left.open("rb", buffering=0) as stream:
        while walker.damage is None and (piece := stream.read(_PIECE)):
            try:
                whole, _ = walker.feed(piece)
            except PcapError:
                break  # not even its beginning is a capture's
            digest.update(whole)
    return walker.whole_bytes, walker.packets, digest.hexdigest()


def _free(file: Path) -> Path:
    """A name that is free; a closed capture is never written over."""
    number, free = 1, file
    while free.exists():
        number += 1
        free = file.with_name(f"{file.stem}.{number}.pcap")
    return free
