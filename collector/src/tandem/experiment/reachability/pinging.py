"""TCP pings over one path: a handshake begun and reset, timed by the kernel. A bounded rate of SYNs, many in flight.

The round-trip time is the kernel's own (``tcpi_rtt`` after the handshake): a time taken here would be this process's queue as well.
A reset ends a connection before it has one, so a ping answered by a reset counts as answered and has no round-trip time.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from tandem import mptcp_abi as abi
from tandem.mptcp import kernels

_LINGER_RESET = struct.pack("ii", 1, 0)
_IN_FLIGHT = 512
_TCP_SYNCNT = 7
_REFUSALS = (errno.ECONNREFUSED, errno.ECONNRESET)
_UNREACHABLE = (
    errno.EHOSTUNREACH,
    errno.ENETUNREACH,
    errno.EACCES,
    errno.EPERM,
    errno.EPROTO,
    errno.EHOSTDOWN,
    errno.ENOPROTOOPT,
)


@dataclass(slots=True)
class Pinged:
    """One address over one path. ``sent`` = ``answered`` + ``resets`` + ``unreachable`` + silent ones. ``unreachable``: a router said
    so (ICMP), which is no answer of the address. ``not_sent``: this machine had no way there; no ping at all.
    ``rtt_ms``: one a handshake, in time's order."""

    sent: int = 0
    answered: int = 0
    resets: int = 0
    unreachable: int = 0
    not_sent: int = 0
    rtt_ms: list[float] = field(default_factory=list)


class Pinger:
    """One path's. ``rate``: SYNs per second (the kernel repeats one that stays unanswered once); ``timeout_s`` for each ping."""

    def __init__(self, interface: str, port: int, rate: float, timeout_s: float) -> None:
        self._interface, self._port = interface, port
        self._interval_ns, self._timeout_ns = int(1e9 / rate), int(timeout_s * 1e9)
        self._kernel = kernels.here()
        self.late_ms_max = 0.0
        """How late a SYN went out at the worst: what this machine could not keep up with."""

    def ping(self, addresses: Iterable[str], results: dict[str, Pinged], stopped: Callable[[], bool]) -> None:
        """Ping each of ``addresses`` in this order (again where one comes again) and count into ``results``."""
        todo: Iterator[str] | None = iter(addresses)
        poll = select.epoll()
        pending: dict[int, tuple[socket.socket, str, int]] = {}
        due_ns = time.monotonic_ns()
        try:
            while (todo is not None or pending) and not stopped():
                now = time.monotonic_ns()
                while todo is not None and len(pending) < _IN_FLIGHT and now >= due_ns:
                    address = next(todo, None)
                    if address is None:
                        todo = None
                        break
                    self.late_ms_max = max(self.late_ms_max, (now - due_ns) / 1e6)
                    # after a hold-up no more than two at once: the rate is a bound, not a mean to be made up for
                    due_ns = max(due_ns, now - self._interval_ns) + self._interval_ns
                    self._begin(address, results.setdefault(address, Pinged()), poll, pending)
                    now = time.monotonic_ns()
                self._await(todo is not None, due_ns, poll, pending, results)
        finally:
            for made, _, _ in pending.values():
                made.close()
            poll.close()

    def _await(
        self,
        more: bool,
        due_ns: int,
        poll: select.epoll,
        pending: dict[int, tuple[socket.socket, str, int]],
        results: dict[str, Pinged],
    ) -> None:
        """Wait for answers until the next SYN or the next timeout is due."""
        now = time.monotonic_ns()
        first = next(iter(pending.values()), None)  # begun first: dicts keep the order
        wake = now + 200_000_000 if first is None else first[2] + self._timeout_ns
        if more and len(pending) < _IN_FLIGHT:
            wake = min(wake, due_ns)
        for descriptor, _ in poll.poll(max(0.0, min(0.2, (wake - now) / 1e9))):
            made, address, _ = pending.pop(descriptor)
            poll.unregister(descriptor)
            _ended(made, results[address])
        now = time.monotonic_ns()
        while pending:
            descriptor, (made, _, begun) = next(iter(pending.items()))
            if now - begun < self._timeout_ns:
                return
            del pending[descriptor]
            poll.unregister(descriptor)
            made.close()  # silent: sent, and nothing else

    def _begin(
        self, address: str, result: Pinged, poll: select.epoll, pending: dict[int, tuple[socket.socket, str, int]]
    ) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        made = self._kernel.open_socket(family, multipath=False)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self._interface.encode() + b"\0")
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
            made.setsockopt(socket.IPPROTO_TCP, _TCP_SYNCNT, 1)
            made.setblocking(False)
            code = made.connect_ex((address, self._port))
        except OSError as error:
            code = error.errno or errno.EIO
        if code == errno.EINPROGRESS:
            result.sent += 1
            poll.register(made, select.EPOLLOUT | select.EPOLLERR | select.EPOLLHUP)
            pending[made.fileno()] = (made, address, time.monotonic_ns())
        elif code in (0, *_REFUSALS):
            result.sent += 1
            _ended(made, result, code)  # over loopback the answer is there at once
        else:
            result.not_sent += 1
            made.close()


def _ended(made: socket.socket, result: Pinged, code: int | None = None) -> None:
    with made:
        failure = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) if code is None else code
        if failure in _REFUSALS:
            result.resets += 1
        elif failure in _UNREACHABLE:
            result.unreachable += 1
        elif failure == 0:
            result.answered += 1
            info = abi.decode_tcp_info(made.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
            if info.rtt_us is not None:
                result.rtt_ms.append(info.rtt_us / 1000)
        # else ETIMEDOUT: the kernel gave up, which is silence
