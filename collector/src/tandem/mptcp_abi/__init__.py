"""What the kernel says about a Multipath TCP connection: socket options, layouts, and pure decoders. Standard library only.

Numbers and layouts are those of the Linux user-space interface (``mptcp.h``, ``tcp.h``; little-endian machines), from 6.1,
which has no ``MPTCP_FULL_INFO``, to 6.18. The kernel appends fields and never moves them, so a decoder reads as many fields as
the bytes it was given hold; those of a later kernel are None. Strides are the sizes that the kernel returned, never our own.

Decoders take bytes and raise ``AbiError`` only. ``reader`` calls the kernel.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import struct
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, overload

IPPROTO_MPTCP = 262
SOL_MPTCP = 284
MPTCP_INFO = 1
MPTCP_TCPINFO = 2
MPTCP_SUBFLOW_ADDRS = 3
MPTCP_FULL_INFO = 4
TCP_INFO = 11

FULL_INFO_BYTES = 136
TCP_INFO_BYTES = 280
MPTCP_INFO_BYTES = 96
SUBFLOW_INFO_BYTES = 264
ADDRESSES_BYTES = 256
ARRAY_HEADER_BYTES = 16

ESTABLISHED, SYN_SENT, SYN_RECV, CLOSE, CLOSE_WAIT = 1, 2, 3, 7, 8
"""TCP states as TCP_INFO numbers them."""

FLAG_FALLBACK = 1
"""Bit of ``MptcpInfo.flags``: the connection fell back to TCP."""

Buffer = bytes | bytearray | memoryview


class AbiError(ValueError):
    """The bytes are not what the kernel writes: too short, or sizes that contradict each other."""


class Address(NamedTuple):
    """An end of a subflow. IPv4 addresses mapped into IPv6 are given as IPv4."""

    host: str
    port: int


class TcpInfo(NamedTuple):
    """What is of use of ``struct tcp_info``. Times in µs, rates in B/s. None: not measured yet, or unknown to this kernel."""

    state: int
    retransmits: int
    rtt_us: int | None
    snd_cwnd_segments: int
    rcv_rtt_us: int | None
    total_retrans_segments: int
    bytes_acked: int | None
    bytes_received: int | None
    notsent_bytes: int | None
    min_rtt_us: int | None
    delivery_rate: int | None
    bytes_sent: int | None
    bytes_retrans: int | None
    rcv_ooo_packets: int | None


class MptcpInfo(NamedTuple):
    """What is of use of ``struct mptcp_info``: counters of the connection. None: unknown to this kernel."""

    flags: int
    token: int | None
    bytes_received: int | None
    bytes_acked: int | None
    last_data_recv_ms: int | None

    @property
    def fallback(self) -> bool:
        """The connection fell back to TCP (a kernel may also refuse MPTCP_INFO then, with EOPNOTSUPP)."""
        return bool(self.flags & FLAG_FALLBACK)


@dataclass(frozen=True, slots=True)
class SubflowSample:
    """One subflow. ``id`` counts the connection's subflows from 1 and is never used twice; "0" for a connection that is plain TCP."""

    id: str
    local: Address | None
    remote: Address | None
    tcp: TcpInfo

    @property
    def established(self) -> bool:
        """The subflow's handshake is done and it is not closed, though it may be closing."""
        return self.tcp.state not in (SYN_SENT, SYN_RECV, CLOSE)

    @property
    def alive(self) -> bool:
        """It can still carry data to us."""
        return self.tcp.state in (ESTABLISHED, CLOSE_WAIT)


def unused(tcp: TcpInfo, remote: Address | None) -> bool:
    """A socket without a peer: the kernel keeps a connection's first socket after a reset of it took the subflow away. It then has
    the id 0, closed, with all its counters gone; it is no subflow. (While one is alive, ids count from 1.)"""
    return tcp.state == CLOSE and (remote is None or remote.port == 0)


