"""Connect by Multipath TCP or TCP over a chosen path.

The path of a TCP connection, and the primary path of an MPTCP connection, is chosen by SO_BINDTODEVICE, which needs no privilege
since Linux 5.7 and holds when the interface's address changes; where an address is given it is bound as well. Neither keeps the
other subflows from their own interfaces: those follow the endpoints that ``paths`` configured.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tandem.mptcp import kernels, names, path_manager
from tandem.stream import Stream, TlsStream

Kind = Literal["mptcp", "tcp"]


class UnsupportedError(RuntimeError):
    """This machine cannot do it at all (no Multipath TCP in the kernel, no such congestion control): not the network's fault."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a connection starts: an interface's name, one of its addresses, or both; neither leaves it to the routes."""

    interface: str | None = None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class Options:
    """Socket options set before connecting. Buffers in bytes, as asked of the kernel; None leaves its automatic tuning on."""

    receive_buffer_bytes: int | None = None
    send_buffer_bytes: int | None = None
    congestion_control: str | None = None
    both_families: bool = False
    """An IPv4 address is connected to from an IPv6 socket (as ::ffff:a.b.c.d), whose connection can have subflows of both."""
    by_orders: bool = False
    """The kernel opens no subflow of its own: all but the first are ordered (``subflow_scheduler``). Takes CAP_NET_ADMIN."""


DEFAULT_OPTIONS = Options()


@dataclass(frozen=True, slots=True)
class Connected:
    """An open connection. ``connect_ms``: connect(2) took so long, which is the primary path's handshake. ``tls``: over ``socket``, and
    how long its handshake took; None without."""

    socket: socket.socket
    connect_ms: float
    started_monotonic_ns: int
    connected_monotonic_ns: int
    tls: TlsStream | None = None
    tls_ms: float | None = None

    @property
    def stream(self) -> Stream:
        return self.socket if self.tls is None else self.tls


def resolve(host: str, port: int, interface: str | None = None) -> tuple[str, int]:
    """The first address of ``host``, IPv6 for an ``interface`` that has nothing else, else IPv4, as ``names.addresses`` finds it; OSError
    when it has none, or none was reported in time."""
    family = socket.AF_INET6 if interface is not None and only6(interface) else socket.AF_INET
    return names.addresses(host, interface, family)[0], port


def multipath6() -> bool:
    """Whether this kernel's Multipath TCP has IPv6 (Raspberry Pi OS builds its kernels without)."""
    try:
        kernels.here().open_socket(socket.AF_INET6, multipath=True).close()
    except OSError:
        return False
    return True


def make(
    kind: Kind, source: Source, options: Options = DEFAULT_OPTIONS, family: socket.AddressFamily = socket.AF_INET
) -> socket.socket:
    """A socket bound to ``source``, not yet connected. UnsupportedError when the kernel lacks what is asked; OSError when the
    interface or address does not exist (any more), which for a modem is a result."""
    kernel = kernels.here()
    try:
        with path_manager.userspace_sockets() if options.by_orders else contextlib.nullcontext():
            made = kernel.open_socket(family, multipath=kind == "mptcp")
    except path_manager.ChoiceError as error:
        raise UnsupportedError(
            f"a number of subflows cannot be ordered here: {error}; hint: CAP_NET_ADMIN, and Linux 5.19 or later"
        ) from error
    except OSError as error:
        missing = kernel.missing_requirement(error, family) if kind == "mptcp" else None
        if missing is not None:
            raise UnsupportedError(missing) from error
        raise
    try:
        _set_options(made, options)
        if source.interface is not None:
            _bind_to_interface(made, source.interface)
        if source.address is not None:
            made.bind((source.address, 0))
    except BaseException:
        made.close()
        raise
    return made


def _bind_to_interface(made: socket.socket, interface: str) -> None:
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
    except PermissionError as error:
        raise UnsupportedError(
            f"a socket cannot be bound to {interface}; hint: before Linux 5.7 that takes the capability NET_RAW"
        ) from error


def _set_options(made: socket.socket, options: Options) -> None:
    if options.receive_buffer_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
    if options.send_buffer_bytes is not None:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
    if options.congestion_control is not None:
        name = options.congestion_control
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
        except OSError as error:
            raise UnsupportedError(
                f"congestion control {name!r}: {os.strerror(error.errno or 0)}; see "
                "net.ipv4.tcp_available_congestion_control"
            ) from error


def connect(
    kind: Kind, address: tuple[str, int], source: Source, timeout_s: float, options: Options = DEFAULT_OPTIONS
) -> Connected:
    """Connect to ``address`` within ``timeout_s`` seconds. The socket comes back blocking.

    Raises OSError as connect(2) does (TimeoutError, ConnectionRefusedError, …), also for a connection that cannot be measured
    (``Kernel.fault``), and as ``make``.
    """
    if options.both_families and ":" not in address[0]:
        address = (f"::ffff:{address[0]}", address[1])
    made = make(kind, source, options, socket.AF_INET6 if ":" in address[0] else socket.AF_INET)
    try:
        made.settimeout(timeout_s)
        started = time.monotonic_ns()
        made.connect(address)
        ended = time.monotonic_ns()
        made.settimeout(None)
        if kind == "mptcp" and (fault := kernels.here().fault(made)) is not None:
            raise OSError(errno.EAGAIN, fault)
    except BaseException:
        made.close()
        raise
    return Connected(made, (ended - started) / 1e6, started, ended)


def congestion_control(connection: socket.socket) -> str | None:
    """The congestion control in use at this end; None when the kernel does not tell."""
    try:
        return (
            connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
            .rstrip(b"\0")
            .decode("ascii", "replace")
        )
    except OSError:
        return None


_SIOCGIFADDR = 0x8915


def interface_address(interface: str) -> str | None:
    """The first IPv4 address of ``interface``, by ioctl and without privileges; None when it has none or does not exist."""
    request = struct.pack("16s24x", interface.encode()[:15])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
        except OSError:
            return None
    return socket.inet_ntoa(answer[20:24])


_IF_INET6 = Path("/proc/thread-self/net/if_inet6")
_UNUSABLE6 = 0x08 | 0x20 | 0x40  # dadfailed, deprecated, tentative


def interface_addresses6(interface: str) -> list[str]:
    """The global IPv6 addresses of ``interface`` that may be used; empty when it has none or does not exist."""
    try:
        rows = [line.split() for line in _IF_INET6.read_text().splitlines()]
    except OSError:
        return []  # no IPv6 in this kernel
    return [
        socket.inet_ntop(socket.AF_INET6, bytes.fromhex(row[0]))
        for row in rows
        if len(row) == 6 and row[5] == interface and row[3] == "00" and not int(row[4], 16) & _UNUSABLE6
    ]


def interface_addresses(interface: str) -> list[str]:
    """The first IPv4 address of ``interface`` and its global IPv6 ones."""
    first = interface_address(interface)
    return [*(() if first is None else (first,)), *interface_addresses6(interface)]


def has_address(interface: str) -> bool:
    return bool(interface_addresses(interface))


def only6(interface: str) -> bool:
    return interface_address(interface) is None and bool(interface_addresses6(interface))
