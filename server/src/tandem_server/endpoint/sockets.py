"""Sockets at this end: how they are opened, what a session wants of them, what the kernel says of them and of itself.

The two kernels have their own ways of Multipath TCP: the stock one a protocol of its own (IPPROTO_MPTCP), the out-of-tree v0.9x kernel an
option of TCP sockets. They speak different versions of the protocol: a probe of one kind gets plain TCP from a server of the other.
"""

from __future__ import annotations

import errno
import platform
import re
import socket
import subprocess
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tandem import mptcp_abi as abi
from tandem.mptcp_abi import COUPLED, IPPROTO_MPTCP, described, v094
from tandem.mptcp_abi.v094 import InfoReader, is_multipath
from tandem.stream import Stream

HINT = "sysctl net.mptcp.enabled=1 on Linux 5.6 or later (net.mptcp.mptcp_enabled=1 on the v0.94 kernel)"


def open_socket(family: socket.AddressFamily, *, multipath: bool) -> socket.socket:
    """A stream socket of Multipath TCP, or of TCP alone; OSError when the kernel has none."""
    if v094.present():
        return v094.open_socket(family, multipath=multipath)
    return socket.socket(family, socket.SOCK_STREAM, IPPROTO_MPTCP if multipath else socket.IPPROTO_TCP)


def accepted_subflows() -> int | None:
    """How many subflows the kernel accepts in a connection beside its first (``ip mptcp limits``, which takes no privilege to read); None
    where that is not known (no iproute2, no Multipath TCP)."""
    try:
        done = subprocess.run(["ip", "mptcp", "limits", "show"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return subflow_limit(done.stdout) if done.returncode == 0 else None


def subflow_limit(text: str) -> int | None:
    """From what ``ip mptcp limits show`` prints: "add_addr_accepted 0 subflows 2"."""
    found = re.search(r"\bsubflows (\d{1,9})\b", text)
    return None if found is None else int(found[1])


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
    """As ``apply``, on an accepted connection. On the v0.94 kernel it has its controller from the listener, which is that of the last
    session of Multipath TCP (``listener.Controllers``). The first subflow would keep it whatever is set now: OptionsError when it is
    another. Plain TCP gets its own, or the system's."""
    if not v094.present():
        apply(connection, options)
        return
    name = options.congestion_control
    if not is_multipath(connection):
        if name is None:
            with _trial() as fresh:
                name = effective(fresh).congestion_control
        apply(connection, replace(options, congestion_control=name))
        return
    if name is not None and (has := effective(connection).congestion_control) != name:
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


_SYSCTLS = {
    "congestion_control": "net/ipv4/tcp_congestion_control",
    "tcp_wmem": "net/ipv4/tcp_wmem",
    "tcp_rmem": "net/ipv4/tcp_rmem",
    "tcp_slow_start_after_idle": "net/ipv4/tcp_slow_start_after_idle",
    "tcp_no_metrics_save": "net/ipv4/tcp_no_metrics_save",
}

_MULTIPATH = {
    "1": {"scheduler": "net/mptcp/scheduler", "mptcp_enabled": "net/mptcp/enabled"},
    "0": {"scheduler": "net/mptcp/mptcp_scheduler", "mptcp_enabled": "net/mptcp/mptcp_enabled"},
}
"""By the version of the protocol that the kernel speaks: 0 is the out-of-tree kernel's."""


def read_environment(root: Path = Path("/")) -> dict[str, str | None]:
    """Settings of this network namespace as the kernel tells them; None for those that this kernel does not have, or hides: the
    out-of-tree kernel shows its own in the first namespace only. ``mptcp_protocol``: the version that it speaks, None without any."""
    settings: dict[str, str | None] = {"kernel": platform.release()}
    proc = root / "proc"
    stock = "1" if (proc / "sys" / _MULTIPATH["1"]["mptcp_enabled"]).exists() else None
    settings["mptcp_protocol"] = protocol = "0" if v094.present(root) else stock
    for name, place in {**_SYSCTLS, **_MULTIPATH[protocol or "1"]}.items():
        try:
            settings[name] = " ".join((proc / "sys" / place).read_text().split())
        except OSError:
            settings[name] = None
    if protocol == "0" and settings["scheduler"] is None:
        settings["scheduler"] = v094.in_force(root).get("scheduler")
    return settings


def boot_id(proc: Path = Path("/proc")) -> str:
    """The id of this boot, in which CLOCK_MONOTONIC counts; a random one where the kernel tells none."""
    try:
        return (proc / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return str(uuid.uuid4())


_NETSTAT = Path("/proc/thread-self/net/netstat")
_V094_COUNTERS = "/" / v094.FOLDER / "snmp"
_ROOM = 8


def handshake_seen(connection: Stream) -> dict[str, object]:
    """``multipath``: ``native``, ``fallback`` (it was Multipath TCP and is TCP now), ``none`` (accepted as TCP: MP_CAPABLE was missing
    from the SYN or from what followed our answer); ``handshake_rtt_ms``: the kernel's round-trip time, null when it has none yet;
    ``multipath_syns``: SYNs with MP_CAPABLE that this network namespace has had, null when unknown."""
    multipath = _multipath_of(connection)
    if multipath == "native" and v094.present():  # where TCP_INFO is the whole connection's, which has no round trips
        info = InfoReader(connection, _ROOM).read().subflows[0].tcp
    else:
        info = abi.decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
    return {
        "multipath": multipath,
        "handshake_rtt_ms": None if info.rtt_us is None else info.rtt_us / 1000,
        "multipath_syns": multipath_syns(),
    }


def multipath_syns() -> int | None:
    """The kernel's counter ``MPCapableSYNRX``."""
    try:
        if v094.present():
            return v094.parse_counters(_V094_COUNTERS.read_text())["MPCapableSYNRX"]
        rows = [line.split() for line in _NETSTAT.read_text().splitlines() if line.startswith("MPTcpExt:")]
        names, values = rows
        return int(dict(zip(names, values, strict=True))["MPCapableSYNRX"])
    except (OSError, ValueError, KeyError):
        return None  # no Multipath TCP in this kernel


def _multipath_of(connection: Stream) -> str:
    if v094.present():  # which does not say that it was Multipath TCP and is no more
        return "native" if is_multipath(connection) else "none"
    if connection.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) != abi.IPPROTO_MPTCP:
        return "none"
    try:
        raw = connection.getsockopt(abi.SOL_MPTCP, abi.MPTCP_INFO, abi.MPTCP_INFO_BYTES)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.ENOPROTOOPT):
            raise
        return "fallback"
    return "fallback" if abi.decode_mptcp_info(raw).fallback else "native"
