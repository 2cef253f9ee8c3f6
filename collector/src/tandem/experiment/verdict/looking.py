"""Look at one path: plain TCP beside Multipath TCP, what both ends saw of the handshake, the kernel's counters, and a join."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem import mptcp_abi as abi
from tandem.experiment import http_head
from tandem.experiment.control import Session, describe, whole
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import CommonParameters, ProbePath
from tandem.experiment.verdict.judging import DROPPED
from tandem.mptcp import kernels, sockets
from tandem.mptcp.statistics import ConnectionSample, Reader, StatisticsError, SubflowSample
from tandem.stream import Stream

_LONGEST_ANSWER = 4096
_LOOK_S = 0.02


class LookError(Exception):
    """The network failed while looking; one line."""


def risen(before: dict[str, int]) -> dict[str, int]:
    """What rose since ``before``, and, where the kernel has them, those whose 0 says something."""
    now = kernels.here().counters()
    always = ("MPCapableSYNTX", "MPJoinSynTx", DROPPED)
    return {k: v - before.get(k, 0) for k, v in now.items() if v > before.get(k, 0) or (before and k in always)}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One whoami. ``sample``: the connection before the request (Multipath TCP only); ``here_ms``: the handshake's round-trip time here;
    ``there``: what the server says, as it came."""

    sample: ConnectionSample | None
    connect_s: float
    here_ms: float | None
    exchange_ms: float
    there: dict[str, Any]

    @property
    def syns(self) -> int | None:
        """How many SYNs with MP_CAPABLE the server had had by then; None when it does not say."""
        return whole(self.there.get("multipath_syns"))


def ask(common: CommonParameters, path: ProbePath, kind: sockets.Kind, timeout_s: float, session: Session) -> Exchange:
    """Connect, ask whoami, read; LookError."""
    made = connected(common, path, kind, timeout_s)
    with made.socket as connection:
        info = abi.decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
        sample = read(Reader(connection)) if kind == "mptcp" else None
        started = time.monotonic_ns()
        raw, first_ns = _answer(made.stream, request(common, "/v1/whoami", session), timeout_s)
        try:
            there = json.loads(raw)
        except ValueError as error:
            raise LookError("whoami: the answer is no JSON") from error
    if not isinstance(there, dict):
        raise LookError("whoami: the answer is no object")
    here = None if info.rtt_us is None else info.rtt_us / 1000
    return Exchange(sample, made.connect_ms / 1000, here, (first_ns - started) / 1e6, there)


def connected(common: CommonParameters, path: ProbePath, kind: sockets.Kind, timeout_s: float) -> sockets.Connected:
    """A connection over ``path`` to the measurement listener; LookError."""
    try:
        return connect(common, kind, path, timeout_s)
    except OSError as error:
        raise LookError(f"connect: {describe(error)}") from error


def request(common: CommonParameters, target: str, session: Session) -> bytes:
    """A GET of ``target`` at the measurement listener."""
    return http_head.request(target, common.measurement.authority, {"X-Tandem-Session": session.claim(target)})


def read(reader: Reader) -> ConnectionSample | None:
    """The connection now; None when it can no longer be read."""
    try:
        return reader.read()
    except StatisticsError:
        return None


def _answer(connection: Stream, request: bytes, timeout_s: float) -> tuple[bytes, int]:
    """The body of a small answer with status 200, and when its first byte came; LookError."""
    ends_s, arrivals, size = time.monotonic() + timeout_s, list[int](), 0

    def receive() -> bytes:
        nonlocal size
        left_s = ends_s - time.monotonic()
        if left_s <= 0 or size > _LONGEST_ANSWER:
            raise LookError("whoami: no answer in time" if left_s <= 0 else "whoami: an endless answer")
        connection.settimeout(left_s)
        more = connection.recv(_LONGEST_ANSWER)
        arrivals.append(time.monotonic_ns())
        size += len(more)
        return more

    try:
        connection.sendall(request)
        head, raw = http_head.read(receive)
        whole = head.size + (head.length or 0)
        while len(raw) < whole:
            more = receive()
            if not more:
                raise LookError("whoami: closed before the answer was whole")
            raw += more
    except (OSError, http_head.HeadError) as error:
        raise LookError(f"whoami: {describe(error)}") from error
    if head.status != 200:
        raise LookError(f"whoami: HTTP {head.status}")
    return raw[head.size : whole], arrivals[0]


@dataclass(slots=True)
class Watched:
    """What was seen of the subflow from ``addresses``, a path's, while a connection lived."""

    addresses: list[str]
    seen: bool = False
    repeated: bool = False
    established: bool = False
    alive: bool = False
    bytes_received: int = 0

    def look(self, subflows: tuple[SubflowSample, ...]) -> None:
        """Take one sample's subflows in."""
        own = [s for s in subflows if s.local is not None and s.local.host in self.addresses]
        self.alive = any(s.alive for s in own)
        for s in own:
            self.seen = True
            self.repeated = self.repeated or (s.tcp.state == abi.SYN_SENT and s.tcp.retransmits > 0)
            self.established = self.established or s.established
            self.bytes_received = max(self.bytes_received, s.tcp.bytes_received or 0)


@dataclass(slots=True)
class Payload:
    """What came of a download: ``received`` bytes of the body; the connection's last sample with living subflows."""

    received: int = 0
    last: ConnectionSample | None = None
    error: str | None = None


def download(
    made: sockets.Connected,
    request: bytes,
    expected: int,
    wait_s: float,
    stall_s: float,
    watched: Watched,
    over: Callable[[], bool],
) -> Payload:
    """Send the first line of ``request``, wait up to ``wait_s`` until ``watched`` has joined, then send the rest and read ``expected``
    bytes, watching all the while.

    The kernel lets subflows join once data were acknowledged, and a short download is over before that.
    """
    connection, payload, reader = made.stream, Payload(), Reader(made.socket)

    def look() -> None:
        sample = read(reader)
        if sample is not None:
            payload.last = sample
            watched.look(sample.subflows)

    first, rest = request.split(b"\r\n", 1)
    raw, head = b"", None
    try:
        connection.settimeout(stall_s)
        connection.sendall(first + b"\r\n")
        ends_s = time.monotonic() + wait_s
        while time.monotonic() < ends_s and not over():
            look()
            if watched.established or (payload.last is not None and payload.last.fallback):
                break
            time.sleep(_LOOK_S)
        connection.sendall(rest)
        connection.settimeout(_LOOK_S)
        heard_s = time.monotonic()
        while payload.received < expected and not over():
            look()
            try:
                more = connection.recv(65536)
            except TimeoutError:
                if time.monotonic() - heard_s > stall_s:
                    payload.error = f"stalled: no byte for {stall_s:g} s"
                    break
                continue
            heard_s = time.monotonic()
            if not more:
                payload.error = f"closed after {payload.received} of {expected} bytes"
                break
            if head is None:
                raw += more
                head = http_head.parse(raw)
                more = b"" if head is None else raw[head.size :]
                if head is not None and head.status != 200:
                    payload.error = f"HTTP {head.status}"
                    break
            payload.received += len(more)
        look()
    except (OSError, http_head.HeadError) as error:
        payload.error = describe(error)
    return payload
