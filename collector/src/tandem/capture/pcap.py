"""Walk the records of a pcap stream as it comes in pieces, to count packets and to know where one ends. Pure.

Format: the IETF draft draft-ietf-opsawg-pcap: a file header of 24 bytes, then per packet a header of 16 bytes (seconds, fraction,
captured length, original length) and the captured bytes, in the byte order that the magic number shows.
"""

from __future__ import annotations

import struct

HEADER_BYTES = 24
RECORD_BYTES = 16
LONGEST_PACKET = 262_144
"""MAXIMUM_SNAPLEN of libpcap: a longer record is damage, not a packet."""

_MAGICS = {
    b"\xd4\xc3\xb2\xa1": "<I",
    b"\x4d\x3c\xb2\xa1": "<I",
    b"\xa1\xb2\xc3\xd4": ">I",
    b"\xa1\xb2\x3c\x4d": ">I",
}


class PcapError(ValueError):
    """The bytes are no pcap stream, or it is damaged; the message says at which byte."""


class Walker:
    """Takes the stream piece by piece. ``packets``: whole packets so far; ``linktype``: None before the header is whole."""

    def __init__(self) -> None:
        self.packets = 0
        self.linktype: int | None = None
        self._rest = b""
        self._at = 0
        self._length = struct.Struct("<I")

    def feed(self, piece: bytes) -> tuple[bytes, list[int]]:
        """The bytes that became whole with ``piece`` (file header and whole packets, in order), and the sizes of those units.

        What is incomplete is kept for the next piece. PcapError at damage; what was whole before it is lost with the call, so
        the caller has at most one piece less than it could have.
        """
        buffer = self._rest + piece if self._rest else piece
        end, at = len(buffer), 0
        sizes: list[int] = []
        if self.linktype is None:
            if end < HEADER_BYTES:
                if not any(magic.startswith(buffer[:4]) for magic in _MAGICS):
                    raise PcapError(f"no pcap file: it begins with {buffer[:4]!r}")
                self._rest = buffer
                return b"", []
            layout = _MAGICS.get(buffer[:4])
            if layout is None:
                raise PcapError(f"no pcap file: it begins with {buffer[:4]!r}")
            self._length = struct.Struct(layout)
            self.linktype = self._length.unpack_from(buffer, 20)[0] & 0xFFFF
            sizes.append(HEADER_BYTES)
            at = HEADER_BYTES
        unpack = self._length.unpack_from
        while at + RECORD_BYTES <= end:
            size = RECORD_BYTES + unpack(buffer, at + 8)[0]
            if size > RECORD_BYTES + LONGEST_PACKET:
                raise PcapError(f"a packet of {size - RECORD_BYTES} bytes at byte {self._at + at}")
            if at + size > end:
                break
            sizes.append(size)
            at += size
        self.packets += len(sizes) - (HEADER_BYTES in sizes[:1] and self._at == 0)
        self._at += at
        self._rest = buffer[at:]
        return (buffer[:at] if at < end else buffer), sizes

    @property
    def pending_bytes(self) -> int:
        """Bytes of a packet that is not whole yet."""
        return len(self._rest)
