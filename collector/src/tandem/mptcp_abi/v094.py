"""What the out-of-tree Multipath TCP kernel says (multipath-tcp.org, v0.9x; protocol version 0): options, layouts, files under /proc; its
sockets, for both ends: made, and read.

Sources, public: ``include/uapi/linux/tcp.h``, ``net/ipv4/tcp.c`` (do_tcp_getsockopt, do_tcp_setsockopt) and ``net/mptcp/mptcp_ctrl.c``
(mptcp_get_info, mptcp_pm_seq_show, mptcp_snmp_seq_show) of v0.94.1, which is Linux 4.14, and the page "Configure MPTCP" of
multipath-tcp.org; and what such a kernel was seen to do (v0.94.1, Linux 4.14.67, in QEMU).

The options' numbers mean other things on the stock kernel (42 is TCP_AO_REPAIR there): use none of them unless ``present``.
Decoders are pure, take bytes or text and raise ``AbiError`` only. Little-endian machines, of 32 or 64 bits.
"""

from __future__ import annotations

import contextlib
import ipaddress
import re
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tandem.mptcp_abi import (
    AbiError,
    Address,
    Buffer,
    Connection,
    Memory,
    MptcpInfo,
    TcpInfo,
    decode_address,
    decode_tcp_info,
    getsockopt,
)

MPTCP_ENABLED, MPTCP_SCHEDULER, MPTCP_PATH_MANAGER, MPTCP_INFO = 42, 43, 44, 45
"""Socket options of level IPPROTO_TCP. MPTCP_ENABLED may be set before connect or listen only; read after the handshake it is 1 where
the connection is one of Multipath TCP. MPTCP_INFO is refused with EINVAL where it is none."""
NAME_BYTES = 16
"""MPTCP_SCHED_NAME_MAX and MPTCP_PM_NAME_MAX."""
IFF_NOMULTIPATH = 0x80000
"""A flag of an interface: ``ip link set dev X multipath off`` of that project's iproute2."""

ENABLED = Path("proc/sys/net/mptcp/mptcp_enabled")
"""0: none. 1: every TCP socket is one of Multipath TCP. 2: those that set MPTCP_ENABLED. In the first network namespace only."""
FOLDER = Path("proc/thread-self/net/mptcp_net")
"""In every network namespace: ``mptcp``, the connections, and ``snmp``, the counters. ``proc/net`` is the process's, whose thread may be
in another namespace."""
FULLMESH = Path("proc/thread-self/net/mptcp_fullmesh")
"""In every network namespace, where there is that path manager: the addresses that it uses."""

META_BYTES = 48
ENDS_BYTES = 56
TCP_INFO_BYTES = 192
"""Of Linux 4.14; the kernel writes as much of it as it has."""

_INFO = struct.Struct("@5I4P")  # natively: the pointers are as long, and aligned, as this machine's
INFO_BYTES = _INFO.size
_META = struct.Struct("<4B6I4x2Q")  # 4 bytes of padding before the 64-bit counters, on ARM and on 64-bit machines
_SOCKADDR_BYTES = 28  # sockaddr_in6, the longest of the union


def present(root: Path = Path("/")) -> bool:
    """Whether this machine runs such a kernel. Looks for two files, by which it also tells itself from the stock kernel."""
    return (root / ENABLED).exists() or (root / FOLDER).exists()


class SubflowInfo(NamedTuple):
    """One subflow. The kernel gives it no number."""

    local: Address | None
    remote: Address | None
    tcp: TcpInfo


@dataclass(frozen=True, slots=True)
class Info:
    """What MPTCP_INFO says, of the connection in the stock kernel's words, where what this one does not say is None.
    ``subflows``: in the order in which they came to be; the kernel lists the newest first."""

    mptcp: MptcpInfo
    subflows: tuple[SubflowInfo, ...]


def info_request(header: bytearray, meta_at: int, tcp_at: int, ends_at: int, room: int) -> None:
    """Fill ``header`` (INFO_BYTES) for a call: memory addresses of META_BYTES and of two arrays with ``room`` elements of
    TCP_INFO_BYTES and ENDS_BYTES. Before every call: the kernel writes what it used in their place. The pointer for the first
    subflow stays null: once that one is closed the kernel would refuse the whole call."""
    sizes = (TCP_INFO_BYTES, room * TCP_INFO_BYTES, META_BYTES, ENDS_BYTES, room * ENDS_BYTES)
    _INFO.pack_into(header, 0, *sizes, meta_at, 0, tcp_at, ends_at)


