"""Capture files as tcpdump writes them on ``-i any``: records parted, and those of given connections kept. Pure functions.

Formats: pcap (draft-ietf-opsawg-pcap), little-endian, µs or ns; link types LINUX_SLL (113) and LINUX_SLL2 (276).
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import IO

HEADER_BYTES = 24
RECORD_HEADER_BYTES = 16
_MAGIC = (0xA1B2C3D4, 0xA1B23C4D)
_LONGEST = 1 << 18
_LINK_HEADERS = {113: (16, 14), 276: (20, 0)}
"""Link type → length of its header, and where in it the protocol stands."""

End = tuple[str, int]
"""Address and port; IPv4 as IPv4."""


class PcapError(ValueError):
    """Not what tcpdump writes."""


@dataclass(frozen=True, slots=True)
class Header:
    """The file's header: as it is, and its link type."""

    raw: bytes
    link_type: int


def read_header(raw: bytes) -> Header:
    """The first HEADER_BYTES of a file; PcapError."""
    if len(raw) != HEADER_BYTES:
        raise PcapError(f"a header of {len(raw)} bytes")
    magic, _, _, _, _, _, link = struct.unpack("<IHHiIII", raw)
    if magic not in _MAGIC:
        raise PcapError(f"no capture file: it begins with {magic:#x}")
    if link & 0xFFFF not in _LINK_HEADERS:
        raise PcapError(f"link type {link & 0xFFFF} is not one of {', '.join(map(str, _LINK_HEADERS))}")
    return Header(raw, link & 0xFFFF)


def record_bytes(header: bytes) -> int:
    """How many bytes follow a record's header (RECORD_HEADER_BYTES); PcapError when that cannot be."""
    _, _, kept, _ = struct.unpack("<4I", header)
    if kept > _LONGEST:
        raise PcapError(f"a record of {kept} bytes")
    return int(kept)


def records(file: IO[bytes]) -> Iterator[bytes]:
    """The whole records, each with its header, of what follows a file's header; what is cut off at the end is left out."""
    while len(header := file.read(RECORD_HEADER_BYTES)) == RECORD_HEADER_BYTES:
        body = file.read(record_bytes(header))
        if len(body) < record_bytes(header):
            return
        yield header + body


def ends_of(record: bytes, link_type: int) -> tuple[End, End] | None:
    """Sender and receiver of a record's TCP segment; None when it is none, or cut off before its ports."""
    length, place = _LINK_HEADERS[link_type]
    frame = record[RECORD_HEADER_BYTES:]
    protocol = int.from_bytes(frame[place : place + 2], "big")
    packet = frame[length:]
    if protocol == 0x0800 and len(packet) >= 20 and packet[9] == 6:
        offset, source, target = (packet[0] & 15) * 4, packet[12:16], packet[16:20]
    elif protocol == 0x86DD and len(packet) >= 40 and packet[6] == 6:
        offset, source, target = 40, packet[8:24], packet[24:40]
    else:
        return None
    ports = packet[offset : offset + 4]
    if len(ports) < 4:
        return None
    return (
        (_host(source), int.from_bytes(ports[:2], "big")),
        (_host(target), int.from_bytes(ports[2:], "big")),
    )


def belongs(record: bytes, link_type: int, peers: Collection[End], port: int) -> bool:
    """Whether a record is of a connection between one of ``peers`` and our ``port``."""
    ends = ends_of(record, link_type)
    if ends is None:
        return False
    source, target = ends
    return (source in peers and target[1] == port) or (target in peers and source[1] == port)


def _host(raw: bytes) -> str:
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)
