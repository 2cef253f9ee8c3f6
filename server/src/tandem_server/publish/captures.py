"""Captures without payload, without Ethernet's addresses, with other addresses in the place of public ones. A packet at a time.

Only TCP over IPv4 and IPv6 is kept, to the end of its header, at link type RAW; ADD_ADDR of Multipath TCP (RFC 8684 3.4.1) carries
addresses too. Checksums follow what was changed (RFC 1624), so that a packet damaged on its way still shows it.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from tandem_server.publish.identities import Address, telling

_MAGICS = {0xA1B2C3D4: 10**6, 0xA1B23C4D: 10**9}
_RAW = 101
_LINKS = {_RAW: 0, 12: 0, 1: 14, 113: 16, 276: 20}
"""Octets before the IP header, by link type: RAW (two numbers), Ethernet, Linux cooked 1 and 2."""
_MOST = 262_144
_TCP = 6
_MPTCP, _ADD_ADDR = 30, 3

Rewrite = Callable[[Address], Address]


class CaptureError(ValueError):
    """Not a capture as the collector writes it; one line with its hint."""


@dataclass(frozen=True, slots=True)
class Packet:
    """``head``: seconds and their part, as they stand in the file; ``length``: on the wire, from the IP header on."""

    number: int
    head: bytes
    length: int
    content: bytes


class Reader:
    """The packets of a pcap; ``cut``: it ends within one."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.cut = file, False
        self.header = file.read(24)
        for order in "<>":
            if len(self.header) == 24 and struct.unpack(f"{order}I", self.header[:4])[0] in _MAGICS:
                self.order = order
                break
        else:
            raise CaptureError("no pcap; hint: publish captures as the collector or an export wrote them")
        self.link = struct.unpack(f"{self.order}I", self.header[20:])[0] & 0xFFFF
        if self.link not in _LINKS:
            raise CaptureError(f"link type {self.link} is not known here; hint: --without-captures")

    def __iter__(self) -> Iterator[Packet]:
        skip, number = _LINKS[self.link], 0
        lengths = struct.Struct(f"{self.order}II")
        while head := self._file.read(16):
            number += 1
            captured, length = lengths.unpack(head[8:]) if len(head) == 16 else (0, 0)
            content = self._file.read(captured) if captured <= _MOST else b""
            if len(head) < 16 or len(content) < captured:
                self.cut = True
                return
            yield Packet(number, head[:8], max(0, length - skip), content[skip:])


def rewrite(source: BinaryIO, to: BinaryIO, address: Rewrite) -> int:
    """How many packets were written; CaptureError, OSError."""
    reader, written = Reader(source), 0
    to.write(reader.header[:20] + struct.pack(f"{reader.order}I", _RAW))
    lengths = struct.Struct(f"{reader.order}II")
    known: dict[bytes, bytes] = {}

    def other(packed: bytes) -> bytes:
        if packed not in known:
            known[packed] = address(ipaddress.ip_address(packed)).packed
        return known[packed]

    for packet in reader:
        made = _headers(packet.content)
        if made is None:
            continue
        content = _rewritten(made, other)
        to.write(packet.head + lengths.pack(len(content), max(packet.length, len(content))) + content)
        written += 1
    return written


def faults(file: BinaryIO) -> Iterator[tuple[int, str]]:
    """What a published capture may not have, with the number of its first packet; CaptureError."""
    reader = Reader(file)
    told: set[str] = set()
    if reader.link != _RAW:
        yield 0, "MAC address"
    for packet in reader:
        kept = _headers(packet.content)
        kinds = {"payload or no TCP"} if kept != packet.content else set()
        if kept is not None and any(telling(ipaddress.ip_address(kept[a:b])) for a, b in _places(kept)):
            kinds.add("public address")
        for kind in kinds - told:
            yield packet.number, kind
        told |= kinds


def _headers(content: bytes) -> bytes | None:
    """From the IP header to the end of TCP's; None where it is no TCP, or not all of its header is there."""
    ip = _ip_header(content)
    if ip is None or len(content) < ip + 20:
        return None
    end = ip + (content[ip + 12] >> 4) * 4
    return content[:end] if ip + 20 <= end <= len(content) else None


def _ip_header(content: bytes) -> int | None:
    """Its octets; None: options, extensions, later fragments, or no TCP."""
    if content[:1] == b"\x45" and len(content) >= 20:
        fragment = int.from_bytes(content[6:8], "big") & 0x1FFF
        return 20 if content[9] == _TCP and not fragment else None
    if content[:1] and content[0] >> 4 == 6 and len(content) >= 40:
        return 40 if content[6] == _TCP else None
    return None


def _places(content: bytes) -> list[tuple[int, int]]:
    """Where addresses are, of headers: source, destination, and those in ADD_ADDR."""
    four = content[0] >> 4 == 4
    ip, size = (20, 4) if four else (40, 16)
    found = [(ip - 2 * size, ip - size), (ip - size, ip)]
    at = ip + 20
    while at + 1 < len(content):
        kind = content[at]
        if kind < 2:
            at += 1
            continue
        length = content[at + 1]
        if length < 2:
            break
        if kind == _MPTCP and length >= 8 and at + length <= len(content) and content[at + 2] >> 4 == _ADD_ADDR:
            # With an IPv6 address it is 20 octets or more, with an IPv4 address 18 at most (port and code included).
            found.append((at + 4, at + 4 + (16 if length >= 20 else 4)))
        at += length
    return found


def _rewritten(content: bytes, other: Callable[[bytes], bytes]) -> bytes:
    changed = [(a, b, new) for a, b in _places(content) if (new := other(content[a:b])) != content[a:b]]
    if not changed:
        return content
    made = bytearray(content)
    for a, b, new in changed:
        made[a:b] = new
    ip = 20 if content[0] >> 4 == 4 else 40
    if ip == 20:
        _mend(made, 10, content[12:20], bytes(made[12:20]))
    # TCP's covers the addresses and its own header.
    own = slice(12 if ip == 20 else 8, None)
    _mend(made, ip + 16, content[own], bytes(made[own]), skip=ip + 16 - own.start)
    return bytes(made)


def _mend(made: bytearray, at: int, old: bytes, new: bytes, skip: int | None = None) -> None:
    """The checksum at ``at`` by RFC 1624 equation 3; ``skip``: where the checksum itself is within old and new."""
    total = ~int.from_bytes(made[at : at + 2], "big") & 0xFFFF
    for n in range(0, len(old), 2):
        if n != skip and old[n : n + 2] != new[n : n + 2]:
            total += (~int.from_bytes(old[n : n + 2], "big") & 0xFFFF) + int.from_bytes(new[n : n + 2], "big")
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    made[at : at + 2] = (~total & 0xFFFF).to_bytes(2, "big")
