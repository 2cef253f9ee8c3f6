"""Captures made packet by packet: segments, the frames around them, the files around those. Nothing here knows the reader."""

from __future__ import annotations

import hashlib
import ipaddress
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
MS, S = 1_000_000, 1_000_000_000
EPOCH = 1_767_225_600 * S
"""Time of the first packet: 2026-01-01, a whole multiple of every bin used here."""

CLIENT, CLIENT2, SERVER = "10.0.0.1", "10.0.1.1", "192.0.2.9"


def option(kind: int, body: bytes) -> bytes:
    return bytes([kind, len(body) + 2]) + body


def padded(options: bytes) -> bytes:
    return options + b"\x01" * (-len(options) % 4)


def timestamps(value: int, echo: int) -> bytes:
    return b"\x01\x01" + option(8, struct.pack(">II", value, echo))


def mss(value: int) -> bytes:
    return option(2, struct.pack(">H", value))


def scale(shift: int) -> bytes:
    return option(3, bytes([shift]))


def multipath(subtype: int, low: int, rest: bytes = b"") -> bytes:
    return option(30, bytes([subtype << 4 | low]) + rest)


def capable(version: int, *keys: int, data_length: int | None = None) -> bytes:
    rest = b"\x81" if version == 0 else b"\x01"
    rest += b"".join(struct.pack(">Q", key) for key in keys)
    if data_length is not None:
        rest += struct.pack(">H", data_length)
    return multipath(0, version, rest)


def dss(
    *,
    ack: int | None = None,
    dsn: int | None = None,
    ssn: int = 0,
    length: int = 0,
    wide: bool = True,
    fin: bool = False,
) -> bytes:
    flags, rest = 0, b""
    if ack is not None:
        flags |= 1 | (2 if wide else 0)
        rest += struct.pack(">Q" if wide else ">I", ack % (1 << (64 if wide else 32)))
    if dsn is not None:
        flags |= 4 | (8 if wide else 0) | (16 if fin else 0)
        rest += struct.pack(">Q" if wide else ">I", dsn % (1 << (64 if wide else 32)))
        rest += struct.pack(">IH", ssn, length)
    return multipath(2, 0, bytes([flags]) + rest)


def token(key: int, version: int) -> int:
    raw = struct.pack(">Q", key)
    hashed = hashlib.sha256(raw).digest() if version else hashlib.sha1(raw).digest()  # noqa: S324  RFC 6824's
    return int(struct.unpack(">I", hashed[:4])[0])


def first_dsn(key: int, version: int) -> int:
    """Of the first byte: the initial data sequence number + 1."""
    raw = struct.pack(">Q", key)
    hashed = hashlib.sha256(raw).digest() if version else hashlib.sha1(raw).digest()  # noqa: S324  RFC 6824's
    return (int(struct.unpack(">Q", hashed[-8:])[0]) + 1) % (1 << 64)