@dataclass(frozen=True, slots=True)
class FullInfo:
    """What MPTCP_FULL_INFO says. ``total`` subflows exist; ``subflows`` holds those for which the buffers had room."""

    mptcp: MptcpInfo
    subflows: tuple[SubflowSample, ...]
    total: int


# Name and format of each field, in the kernel's order; what is of no use here is in capitals.
_TCP_FIELDS = (
    "state:B CA:B retransmits:B PROBES:B BACKOFF:B OPTIONS:B WSCALE:B LIMITED:B RTO:I ATO:I SNDMSS:I RCVMSS:I UNACKED:I SACKED:I LOST:I "
    "RETRANS:I FACKETS:I LASTSENT:I LASTACKSENT:I LASTRECV:I LASTACK:I PMTU:I RCVSSTHRESH:I rtt_us:I RTTVAR:I SNDSSTHRESH:I "
    "snd_cwnd_segments:I ADVMSS:I REORDERING:I rcv_rtt_us:I RCVSPACE:I total_retrans_segments:I PACING:Q MAXPACING:Q bytes_acked:Q "
    "bytes_received:Q SEGSOUT:I SEGSIN:I notsent_bytes:I min_rtt_us:I DATAIN:I DATAOUT:I delivery_rate:Q BUSY:Q RWNDLIMITED:Q "
    "SNDBUFLIMITED:Q DELIVERED:I DELIVEREDCE:I bytes_sent:Q bytes_retrans:Q DSACK:I REORDSEEN:I rcv_ooo_packets:I"
)
_MPTCP_FIELDS = (
    "SUBFLOWS:B SIGNAL:B ACCEPTED:B SFMAX:B SIGMAX:B ACCMAX:B PAD1:B PAD2:B flags:I token:I WRITESEQ:Q SNDUNA:Q RCVNXT:Q LOCALUSED:B "
    "LOCALMAX:B CHECKSUM:B PAD3:B RETRANSMITS:I RETRANSBYTES:Q SENTBYTES:Q bytes_received:Q bytes_acked:Q TOTAL:B LAMINAR:B PAD4:B "
    "PAD5:B LASTSENT:I last_data_recv_ms:I"
)
_TCP_SHORTEST = 104  # up to tcpi_total_retrans: every kernel since 2.6.37
_MPTCP_SHORTEST = 40  # up to mptcpi_rcv_nxt: every kernel that has MPTCP_INFO

# Values that the kernel writes for "none yet".
_UNSET = {"rtt_us": 0, "rcv_rtt_us": 0, "delivery_rate": 0, "min_rtt_us": 0xFFFFFFFF}

_FULL = struct.Struct("<6I2Q")
_ARRAY = struct.Struct("<4I")


@lru_cache(maxsize=32)
def _layout(fields: str, size: int) -> tuple[struct.Struct, tuple[tuple[str, int, int | None], ...], dict[str, None]]:
    """The longest prefix of the fields that fits into ``size`` bytes: as a Struct; name, place in it and unset value of each of
    use; and the names beyond it."""
    layout, found, absent = "<", list[tuple[str, int, int | None]](), dict[str, None]()
    for place, (name, code) in enumerate(item.split(":") for item in fields.split()):
        if absent or struct.calcsize(layout + code) > size:
            absent[name] = None
            continue
        layout += code
        if name.islower():
            found.append((name, place, _UNSET.get(name)))
    return struct.Struct(layout), tuple(found), {name: None for name in absent if name.islower()}


def _read(fields: str, shortest: int, what: str, buffer: Buffer) -> dict[str, Any]:
    """All fields by name: None for those beyond the end of ``buffer`` and those not measured yet."""
    if len(buffer) < shortest:
        raise AbiError(f"{what}: {len(buffer)} bytes, at least {shortest} expected")
    layout, found, absent = _layout(fields, min(len(buffer), TCP_INFO_BYTES))
    values = layout.unpack_from(buffer)
    return {**{name: None if values[at] == unset else values[at] for name, at, unset in found}, **absent}


