"""One measured connection: its session, its transfer in one direction, both ends' figures of it, and its part of a result. With TLS where
the listener's URL says https (``connect``, the same for every experiment).

An experiment of several phases measures many; each has a session of its own, so that what the server says at its end belongs to
this connection without doubt, and carries this connection's kind and path.
"""

from __future__ import annotations

import functools
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import urlencode

from tandem.experiment import base, http_head
from tandem.experiment.base import STOPPED, Output, Stop, StoppedError
from tandem.experiment.common_parameters import CommonParameters, ProbePath
from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.sampler import PathNames, Sampler, as_json
from tandem.experiment.socket_options import SocketOptions
from tandem.experiment.transfer import Transfer
from tandem.experiment.upload import Upload, seconds
from tandem.mptcp import kernels, sockets
from tandem.mptcp.series import Series, shares
from tandem.mptcp.statistics import Reader, StatisticsError
from tandem.mptcp_abi.controllers import described
from tandem.schema.manifest import Failure
from tandem.stream import TlsStream
from tandem.stream.tls import strict


def connect(
    asked: CommonParameters,
    kind: sockets.Kind,
    path: ProbePath,
    timeout_s: float,
    options: sockets.Options = sockets.DEFAULT_OPTIONS,
) -> sockets.Connected:
    """Resolve, connect over ``path`` within ``timeout_s``, and within as long again shake hands by TLS. OSError as connect(2) and the TLS
    library raise it (ssl.SSLCertVerificationError: another server than ``ca_file`` knows); see ``sockets.connect``.
    UnsupportedError also where the two ends speak different versions of Multipath TCP."""
    server = asked.measurement
    if kind == "mptcp":
        same_version()
    address = sockets.resolve(server.host, server.port, path.interface)
    connected = sockets.connect(kind, address, path.source, timeout_s, options)
    if server.scheme != "https":
        return connected
    try:
        stream = TlsStream(connected.socket, _context(asked.ca_file), server_hostname=server.host)
        return replace(connected, tls=stream, tls_ms=stream.handshake(timeout_s))
    except BaseException:
        connected.socket.close()
        raise


def same_version() -> None:
    """UnsupportedError when the server said that it speaks another version of Multipath TCP: every connection would fall back, and the
    figures would be plain TCP's."""
    kernel, there = kernels.here(), base.server_environment.get("mptcp_protocol")
    if there is not None and there != str(kernel.protocol):
        raise sockets.UnsupportedError(
            f"the server speaks version {there} of Multipath TCP, this probe version {kernel.protocol} ({kernel.name} kernel); hint: the "
            "same kind of kernel for both (role mptcp), or TCP"
        )