def tcp(
    source_port: int,
    port: int,
    sequence: int,
    acknowledgement: int,
    flags: int,
    payload: bytes,
    options: bytes,
    window: int,
) -> bytes:
    options = padded(options)
    head = struct.pack(">HHII", source_port, port, sequence % (1 << 32), acknowledgement % (1 << 32))
    head += struct.pack(">BBHHH", (5 + len(options) // 4) << 4, flags, window, 0, 0)
    return head + options + payload


def ipv4(
    source: str, to: str, inner: bytes, *, protocol: int = 6, fragment: int = 0, total: int | None = None
) -> bytes:
    total = 20 + len(inner) if total is None else total
    head = struct.pack(">BBHHHBBH", 0x45, 0, total, 1, fragment, 64, protocol, 0)
    return head + ipaddress.IPv4Address(source).packed + ipaddress.IPv4Address(to).packed + inner


def ipv6(source: str, to: str, inner: bytes, *, protocol: int = 6) -> bytes:
    head = struct.pack(">IHBB", 6 << 28, len(inner), protocol, 64)
    return head + ipaddress.IPv6Address(source).packed + ipaddress.IPv6Address(to).packed + inner


def sum16(content: bytes) -> int:
    """RFC 1071's, of whole words."""
    total = sum(struct.unpack(f">{(len(content) + 1) // 2}H", content + bytes(len(content) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def summed(packet: bytes, *, begun: bool = False) -> bytes:
    """IPv4 without options, its TCP checksum filled in; ``begun``: as the kernel leaves it to the network card."""
    pseudo = packet[12:20] + struct.pack(">HH", 6, len(packet) - 20)
    said = sum16(pseudo) if begun else 0xFFFF ^ sum16(pseudo + packet[20:36] + bytes(2) + packet[38:])
    return packet[:36] + struct.pack(">H", said) + packet[38:]


def udp(port: int, inner: bytes) -> bytes:
    return struct.pack(">HHHH", 40_000, port, 8 + len(inner), 0) + inner


@dataclass(frozen=True)
class Packet:
    """One captured packet: ``bytes`` may be fewer than ``original``."""

    time_ns: int
    content: bytes
    original: int

    def put(self, at: int, *values: int) -> Packet:
        """With other octets from there on."""
        return Packet(self.time_ns, self.content[:at] + bytes(values) + self.content[at + len(values) :], self.original)

    def cut(self, snaplen: int) -> Packet:
        return Packet(self.time_ns, self.content[:snaplen], self.original)


class Wire:
    """Packets in order of time, as raw IP."""

    def __init__(self) -> None:
        self.packets: list[Packet] = []

    def add(self, at_ns: int, content: bytes) -> None:
        self.packets.append(Packet(EPOCH + at_ns, content, len(content)))

    def end(self, address: str, port: int, to: str, to_port: int) -> End:
        return End(self, address, port, to, to_port)


@dataclass(frozen=True)
class End:
    """One end of a subflow, which sends."""

    wire: Wire
    address: str
    port: int
    to: str
    to_port: int

    def __call__(
        self,
        at_ns: int,
        sequence: int,
        acknowledgement: int = 0,
        flags: int = ACK,
        length: int = 0,
        options: bytes = b"",
        window: int = 65535,
    ) -> None:
        inner = tcp(self.port, self.to_port, sequence, acknowledgement, flags, bytes(length), options, window)
        around = ipv6 if ":" in self.address else ipv4
        self.wire.add(at_ns, around(self.address, self.to, inner))

    def other(self) -> End:
        return End(self.wire, self.to, self.to_port, self.address, self.port)


# --- frames ----------------------------------------------------------------------------------------------------------


def _ethertype(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[:1] and packet[0] >> 4 == 4 else b"\x86\xdd"


def _ppp(packet: bytes) -> bytes:
    return b"\x00\x21" if packet[0] >> 4 == 4 else b"\x00\x57"


LINKS = {
    "ethernet": (1, lambda p: bytes(12) + _ethertype(p) + p),
    "vlan": (1, lambda p: bytes(12) + b"\x81\x00\x00\x07" + _ethertype(p) + p),
    "two vlans": (1, lambda p: bytes(12) + b"\x88\xa8\x00\x07\x81\x00\x00\x08" + _ethertype(p) + p),
    "cooked": (113, lambda p: bytes(14) + _ethertype(p) + p),
    "cooked 2": (276, lambda p: _ethertype(p) + bytes(18) + p),
    "ppp": (9, lambda p: b"\xff\x03" + _ppp(p) + p),
    "ppp, bare": (9, lambda p: _ppp(p) + p),
    "ppp, shortest": (9, lambda p: _ppp(p)[1:] + p),
    "raw": (101, lambda p: p),
    "mpls": (1, lambda p: bytes(12) + b"\x88\x47\x00\x06\x40\x40\x00\x07\x81\x40" + p),
    "snap": (1, lambda p: bytes(12) + struct.pack(">H", len(p) + 8) + b"\xaa\xaa\x03\x00\x00\x00" + _ethertype(p) + p),
    "ip in ip": (101, lambda p: ipv4("198.51.100.1", "198.51.100.2", p, protocol=4 if p[0] >> 4 == 4 else 41)),
    "ip in ipv6": (101, lambda p: ipv6("2001:db8:9::1", "2001:db8:9::2", p, protocol=4 if p[0] >> 4 == 4 else 41)),
    "gtp-u": (101, lambda p: _gtp_u(b"\x30", b"", p)),
    "gtp-u, extended": (101, lambda p: _gtp_u(b"\x34", b"\x00\x00\x00\x85\x01\x10\x01\x00", p)),
    "pktap": (258, lambda p: struct.pack("<III", 108, 1, 12) + bytes(96) + p),
    "radiotap": (127, lambda p: b"\x00\x00\x08\x00" + bytes(4) + b"\x88\x01" + bytes(24) + _SNAP + _ethertype(p) + p),
}
_SNAP = b"\xaa\xaa\x03\x00\x00\x00"


def _gtp_u(flags: bytes, rest: bytes, packet: bytes) -> bytes:
    around = flags + struct.pack(">BHI", 255, len(rest) + len(packet), 7) + rest + packet
    return ipv4("198.51.100.1", "198.51.100.2", udp(2152, around), protocol=17)


def framed(packets: Iterable[Packet], link: str) -> list[Packet]:
    _, around = LINKS[link]
    made = []
    for packet in packets:
        content = around(packet.content)
        made.append(Packet(packet.time_ns, content, packet.original + len(content) - len(packet.content)))
    return made


# --- files -----------------------------------------------------------------------------------------------------------


def pcap(packets: Sequence[Packet], link_type: int = 101, *, order: str = "<", nanoseconds: bool = True) -> bytes:
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link_type)]
    for packet in packets:
        seconds, rest = divmod(packet.time_ns, S)
        fraction = rest if nanoseconds else rest // 1000
        parts.append(struct.pack(order + "IIII", seconds, fraction, len(packet.content), packet.original))
        parts.append(packet.content)
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(link_type: int = 101, order: str = "<", resolution: int | None = 9, offset_s: int | None = None) -> bytes:
    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_s is not None:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    return block(order, 1, struct.pack(order + "HHI", link_type, 0, 0) + options + struct.pack(order + "HH", 0, 0))


def enhanced(packet: Packet, order: str = "<", number: int = 0, per_second: int = S, offset_s: int = 0) -> bytes:
    ticks = (packet.time_ns - offset_s * S) * per_second // S
    head = struct.pack(order + "IIIII", number, ticks >> 32, ticks % (1 << 32), len(packet.content), packet.original)
    return block(order, 6, head + packet.content)


def pcapng(packets: Sequence[Packet], link_type: int = 101, *, order: str = "<") -> bytes:
    return section(order) + interface(link_type, order) + b"".join(enhanced(packet, order) for packet in packets)