def decode_tcp_info(buffer: Buffer) -> TcpInfo:
    """Decode what TCP_INFO returned (its length is the kernel's); AbiError when shorter than 104 bytes."""
    return TcpInfo(**_read(_TCP_FIELDS, _TCP_SHORTEST, "tcp_info", buffer))


def decode_mptcp_info(buffer: Buffer) -> MptcpInfo:
    """Decode what MPTCP_INFO returned; AbiError when shorter than 40 bytes."""
    return MptcpInfo(**_read(_MPTCP_FIELDS, _MPTCP_SHORTEST, "mptcp_info", buffer))


def decode_address(buffer: Buffer) -> Address | None:
    """A ``sockaddr`` of IPv4 or IPv6; None for any other family, or when too short for its own."""
    if len(buffer) < 8:
        return None
    family = int.from_bytes(buffer[0:2], "little")
    port = int.from_bytes(buffer[2:4], "big")
    if family == socket.AF_INET:
        return Address(socket.inet_ntop(socket.AF_INET, bytes(buffer[4:8])), port)
    if family == socket.AF_INET6 and len(buffer) >= 24:
        raw = bytes(buffer[8:24])
        if raw[:12] == b"\0" * 10 + b"\xff\xff":
            return Address(socket.inet_ntop(socket.AF_INET, raw[12:]), port)
        return Address(socket.inet_ntop(socket.AF_INET6, raw), port)
    return None


def full_info_request(header: bytearray, subflows_at: int, tcp_at: int, room: int) -> None:
    """Fill ``header`` (FULL_INFO_BYTES) for a call: memory addresses of two arrays with ``room`` elements of
    SUBFLOW_INFO_BYTES and TCP_INFO_BYTES. To be done before every call: the kernel wants its own fields zero."""
    _FULL.pack_into(header, 0, 0, TCP_INFO_BYTES, 0, SUBFLOW_INFO_BYTES, 0, room, subflows_at, tcp_at)


def decode_full_info(header: Buffer, subflows: Buffer, tcp: Buffer) -> FullInfo:
    """Decode header and both arrays after a call of MPTCP_FULL_INFO; AbiError when sizes and buffers disagree."""
    if len(header) < _FULL.size:
        raise AbiError(f"mptcp_full_info: {len(header)} bytes, at least {_FULL.size} expected")
    _, tcp_stride, _, subflow_stride, total, room, _, _ = _FULL.unpack_from(header)
    count = min(total, room)
    rows = _elements(subflows, subflow_stride, count, 4, "subflow_info")
    infos = _elements(tcp, tcp_stride, count, _TCP_SHORTEST, "tcp_info")
    decoded = []
    for row, info in zip(rows, infos, strict=True):
        number = str(int.from_bytes(row[0:4], "little"))
        ends = decode_address(row[8:136]), decode_address(row[136:264])
        decoded.append(SubflowSample(number, *ends, decode_tcp_info(info)))
    return FullInfo(decode_mptcp_info(header[_FULL.size :]), tuple(decoded), total)


def array_request(buffer: bytearray, element_bytes: int) -> None:
    """Write the header of MPTCP_TCPINFO (elements of TCP_INFO_BYTES) or MPTCP_SUBFLOW_ADDRS (ADDRESSES_BYTES) into
    ``buffer``, whose rest is room for elements. To be done before every call."""
    _ARRAY.pack_into(buffer, 0, ARRAY_HEADER_BYTES, 0, 0, element_bytes)


def decode_tcp_array(buffer: Buffer) -> tuple[TcpInfo, ...]:
    """What MPTCP_TCPINFO returned, one a subflow, as many as had room."""
    return tuple(decode_tcp_info(row) for row in _array(buffer, _TCP_SHORTEST, "MPTCP_TCPINFO"))


def decode_address_array(buffer: Buffer) -> tuple[tuple[Address | None, Address | None], ...]:
    """What MPTCP_SUBFLOW_ADDRS returned: local and remote end, one pair a subflow, in MPTCP_TCPINFO's order."""
    rows = _array(buffer, ADDRESSES_BYTES, "MPTCP_SUBFLOW_ADDRS")
    return tuple((decode_address(row[:128]), decode_address(row[128:256])) for row in rows)


