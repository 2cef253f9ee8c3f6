"""Trace one path by UDP or TCP: segments whose time to live ends on the way, and who says so. Needs no privilege.

Who says so is in the kernel's error queue (``struct sock_extended_err``, recvmsg(2) with MSG_ERRQUEUE). All probes of a trace have the
same addresses and ports, so that routers that share load by them (ECMP) show one way. One probe is under way at a time.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tandem.experiment.base import MissingRequirementError
from tandem.mptcp_abi import decode_address

IP_RECVERR, IPV6_RECVERR = 11, 25
_ERROR = struct.Struct("=IBBBBII")
_ICMP, _ICMP6 = 2, 3
_EXPIRED = {(_ICMP, 11), (_ICMP6, 3)}
_PORT = {(_ICMP, 3, 3), (_ICMP6, 1, 4)}


@dataclass(frozen=True, slots=True)
class IcmpError:
    """``kind``: ``expired`` (a router on the way), ``port`` (the host itself: nobody listens), ``unreachable N`` (a router refuses;
    the ICMP code). ``offender``: who sent it."""

    offender: str
    kind: str


def read_error(ancillary: Sequence[tuple[int, int, bytes]]) -> IcmpError | None:
    """The ICMP error among the ancillary data; None when there is none (an error of this machine's own)."""
    levels = ((socket.IPPROTO_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR))
    for level, kind, content in ancillary:
        if (level, kind) not in levels or len(content) < _ERROR.size:
            continue
        _, origin, icmp, code, _, _, _ = _ERROR.unpack_from(content)
        offender = decode_address(content[_ERROR.size :])
        if origin not in (_ICMP, _ICMP6) or offender is None:
            continue
        port = "port" if (origin, icmp, code) in _PORT else f"unreachable {code}"
        return IcmpError(offender.host, "expired" if (origin, icmp) in _EXPIRED else port)
    return None


_IP_TTL = 2
_SYNCNT = 7
_LINGER_RESET = struct.pack("ii", 1, 0)
_MAGIC = b"tandem traceroute"


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer to a probe: from whom, after how long, and ``kind`` as ``IcmpError`` or ``answer`` (the server's own)."""

    address: str
    rtt_ms: float
    kind: str


@dataclass(slots=True)
class Hop:
    """What came of the probes with one time to live; None for each that stayed unanswered."""

    ttl: int
    replies: list[Reply | None] = field(default_factory=list)


@dataclass(slots=True)
class Trace:
    """``ended``: ``reached``, ``unreachable`` (a router refuses), ``silent`` (too many hops without a word), ``hops`` (too many),
    ``stopped``, or the path's failure in words."""

    hops: list[Hop] = field(default_factory=list)
    ended: str = "hops"


@dataclass(frozen=True, slots=True)
class Plan:
    """``protocol``: ``udp`` or ``tcp``; ``tries`` probes a hop, each waited for ``timeout_s``; ``silent`` hops end a trace."""

    protocol: str
    hops: int
    tries: int
    timeout_s: float
    silent: int


def trace(interface: str, address: tuple[str, int], plan: Plan, stopped: Callable[[], bool]) -> Trace:
    """Over ``interface`` to ``address``. Failures of the path are in ``ended``; MissingRequirementError when the kernel forbids it."""
    found = Trace()
    probe = _Udp(interface, address) if plan.protocol == "udp" else _Tcp(interface, address)
    silent = 0
    try:
        for ttl in range(1, plan.hops + 1):
            hop = Hop(ttl)
            found.hops.append(hop)
            for number in range(plan.tries):
                if stopped():
                    found.ended = "stopped"
                    return found
                hop.replies.append(probe.send(ttl, number, plan.timeout_s))
            kinds = {r.kind for r in hop.replies if r is not None}
            if kinds & {"answer", "port"}:
                found.ended = "reached"
                return found
            if any(kind.startswith("unreachable") for kind in kinds):
                found.ended = "unreachable"
                return found
            silent = 0 if kinds else silent + 1
            if silent >= plan.silent:
                found.ended = "silent"
                return found
    except OSError as error:
        if error.errno == errno.EPERM:
            raise MissingRequirementError(
                "SO_BINDTODEVICE is not permitted; hint: a kernel from 5.7, or the capability CAP_NET_RAW"
            ) from error
        found.ended = (error.strerror or str(error)).lower()
    finally:
        probe.close()
    return found


def _prepared(kind: socket.SocketKind, interface: str, host: str) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, kind)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        if ":" in host:
            made.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        else:
            made.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made


def _live_for(made: socket.socket, host: str, ttl: int) -> None:
    if ":" in host:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, ttl)
    else:
        made.setsockopt(socket.IPPROTO_IP, _IP_TTL, ttl)


