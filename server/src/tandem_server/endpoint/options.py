"""Options of a session's sockets at this end: congestion controller, buffers, Nagle's algorithm."""

from __future__ import annotations

import re
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

from tandem.mptcp_abi import v094
from tandem.mptcp_abi.controllers import COUPLED, described
from tandem.mptcp_abi.v094 import is_multipath
from tandem.stream import Stream
from tandem_server.endpoint.multipath import open_socket

_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
_NAME = re.compile(r"[a-z0-9_-]{1,15}\Z")
_KEYS = {"congestion_control", "send_buffer_bytes", "receive_buffer_bytes", "nodelay"}
BUFFER_BYTES = (4096, 1 << 30)
"""Least and greatest size of a buffer that may be requested."""


class OptionsError(ValueError):
    """The options are none, or this kernel does not have or allow them: one line."""


@dataclass(frozen=True, slots=True)
class Options:
    """What a session wants of its sockets; None: as the system has it."""

    congestion_control: str | None = None
    send_buffer_bytes: int | None = None
    nodelay: bool | None = None
    receive_buffer_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Effective:
    """What a socket has. Buffers: as the kernel counts, its overhead included (twice what was requested)."""

    congestion_control: str
    send_buffer_bytes: int
    nodelay: bool
    receive_buffer_bytes: int

    def to_dict(self) -> dict[str, object]:
        """As the API has it, with what kind of controller it is."""
        return {**asdict(self), "controller": described(self.congestion_control)}


def read_options(wanted: object) -> Options:
    """Check the value of ``options``; OptionsError says what is wrong. Whether the kernel has them is ``negotiate``'s to find out."""
    if wanted is None:
        return Options()
    if not isinstance(wanted, dict):
        raise OptionsError("options is no object")
    if unknown := wanted.keys() - _KEYS:
        raise OptionsError(f"unknown option {min(unknown)!r}; there are {', '.join(sorted(_KEYS))}")
    control, nodelay = wanted.get("congestion_control"), wanted.get("nodelay")
    if control is not None and (not isinstance(control, str) or not _NAME.match(control)):
        raise OptionsError("congestion_control is no controller's name")
    least, most = BUFFER_BYTES
    for name in ("send_buffer_bytes", "receive_buffer_bytes"):
        room = wanted.get(name)
        if room is not None and (type(room) is not int or not least <= room <= most):
            raise OptionsError(f"{name} is no whole number from {least} to {most}")
    if nodelay is not None and not isinstance(nodelay, bool):
        raise OptionsError("nodelay is neither true nor false")
    return Options(control, wanted.get("send_buffer_bytes"), nodelay, wanted.get("receive_buffer_bytes"))


def negotiate(options: Options, available: Path = _AVAILABLE) -> Effective:
    """What a socket with these options will have, tried on one of ours; OptionsError when the kernel refuses one of them."""
    if options.congestion_control is not None:
        try:
            known = available.read_text().split()
        except FileNotFoundError:
            known = None  # Linux 4.14 in a network namespace that is not the first: a socket has to be tried, one that answers at once
            with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tried:
                choose_controller(tried, options.congestion_control)
        except OSError as error:
            raise OptionsError(f"the server's kernel does not tell its congestion controllers: {error}") from error
        if known is not None and options.congestion_control not in known:
            way = "modprobe its module (mptcp_coupled is lia)" if v094.present() else "tandem-server congestion load"
            hint = f"; hint: on the server, {way}" if options.congestion_control in COUPLED else ""
            raise OptionsError(
                f"congestion_control {options.congestion_control!r}: the server's kernel has {', '.join(known)}{hint}"
            )
    with _trial() as trial:
        apply(trial, options)
        return effective(trial)


def apply(connection: Stream, options: Options) -> None:
    """Set the options on a socket (all subflows, also later ones); OptionsError when the kernel refuses."""
    if options.congestion_control is not None:
        choose_controller(connection, options.congestion_control)
    _apply_others(connection, options)


def apply_accepted(connection: Stream, options: Options) -> None:
    """As ``apply``, on an accepted connection. On the v0.94 kernel the first subflow has its controller from the listener
    (``listener.Controllers``), and would keep it whatever is set now: OptionsError when it is another."""
    name = options.congestion_control
    if name is None or not v094.present() or not is_multipath(connection):
        apply(connection, options)
        return
    if (has := effective(connection).congestion_control) != name:
        raise OptionsError(
            f"congestion_control {name!r}: the connection began with {has}; hint: a session alone on this endpoint"
        )
    _apply_others(connection, options)


def choose_controller(connection: Stream, name: str) -> None:
    """Set the controller; OptionsError when the kernel refuses."""
    try:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except PermissionError:
        raise OptionsError(
            f"congestion_control {name!r}: the server's account may not choose it; hint: add it to its"
            " net.ipv4.tcp_allowed_congestion_control"
        ) from None
    except FileNotFoundError:
        raise OptionsError(f"congestion_control {name!r}: the server's kernel does not have it") from None
    except OSError as error:
        raise OptionsError(f"congestion_control {name!r}: {error.strerror}") from error


def _apply_others(connection: Stream, options: Options) -> None:
    try:
        if options.send_buffer_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, options.send_buffer_bytes)
        if options.receive_buffer_bytes is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, options.receive_buffer_bytes)
        if options.nodelay is not None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(options.nodelay))
    except OSError as error:
        raise OptionsError(f"socket options: {error.strerror}") from error


def effective(connection: Stream) -> Effective:
    """What a socket has now. OSError when it has gone."""
    raw = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return Effective(
        raw.split(b"\0")[0].decode("ascii", "replace"),
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF),
        bool(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)),
        connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF),
    )


def _trial() -> socket.socket:
    try:
        return open_socket(socket.AF_INET, multipath=True)
    except OSError:
        return socket.socket(socket.AF_INET, socket.SOCK_STREAM)