def decode_info(header: Buffer, meta: Buffer, tcp: Buffer, ends: Buffer) -> Info:
    """Decode header, connection and both arrays after a call of MPTCP_INFO; AbiError when sizes and buffers disagree."""
    if len(header) < _INFO.size:
        raise AbiError(f"mptcp_info: {len(header)} bytes, at least {_INFO.size} expected")
    tcp_stride, tcp_bytes, meta_bytes, ends_stride, ends_bytes = _INFO.unpack_from(header)[:5]
    if meta_bytes < _META.size or len(meta) < _META.size:
        raise AbiError(f"mptcp_meta_info: {min(meta_bytes, len(meta))} bytes, at least {_META.size} expected")
    infos = _rows(tcp, tcp_stride, tcp_bytes, "tcp_info")
    pairs = _rows(ends, ends_stride, ends_bytes, "mptcp_sub_info")
    if len(infos) != len(pairs):
        raise AbiError(f"{len(infos)} tcp_info for {len(pairs)} mptcp_sub_info")
    *_, received_ms, _, _, acked, received = _META.unpack_from(meta)
    return Info(
        # Until something came, the kernel counts from before the machine started.
        MptcpInfo(0, None, received, acked, received_ms if received else None),
        tuple(SubflowInfo(*_pair(pair), decode_tcp_info(info)) for info, pair in zip(infos, pairs, strict=True))[::-1],
    )


def _rows(buffer: Buffer, stride: int, size: int, what: str) -> list[memoryview]:
    if size and (not stride or size % stride):
        raise AbiError(f"{what}: {size} bytes in elements of {stride}")
    if size > len(buffer):
        raise AbiError(f"{what}: {size} bytes in {len(buffer)}")
    view = memoryview(buffer)
    return [view[at : at + stride] for at in range(0, size, stride or 1)]


def _pair(pair: memoryview) -> tuple[Address | None, Address | None]:
    if len(pair) < 2 * _SOCKADDR_BYTES:
        raise AbiError(f"mptcp_sub_info: {len(pair)} bytes, {2 * _SOCKADDR_BYTES} expected")
    return decode_address(pair[:_SOCKADDR_BYTES]), decode_address(pair[_SOCKADDR_BYTES : 2 * _SOCKADDR_BYTES])


class ListedConnection(NamedTuple):
    """What is of use of a line of ``/proc/net/mptcp_net/mptcp``. ``token``: None for a reader without CAP_NET_ADMIN, from whom it is
    hidden; ``inode``: of its socket."""

    token: int | None
    subflows: int
    inode: int


_HIDDEN = 0xFFFFFFFF
_END = r"(?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4}"
_CONNECTION = re.compile(
    rf"\s*[0-9]+: ([0-9A-F]{{1,8}}) [0-9A-F]{{1,8}} +[01] {_END} +{_END} +[0-9A-F]{{2}} ([0-9A-F]{{2}})"
    r" [0-9A-F]{8}:[0-9A-F]{8} ([0-9]+)\s*\Z"
)


def parse_connections(text: str) -> tuple[ListedConnection, ...]:
    """The connections of ``/proc/net/mptcp_net/mptcp``; AbiError for what is none."""
    lines = text.splitlines()
    if lines and lines[0].split()[:3] != ["sl", "loc_tok", "rem_tok"]:
        raise AbiError(f"no heading of /proc/net/mptcp_net/mptcp: {lines[0][:60]!r}")
    found = []
    for line in lines[1:]:
        match = _CONNECTION.match(line)
        if match is None:
            raise AbiError(f"no line of /proc/net/mptcp_net/mptcp: {line[:120]!r}")
        token = int(match[1], 16)
        found.append(ListedConnection(None if token == _HIDDEN else token, int(match[2], 16), int(match[3])))
    return tuple(found)


def parse_fullmesh(text: str) -> frozenset[str]:
    """The addresses in ``/proc/net/mptcp_fullmesh``: what ``fullmesh`` uses now. AbiError for what is none."""
    if not text.startswith("Index, Address-ID, Backup, IP-address"):
        raise AbiError(f"no heading of /proc/net/mptcp_fullmesh: {text[:60]!r}")
    found = set()
    for line in text.splitlines()[1:]:
        words = [word.strip() for word in line.split(",")]
        if len(words) == 2 and words[0] in ("IPv4", "IPv6"):  # "IPv4, next v4-index: 2"
            continue
        address = None
        if len(words) in (4, 5) and all(word.isascii() and word.isdigit() for word in (*words[:3], *words[4:])):
            with contextlib.suppress(ValueError):
                address = ipaddress.ip_address(words[3])
        if address is None:
            raise AbiError(f"no line of /proc/net/mptcp_fullmesh: {line[:80]!r}")
        found.add(str(address))
    return frozenset(found)