def _queued(made: socket.socket) -> tuple[bytes, IcmpError | None] | None:
    """The next of the error queue: what of the probe's payload the router quoted, and the error; None when the queue is empty."""
    try:
        quoted, ancillary, _, _ = made.recvmsg(512, 512, socket.MSG_ERRQUEUE)
    except BlockingIOError:
        return None
    return quoted, read_error(ancillary)


class _Udp:
    """One socket for the whole trace; each probe's payload says which it is, as far as routers quote it."""

    def __init__(self, interface: str, address: tuple[str, int]) -> None:
        self._host = address[0]
        self._made = _prepared(socket.SOCK_DGRAM, interface, address[0])
        try:
            self._made.connect(address)
        except OSError:
            self._made.close()
            raise

    def close(self) -> None:
        self._made.close()

    def send(self, ttl: int, number: int, timeout_s: float) -> Reply | None:
        while _queued(self._made) is not None:
            pass  # answers to earlier probes that came too late
        payload = _MAGIC + bytes([ttl, number])
        _live_for(self._made, self._host, ttl)
        begun = time.monotonic_ns()
        try:
            self._made.send(payload)
        except OSError as error:
            if error.errno != errno.ECONNREFUSED:  # that is an earlier probe's
                raise
            self._made.send(payload)
        ends = begun + int(timeout_s * 1e9)
        while (left := ends - time.monotonic_ns()) > 0:
            ready = select.select([self._made], [], [self._made], left / 1e9)
            now = time.monotonic_ns()
            if not any(ready):
                break
            while (one := _queued(self._made)) is not None:
                quoted, error_ = one
                ours = not quoted.startswith(_MAGIC) or quoted[: len(payload)] == payload
                if error_ is not None and ours:
                    return Reply(error_.offender, (now - begun) / 1e6, error_.kind)
            try:
                self._made.recv(2048)
            except OSError:
                continue  # nothing there, or the error itself, whose story the queue has
            return Reply(self._host, (now - begun) / 1e6, "answer")
        return None


class _Tcp:
    """A SYN a probe, all from the port that the first one got."""

    def __init__(self, interface: str, address: tuple[str, int]) -> None:
        self._interface, self._address, self._port = interface, address, 0

    def close(self) -> None:
        """Nothing stays open between probes."""

    def send(self, ttl: int, number: int, timeout_s: float) -> Reply | None:
        del number
        host = self._address[0]
        with _prepared(socket.SOCK_STREAM, self._interface, host) as made:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            made.setsockopt(socket.IPPROTO_TCP, _SYNCNT, 1)
            _live_for(made, host, ttl)
            made.bind(("::" if ":" in host else "0.0.0.0", self._port))  # noqa: S104  (the interface is chosen above)
            self._port = made.getsockname()[1]
            begun = time.monotonic_ns()
            code = made.connect_ex(self._address)
            if code not in (0, errno.EINPROGRESS, errno.ECONNREFUSED):
                raise OSError(code, errno.errorcode.get(code, str(code)))
            poll = select.poll()
            poll.register(made, select.POLLOUT)
            if code == errno.EINPROGRESS and not poll.poll(timeout_s * 1000):
                return None
            rtt_ms = (time.monotonic_ns() - begun) / 1e6
            while (one := _queued(made)) is not None:
                if one[1] is not None:
                    return Reply(one[1].offender, rtt_ms, one[1].kind)
            failure = code if code == errno.ECONNREFUSED else made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if failure in (0, errno.ECONNREFUSED):
                return Reply(host, rtt_ms, "answer")
            return None