def _array(buffer: Buffer, shortest: int, what: str) -> list[memoryview]:
    if len(buffer) < ARRAY_HEADER_BYTES:
        raise AbiError(f"{what}: {len(buffer)} bytes, at least {ARRAY_HEADER_BYTES} expected")
    header, total, _, stride = _ARRAY.unpack_from(buffer)
    if header != ARRAY_HEADER_BYTES:
        raise AbiError(f"{what}: a header of {header} bytes")
    body = memoryview(buffer)[header:]
    return _elements(body, stride, min(total, len(body) // stride if stride else 0), shortest, what)


def _elements(buffer: Buffer, stride: int, count: int, shortest: int, what: str) -> list[memoryview]:
    if count and stride < shortest:
        raise AbiError(f"{what}: elements of {stride} bytes, at least {shortest} expected")
    if count * stride > len(buffer):
        raise AbiError(f"{what}: {count} elements of {stride} bytes in {len(buffer)} bytes")
    view = memoryview(buffer)
    return [view[i * stride : (i + 1) * stride] for i in range(count)]


_LIBC = ctypes.CDLL(None, use_errno=True)


class Connection(Protocol):
    """A socket, or what carries one (TLS)."""

    def fileno(self) -> int: ...

    def getsockname(self) -> Any: ...  # noqa: ANN401 - as socket.socket

    def getpeername(self) -> Any: ...  # noqa: ANN401 - as socket.socket

    @overload
    def getsockopt(self, level: int, option: int, /) -> int: ...

    @overload
    def getsockopt(self, level: int, option: int, size: int, /) -> bytes: ...


class Memory:
    """A buffer that Python sees as a bytearray and the kernel by its address."""

    def __init__(self, size: int) -> None:
        self.bytes = bytearray(size)
        self.pointer = (ctypes.c_char * size).from_buffer(self.bytes)
        self.address = ctypes.addressof(self.pointer)


def getsockopt(connection: Connection, level: int, option: int, memory: Memory, size: int) -> int:
    """getsockopt(2) with a buffer that the kernel also reads (Python's own gives it an empty one): have it write an option into
    ``memory``, whose first ``size`` bytes it may read and write; how many it wrote. OSError."""
    length = ctypes.c_uint32(size)
    if _LIBC.getsockopt(connection.fileno(), level, option, memory.pointer, ctypes.byref(length)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return length.value


# ---------------------------------------------------------------------------------------------------------------------
# What a congestion controller is: the kernel's own, or the BPF object that ``tandem-server congestion load`` notes
# here.
#
# The kernel tells neither to a program without privileges, and the measurement endpoint has none.


COUPLED = ("lia", "olia", "balia")
"""Those of the object (``server/congestion``), as the kernel lists them and TCP_CONGESTION takes them."""
LOADED = Path("/run/tandem-congestion/loaded.json")
"""``{"controllers": [NAME, ...], "object_sha256": HEX}`` while the object is loaded; in /run, so that no boot inherits it."""


def described(name: str | None, loaded: Path = LOADED) -> dict[str, str | None] | None:
    """``name``; ``kind``: ``bpf`` or ``kernel`` (built in, or a module of it); ``object_sha256`` of the BPF object, else None. None
    without a name."""
    if name is None:
        return None
    note = read_note(loaded)
    if note is None or name not in note["controllers"]:
        return {"name": name, "kind": "kernel", "object_sha256": None}
    return {"name": name, "kind": "bpf", "object_sha256": note["object_sha256"]}


def read_note(loaded: Path = LOADED) -> dict[str, Any] | None:
    """The note; None where there is none, or it is not as above."""
    try:
        note = json.loads(loaded.read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(note, dict) or not isinstance(note.get("object_sha256"), str):
        return None
    return note if isinstance(note.get("controllers"), list) else None