@functools.cache
def _context(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.3 alone is spoken at the other end. An older one is offered too: the hello is longer by that, and the other end wants no
    short ones."""
    return strict(ssl.create_default_context(cafile=ca_file))


Direction = Literal["download", "upload"]
_FAREWELL_TIMEOUT_S = 2.0
"""For closing a session when told to stop: who stops us waits."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same for all connections of a run. ``sample_hz`` None: one sample, at the end: a thread that reads the kernel's
    statistics meanwhile would disturb the timing of a short transfer. ``read_pause_s``: see ``transfer``."""

    asked: CommonParameters
    direction: Direction
    connect_timeout_s: float
    stall_s: float
    sample_hz: float | None
    read_pause_s: float
    options: SocketOptions


@dataclass(frozen=True, slots=True)
class ConnectionRequest:
    """One connection to be measured: ``path`` is MPTCP's primary, TCP's only one; exactly one of ``bytes`` and ``seconds``."""

    kind: sockets.Kind
    path: ProbePath
    bytes: int | None = None
    seconds: float | None = None


class MeasuredConnection:
    """One measured connection: ``open``, ``connect``, ``transfer``, ``close``, in this order; each does nothing once it failed."""

    def __init__(self, terms: Terms, wanted: ConnectionRequest) -> None:
        paths = terms.asked.paths
        self.terms, self.wanted = terms, wanted
        self._asked = replace(terms.asked, paths=(wanted.path, *(p for p in paths if p != wanted.path)))
        self._control: Control | None = None
        self._session: Session | None = None
        self.connected: sockets.Connected | None = None
        """None until ``connect`` succeeded."""
        self.down, self.up = Transfer(), Upload()
        self.series = Series(PathNames(paths).of, "sender" if terms.direction == "upload" else "receiver")
        self.own_control: str | None = None
        self.own_buffer_bytes: int | None = None
        """This end's: of an upload the send buffer, of a download the receive buffer, as the kernel counts."""
        self.failure: Failure | None = None
        self.sender: dict[str, Any] | None = None

    def open(self, addresses: Mapping[str, str], stop: Stop) -> None:
        """Open the session, over this connection's path first, which also wakes a modem. Main thread only."""
        wanted: dict[str, Any] = {"bytes": self.wanted.bytes, "seconds": self.wanted.seconds}
        wanted |= self.terms.options.there(sends=self.terms.direction == "download")
        try:
            self._control = Control(self._asked)
            with stop.interruptible():
                self._session = self._control.open(self.wanted.kind, dict(addresses), **wanted)
        except ControlError as error:
            self.failure = error.failure
        except StoppedError:
            self.failure = STOPPED

    def connect(self, stop: Stop) -> None:
        """Connect. Main thread only. sockets.UnsupportedError when this machine lacks what it takes."""
        if self.failure is not None:
            return
        multipath = self.wanted.kind == "mptcp"
        lone6 = multipath and any(sockets.only6(p.interface) for p in self._asked.paths)
        sends = self.terms.direction == "upload"
        options = self.terms.options.here(sends=sends, both_families=lone6 and sockets.multipath6())
        try:
            with stop.interruptible():
                self.connected = connect(
                    self._asked, self.wanted.kind, self.wanted.path, self.terms.connect_timeout_s, options
                )
            connection = self.connected.socket
            self.own_control = sockets.congestion_control(connection)
            kind = socket.SO_SNDBUF if sends else socket.SO_RCVBUF
            self.own_buffer_bytes = connection.getsockopt(socket.SOL_SOCKET, kind)
        except OSError as error:
            self.failure = Failure(reason=f"connect: {describe(error)}", retry=True)
        except StoppedError:
            self.failure = STOPPED

    def transfer(self, deadline_ns: int, stop: Stop, output: Output, labels: Mapping[str, Any]) -> None:
        """Move the bytes, with ``sample`` lines whose ``connection`` says ``labels``. From any thread."""
        if self.connected is None or self.failure is not None:
            return
        expected = len(self._asked.paths) if self.wanted.kind == "mptcp" else 1
        hertz, connection = self.terms.sample_hz, self.connected.socket
        sampler = None
        if hertz is not None:
            sampler = Sampler(connection, self.series, lambda: self.payload_bytes, output, hertz, expected, labels)
            sampler.start()
        try:
            self.failure = self._move(deadline_ns, stop)
        finally:
            if sampler is not None:
                sampler.stop()
            else:
                self._sample(output, labels)

    @property
    def payload_bytes(self) -> int:
        """Payload so far: received, or acknowledged. May be read by another thread."""
        return self.up.acked if self.terms.direction == "upload" else self.down.received

    def _move(self, deadline_ns: int, stop: Stop) -> Failure | None:
        if self.connected is None:
            return self.failure
        connection, wanted, terms = self.connected.stream, self.wanted, self.terms
        head = self._head()
        if terms.direction == "upload":
            return self.up.run(connection, head, wanted.bytes, wanted.seconds, terms.stall_s, deadline_ns, stop)
        return self.down.run(
            connection, head, wanted.bytes, wanted.seconds, terms.stall_s, terms.read_pause_s, deadline_ns, stop
        )

    def _head(self) -> bytes:
        upload = self.terms.direction == "upload"
        headers = {}
        query = (
            {"bytes": self.wanted.bytes} if self.wanted.seconds is None else {"seconds": f"{self.wanted.seconds:.3f}"}
        )
        if not upload:
            headers["Accept-Encoding"] = "identity"
        elif self.wanted.bytes is not None:
            headers["Content-Length"] = str(self.wanted.bytes)
        target, method = f"/v1/{self.terms.direction}?{urlencode(query)}", "POST" if upload else "GET"
        headers["X-Tandem-Session"] = "" if self._session is None else self._session.claim(target, method)
        return http_head.request(target, self._asked.measurement.authority, headers, method)

    def _sample(self, output: Output, labels: Mapping[str, Any]) -> None:
        if self.connected is None:
            return
        try:
            sample = Reader(self.connected.socket).read()
        except StatisticsError:
            return  # after a reset the kernel has forgotten the connection; the failure says it
        output.line("sample", **as_json(self.series.add(sample, self.payload_bytes), labels))

    def close(self, stop: Stop) -> None:
        """Close the connection, then the session, whose answer is the server's side. Main thread only."""
        if self.connected is not None:
            self.connected.socket.close()
        if self._control is not None and self._session is not None:
            patience_s = _FAREWELL_TIMEOUT_S if stop.requested else self._asked.control_timeout_s
            answer = self._control.close(self._session, patience_s)
            connections = answer.get("connections") if answer is not None else None
            if isinstance(connections, list) and len(connections) == 1 and isinstance(connections[0], dict):
                self.sender = connections[0]
            self._session = None

    # What came of it.

    @property
    def connect_ms(self) -> float | None:
        """How long connect(2) took, which belongs to no delay."""
        return None if self.connected is None else self.connected.connect_ms

    @property
    def agent_s(self) -> float | None:
        """At this end, of so many bytes: of an upload, from the first bit written to the acknowledgement of the last; of a download,
        from the first bit of the request to the last byte received. None when it did not come to its end."""
        if self.failure is not None:
            return None
        if self.terms.direction == "upload":
            return _between(self.up.begun_ns, self.up.acked_ns)
        return _between(self.down.requested_ns, self.down.last_byte_ns)

    @property
    def server_s(self) -> float | None:
        """At the server: of a download, from the arrival of the request to the acknowledgement of the last byte; of an upload, from
        its first byte to its last. None when it does not tell."""
        if self.failure is not None:
            return None
        if self.terms.direction == "upload":
            return self.up.receiver_s
        return None if self.sender is None else seconds(self.sender.get("request_to_last_ack_s"))

    @property
    def resolution_s(self) -> tuple[float | None, float | None]:
        """Of the two ends' times: between the last two looks at what was not acknowledged. A time that ends with a byte has none."""
        if self.terms.direction == "upload":
            return self.up.resolution_s, None
        return None, None if self.sender is None else seconds(self.sender.get("last_ack_resolution_s"))

    @property
    def moved(self) -> tuple[int, float] | None:
        """Payload bytes and seconds of a timed transfer, which ends by this end's clock: of a download from its first byte on, what
        was received; of an upload from its first bit on, what was acknowledged. None when it failed."""
        seconds = self.wanted.seconds
        if self.failure is not None or seconds is None:
            return None
        if self.terms.direction == "upload":
            return None if self.up.acked_in_time is None else (self.up.acked_in_time, seconds)
        lasted = _between(self.down.first_byte_ns, self.down.over_ns)
        return None if not lasted else (self.down.received, lasted)

    @property
    def lasted_s(self) -> float:
        """From the request's first bit to the end of the transfer, or to what came of it; 0 before anything moved."""
        if self.terms.direction == "upload":
            return _between(self.up.begun_ns, self.up.acked_ns or self.up.over_ns) or 0.0
        return _between(self.down.requested_ns, self.down.over_ns or self.down.last_byte_ns) or 0.0

    @property
    def token(self) -> str | None:
        """By which this end's kernel knows a Multipath TCP connection, in hexadecimal; None of TCP, and where it was never read."""
        return None if self.series.token is None else f"{self.series.token:08x}"

    @property
    def by_path(self) -> dict[str, int]:
        """What TCP carried over each path: received, or acknowledged; subflows on no known path are left out."""
        carried: dict[str, int] = {}
        for total in self.series.totals.values():
            if total.name.path is not None:
                carried[total.name.path] = carried.get(total.name.path, 0) + total.bytes
        return carried


def deadline_after(seconds: float, whole_ns: int) -> int:
    """CLOCK_MONOTONIC ns: so long from now, and never after the whole run's deadline."""
    return min(whole_ns, time.monotonic_ns() + int(seconds * 1e9))


def _between(begun_ns: int | None, ended_ns: int | None) -> float | None:
    return None if begun_ns is None or ended_ns is None else (ended_ns - begun_ns) / 1e9


def report(connection: MeasuredConnection) -> dict[str, Any]:
    """For the result, once the connection is closed."""
    totals = connection.series.ordered()
    return {
        "kind": connection.wanted.kind,
        "path": connection.wanted.path.name,
        "connect_ms": connection.connect_ms,
        "tls_ms": None if connection.connected is None else connection.connected.tls_ms,
        "bytes": connection.payload_bytes,
        "fallback": connection.wanted.kind == "mptcp" and connection.series.fallback,
        "congestion_control": _congestion_control(connection),
        "controller": _controller(connection),
        **_buffer_bytes(connection),
        "subflows": [
            {
                "subflow": t.subflow,
                "path": t.name.path,
                "bytes": t.bytes,
                "share": share,
                "rtt_ms_median": t.rtt_ms_median,
                "join_delay_ms": _join_ms(connection, t.established_ns) if index else None,
            }
            for index, (t, share) in enumerate(zip(totals, shares(totals), strict=True))
        ],
        "failure": connection.failure,
    }


def _congestion_control(connection: MeasuredConnection) -> str | None:
    """The sender's, at whichever end that is."""
    if connection.terms.direction == "upload":
        return connection.own_control
    found = None if connection.sender is None else connection.sender.get("congestion_control")
    return found if isinstance(found, str) else None


def _controller(connection: MeasuredConnection) -> dict[str, Any] | None:
    """What the sender's is: name, kind, object (``mptcp_abi.controllers``)."""
    if connection.terms.direction == "upload":
        return described(connection.own_control)
    found = None if connection.sender is None else connection.sender.get("controller")
    return found if isinstance(found, dict) else None


def _buffer_bytes(connection: MeasuredConnection) -> dict[str, int | None]:
    """As the kernels count (twice what was requested): this end's when it had connected, the endpoint's when the session ended."""
    near, far = "receive_buffer_bytes", "send_buffer_bytes"
    if connection.terms.direction == "upload":
        near, far = far, near
    found = None if connection.sender is None else connection.sender.get(far)
    return {near: connection.own_buffer_bytes, far: found if isinstance(found, int) else None}


def _join_ms(connection: MeasuredConnection, established_ns: int | None) -> float | None:
    if established_ns is None or connection.connected is None or connection.terms.sample_hz is None:
        return None  # seen once, at the end: when it joined was not watched
    return max(0.0, (established_ns - connection.connected.connected_monotonic_ns) / 1e6)