def parse_counters(text: str) -> dict[str, int]:
    """The counters of ``/proc/net/mptcp_net/snmp``, most of them under the names of the stock kernel's ``MPTcpExt``; AbiError for what
    is none."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if len(words) != 2 or not words[1].removeprefix("-").isdecimal() or not words[1].isascii():
            raise AbiError(f"no line of /proc/net/mptcp_net/snmp: {line[:80]!r}")
        found[words[0]] = int(words[1])
    return found


_LOOPBACK_S = 2.0


class MultipathSocket(socket.socket):
    """A socket that was requested as one of Multipath TCP. That kernel's sockets are all of TCP, and one whose handshake fell back
    looks as if it had not been."""

    __slots__ = ()


def open_socket(family: socket.AddressFamily, *, multipath: bool, root: Path = Path("/")) -> socket.socket:
    """A stream socket of Multipath TCP, or of TCP alone. With mptcp_enabled=1 every TCP socket is one of Multipath TCP, so plain TCP
    has to be requested too. OSError when the kernel refuses; not for plain TCP where Multipath TCP is off, or its sysctls are hidden."""
    made = MultipathSocket(family, socket.SOCK_STREAM) if multipath else socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.IPPROTO_TCP, MPTCP_ENABLED, int(multipath))
    except OSError:
        if multipath or _enabled(root) not in ("0", None):
            made.close()
            raise
    return made


def _enabled(root: Path) -> str | None:
    try:
        return (root / ENABLED).read_text().strip()
    except OSError:
        return None


class InfoReader:
    """Reads MPTCP_INFO of one connection again and again; at most ``room`` subflows."""

    def __init__(self, connection: Connection, room: int) -> None:
        self._connection, self._room = connection, room
        self._header, self._meta = Memory(INFO_BYTES), Memory(META_BYTES)
        self._tcp, self._ends = Memory(room * TCP_INFO_BYTES), Memory(room * ENDS_BYTES)

    def read(self) -> Info:
        """Connection and subflows now; OSError with EINVAL when the connection is plain TCP, AbiError when the answer is none."""
        header = self._header
        info_request(header.bytes, self._meta.address, self._tcp.address, self._ends.address, self._room)
        getsockopt(self._connection, socket.IPPROTO_TCP, MPTCP_INFO, header, INFO_BYTES)
        return decode_info(header.bytes, self._meta.bytes, self._tcp.bytes, self._ends.bytes)


def named(connection: Connection, option: int) -> str | None:
    """What MPTCP_SCHEDULER or MPTCP_PATH_MANAGER says of an open connection; None when it says nothing."""
    try:
        raw = connection.getsockopt(socket.IPPROTO_TCP, option, NAME_BYTES)
    except OSError:
        return None  # closed meanwhile
    return raw.split(b"\0")[0].decode("ascii", "replace") or None


def is_multipath(connection: Connection) -> bool:
    """Whether an open connection is one of Multipath TCP; OSError when it is closed."""
    return bool(connection.getsockopt(socket.IPPROTO_TCP, MPTCP_ENABLED))


def in_force(root: Path = Path("/")) -> dict[str, str]:
    """``scheduler`` and ``path_manager`` of connections that begin now, for a network namespace where the sysctls are hidden: by a socket
    that has not begun yet, else by a connection of this machine with itself, over loopback or, where that kernel has plain TCP there, over
    an address that ``fullmesh`` uses. Empty where nothing tells it."""
    with contextlib.suppress(OSError), open_socket(socket.AF_INET, multipath=True) as made:
        if found := _names(made):
            return found
    for host in ("127.0.0.1", *_own(root)):
        if found := _by_connection(host):
            return found
    return {}


def _names(connection: Connection) -> dict[str, str]:
    options = {"scheduler": MPTCP_SCHEDULER, "path_manager": MPTCP_PATH_MANAGER}
    found = {what: name for what, option in options.items() if (name := named(connection, option))}
    return found if "scheduler" in found else {}


def _own(root: Path) -> list[str]:
    try:
        return sorted(one for one in parse_fullmesh((root / FULLMESH).read_text()) if ":" not in one)
    except (OSError, AbiError):
        return []


def _by_connection(host: str) -> dict[str, str]:
    with contextlib.suppress(OSError), contextlib.ExitStack() as held:
        listener = held.enter_context(open_socket(socket.AF_INET, multipath=True))
        listener.bind((host, 0))
        listener.listen(1)
        connection = held.enter_context(open_socket(socket.AF_INET, multipath=True))
        connection.settimeout(_LOOPBACK_S)
        connection.connect(listener.getsockname())
        held.enter_context(listener.accept()[0])
        if is_multipath(connection):
            return _names(connection)
    return {}
