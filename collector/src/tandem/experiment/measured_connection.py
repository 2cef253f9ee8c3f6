"""One measured connection: its session, its transfer in one direction, samples of it by a second thread, both ends' figures of it, and its
part of a result. With TLS where the listener's URL says https (``connect``, the same for every experiment).

An experiment of several phases measures many; each has a session of its own, so that what the server says at its end belongs to
this connection without doubt, and carries this connection's kind and path.
"""

from __future__ import annotations

import functools
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar
from urllib.parse import urlencode

from tandem.experiment import base, http_head
from tandem.experiment.base import STOPPED, Output, Stop, StoppedError
from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.parameters import CommonParameters, ProbePath, SocketOptions
from tandem.experiment.results import carried
from tandem.experiment.transfer import Transfer, Upload, seconds
from tandem.mptcp import kernels, sockets
from tandem.mptcp.statistics import PathName, Series, shares
from tandem.mptcp_abi import SubflowSample, described
from tandem.mptcp_abi.reader import Reader, StatisticsError
from tandem.schema.manifest import Failure
from tandem.stream import TlsStream
from tandem.stream.tls import strict


def connect(
    common: CommonParameters,
    kind: sockets.Kind,
    path: ProbePath,
    timeout_s: float,
    options: sockets.Options = sockets.DEFAULT_OPTIONS,
    address: tuple[str, int] | None = None,
) -> sockets.Connected:
    """Resolve (unless ``address`` is given), connect over ``path`` within ``timeout_s``, and within as long again shake hands by TLS.
    OSError as connect(2) and the TLS library raise it (ssl.SSLCertVerificationError: another server than ``ca_file`` knows); see
    ``sockets.connect``. UnsupportedError also where the two ends speak different versions of Multipath TCP: every connection would fall
    back, and the figures would be plain TCP's."""
    server, kernel = common.measurement, kernels.here()
    there = base.server_environment.get("mptcp_protocol")
    if kind == "mptcp" and there is not None and there != str(kernel.protocol):
        raise sockets.UnsupportedError(
            f"the server speaks version {there} of Multipath TCP, this probe version {kernel.protocol} ({kernel.name} kernel); hint: the "
            "same kind of kernel for both (role mptcp), or TCP"
        )
    place = address or sockets.resolve(server.host, server.port, path.interface)
    connected = sockets.connect(kind, place, path.source, timeout_s, options)
    if server.scheme != "https":
        return connected
    try:
        stream = TlsStream(connected.socket, _context(common.ca_file), server_hostname=server.host)
        return replace(connected, tls=stream, tls_ms=stream.handshake(timeout_s))
    except BaseException:
        connected.socket.close()
        raise


@functools.cache
def _context(ca_file: str | None) -> ssl.SSLContext:
    """TLS 1.3 alone is spoken at the other end. An older one is offered too: the hello is longer by that, and the other end wants no
    short ones."""
    return strict(ssl.create_default_context(cafile=ca_file))


def both_families(kind: sockets.Kind, paths: Sequence[ProbePath], *, wanted: bool = False) -> bool:
    """Whether a connection takes a socket of IPv6 for subflows of both families, also where the primary path has IPv4: where ``wanted`` or
    a path has nothing but IPv6, and the kernel can."""
    return kind == "mptcp" and (wanted or any(sockets.only6(p.interface) for p in paths)) and sockets.multipath6()


class PathNames:
    """The names of ``paths``, which may be given without their addresses."""

    def __init__(self, paths: Sequence[ProbePath]) -> None:
        self._names = [(p, PathName(p.name, p.operator)) for p in paths]
        self._by_address = {p.address: name for p, name in self._names if p.address is not None}

    def of(self, subflow: SubflowSample) -> PathName:
        host = subflow.local.host if subflow.local is not None else None
        if host is None:
            return PathName(None, None)
        if host not in self._by_address:
            # not given, or changed since: a mobile network may give another address at any time
            for path, name in self._names:
                self._by_address |= dict.fromkeys(sockets.interface_addresses(path.interface), name)
        return self._by_address.get(host, PathName(None, None))


JOIN_RESOLUTION_S = 0.005
_JOIN_WATCH_S = 2.0
EMPTY: Mapping[str, Any] = {}


class Sampler:
    """Reads ``connection`` ``hertz`` times a second and writes a ``sample`` line each time.

    In the first two seconds, until ``expected`` subflows are established, it looks every 5 ms, only for joins. ``payload``: how many
    bytes of it passed so far. ``labels``: what else each line's ``connection`` says, where several are measured. ``hertz`` None: the last
    sample alone, and no thread.
    """

    def __init__(
        self,
        connection: socket.socket,
        series: Series,
        payload: Callable[[], int],
        output: Output,
        hertz: float | None,
        expected: int,
        labels: Mapping[str, Any] = EMPTY,
    ) -> None:
        self._reader = Reader(connection)
        self._series, self._payload, self._output = series, payload, output
        self._labels, self._expected = labels, expected
        self._period_s = None if hertz is None else 1 / hertz
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler")
        self.made = self.failed = 0
        self.late_ms_max = 0.0

    def start(self) -> None:
        if self._period_s is not None:
            self._thread.start()

    def stop(self) -> None:
        """End with a last sample. The connection must still be open."""
        self._done.set()
        if self._period_s is not None:
            self._thread.join()
        self._sample()

    def _run(self) -> None:
        period_s = self._period_s or 0.0
        begun = due = time.monotonic()
        self._sample()
        while True:
            due += period_s
            while (
                not self._joined()
                and time.monotonic() - begun < _JOIN_WATCH_S
                and due - time.monotonic() > JOIN_RESOLUTION_S
            ):
                if self._done.wait(JOIN_RESOLUTION_S):
                    return
                self._note()
            if self._done.wait(max(0.0, due - time.monotonic())):
                return
            late = time.monotonic() - due
            self.late_ms_max = max(self.late_ms_max, late * 1000)
            self._sample()
            if late > period_s:
                due = time.monotonic()  # a sleep of the machine is not made up by a burst of samples

    def _joined(self) -> bool:
        return sum(t.established_ns is not None for t in self._series.totals.values()) >= self._expected

    def _note(self) -> None:
        try:
            self._series.note(self._reader.read())
        except StatisticsError:
            self.failed += 1

    def _sample(self) -> None:
        try:
            sample = self._reader.read()
        except StatisticsError:
            # after a reset the kernel has forgotten the connection; the totals keep what was last seen
            self.failed += 1
            return
        self.made += 1
        row = self._series.add(sample, self._payload())
        self._output.line("sample", **{**row, "connection": {**self._labels, **row["connection"]}})


Direction = Literal["download", "upload"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Terms:
    """What is the same for all connections of a run. ``sample_hz`` None: one sample, at the end: a thread that reads the kernel's
    statistics meanwhile would disturb the timing of a short transfer. ``read_pause_s``: between two reads in mid-stream."""

    common: CommonParameters
    direction: Direction
    connect_timeout_s: float
    stall_s: float
    sample_hz: float | None
    read_pause_s: float
    options: SocketOptions


class MeasuredConnection:
    """One measured connection: ``open``, ``connect``, ``transfer``, ``close``, in this order; each does nothing once it failed. ``path`` is
    MPTCP's primary, TCP's only one; exactly one of ``bytes`` and ``seconds`` is set. ``connected``: None until ``connect`` succeeded;
    ``answer``: the server's, when the session ended, None without one."""

    def __init__(
        self, terms: Terms, kind: sockets.Kind, path: ProbePath, size: int | None, seconds: float | None
    ) -> None:
        paths = terms.common.paths
        self.terms, self.kind, self.path, self.bytes, self.seconds = terms, kind, path, size, seconds
        self.paths = (path, *(p for p in paths if p != path))
        self._common = replace(terms.common, paths=self.paths)
        self._uploads = terms.direction == "upload"
        self._control: Control | None = None
        self.session: Session | None = None
        self.connected: sockets.Connected | None = None
        self.down, self.up = Transfer(), Upload()
        self.series = Series(PathNames(paths).of, "sender" if self._uploads else "receiver")
        self.sampler: Sampler | None = None
        self.own_control: str | None = None
        self.own_buffer_bytes: int | None = None
        """This end's: of an upload the send buffer, of a download the receive buffer, as the kernel counts."""
        self.failure: Failure | None = None
        self.answer: dict[str, Any] | None = None

    def open(self, addresses: Mapping[str, str], stop: Stop) -> None:
        """Open the session, over this connection's path first, which also wakes a modem. Main thread only."""
        if self.failure is not None:
            return
        wanted: dict[str, Any] = {"bytes": self.bytes, "seconds": self.seconds}
        wanted |= self.terms.options.there(sends=not self._uploads)
        try:
            self._control = Control(self._common)
            with stop.interruptible():
                self.session = self._control.open(self.kind, dict(addresses), **wanted)
        except ControlError as error:
            self.failure = error.failure
        except StoppedError:
            self.failure = STOPPED

    def connect(self, stop: Stop) -> None:
        """Connect. Main thread only. sockets.UnsupportedError when this machine lacks what it takes."""
        if self.failure is not None:
            return
        try:
            with stop.interruptible():
                self.connected = connect(
                    self._common, self.kind, self.path, self.terms.connect_timeout_s, self.socket_options()
                )
            connection = self.connected.socket
            self.own_control = sockets.congestion_control(connection)
            kind = socket.SO_SNDBUF if self._uploads else socket.SO_RCVBUF
            self.own_buffer_bytes = connection.getsockopt(socket.SOL_SOCKET, kind)
        except OSError as error:
            self.failure = Failure(reason=f"connect: {describe(error)}", retry=True)
        except StoppedError:
            self.failure = STOPPED

    def socket_options(self) -> sockets.Options:
        """Of this end's socket, when the session is open."""
        return self.terms.options.here(sends=self._uploads, both_families=both_families(self.kind, self.paths))

    @property
    def expected_subflows(self) -> int:
        return len(self.paths) if self.kind == "mptcp" else 1

    def transfer(self, deadline_ns: int, stop: Stop, output: Output, labels: Mapping[str, Any] = EMPTY) -> None:
        """Move the bytes, with ``sample`` lines whose ``connection`` says ``labels``. From any thread."""
        if self.connected is None or self.failure is not None:
            return
        hertz, connection = self.terms.sample_hz, self.connected.socket
        self.sampler = Sampler(
            connection, self.series, lambda: self.payload_bytes, output, hertz, self.expected_subflows, labels
        )
        self.sampler.start()
        try:
            self.failure = self.move(self.connected, self._head(), deadline_ns, stop)
        finally:
            self.sampler.stop()

    @property
    def payload_bytes(self) -> int:
        """Payload so far: received, or acknowledged. May be read by another thread."""
        return self.up.acked if self._uploads else self.down.received

    def move(self, connected: sockets.Connected, head: bytes, deadline_ns: int, stop: Stop) -> Failure | None:
        """Send the request ``head`` and move the bytes over ``connected``; None, or why not all of them."""
        connection, terms = connected.stream, self.terms
        if self._uploads:
            return self.up.run(connection, head, self.bytes, self.seconds, terms.stall_s, deadline_ns, stop)
        return self.down.run(
            connection, head, self.bytes, self.seconds, terms.stall_s, terms.read_pause_s, deadline_ns, stop
        )

    def _head(self) -> bytes:
        headers, size, long_s = dict[str, str](), self.bytes, self.seconds
        if not self._uploads:
            headers["Accept-Encoding"] = "identity"
        elif size is not None:
            headers["Content-Length"] = str(size)
        query = urlencode({"bytes": size} if long_s is None else {"seconds": f"{long_s:.3f}"})
        target, method = f"/v1/{self.terms.direction}?{query}", "POST" if self._uploads else "GET"
        headers["X-Tandem-Session"] = "" if self.session is None else self.session.claim(target, method)
        return http_head.request(target, self._common.measurement.authority, headers, method)

    def close(self, stop: Stop) -> None:
        """Close the connection, then the session, whose answer is the server's side. Main thread only."""
        if self.connected is not None:
            self.connected.socket.close()
        if self._control is not None and self.session is not None:
            self.answer = self._control.leave(self.session, stop)
            self.session = None

    # What came of it.

    @property
    def sender(self) -> dict[str, Any] | None:
        """The server's figures of this connection; None when it does not say, or says it of another number of connections."""
        connections = None if self.answer is None else self.answer.get("connections")
        alone = isinstance(connections, list) and len(connections) == 1 and isinstance(connections[0], dict)
        return connections[0] if connections and alone else None

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
        if self._uploads:
            return _between(self.up.begun_ns, self.up.acked_ns)
        return _between(self.down.requested_ns, self.down.last_byte_ns)

    @property
    def server_s(self) -> float | None:
        """At the server: of a download, from the arrival of the request to the acknowledgement of the last byte; of an upload, from
        its first byte to its last. None when it does not say."""
        if self.failure is not None:
            return None
        return self.up.receiver_s if self._uploads else seconds((self.sender or {}).get("request_to_last_ack_s"))

    @property
    def resolution_s(self) -> tuple[float | None, float | None]:
        """Of the two ends' times: between the last two looks at what was not acknowledged. A time that ends with a byte has none."""
        if self._uploads:
            return self.up.resolution_s, None
        return None, seconds((self.sender or {}).get("last_ack_resolution_s"))

    @property
    def moved(self) -> tuple[int, float] | None:
        """Payload bytes and seconds of a timed transfer, which ends by this end's clock: of a download from its first byte on, what
        was received; of an upload from its first bit on, what was acknowledged. None when it failed."""
        if self.failure is not None or self.seconds is None:
            return None
        if self._uploads:
            return None if self.up.acked_in_time is None else (self.up.acked_in_time, self.seconds)
        lasted = _between(self.down.first_byte_ns, self.down.over_ns)
        return None if not lasted else (self.down.received, lasted)

    @property
    def lasted_s(self) -> float:
        """From the request's first bit to the end of the transfer, or to what came of it; 0 before anything moved."""
        if self._uploads:
            return _between(self.up.begun_ns, self.up.acked_ns or self.up.over_ns) or 0.0
        return _between(self.down.requested_ns, self.down.over_ns or self.down.last_byte_ns) or 0.0

    @property
    def token(self) -> str | None:
        """By which this end's kernel knows a Multipath TCP connection, in hexadecimal; None of TCP, and where it was never read."""
        return None if self.series.token is None else f"{self.series.token:08x}"

    @property
    def by_path(self) -> dict[str, int]:
        """What TCP carried over each path: received, or acknowledged; subflows on no known path are left out."""
        return {path: count for path, count in carried(self.series.totals.values()).items() if path is not None}

    def report(self) -> dict[str, Any]:
        """For the result, once the connection is closed. The congestion control is the sender's, at whichever end that is; buffers are as
        the kernels count them (twice what was requested), this end's when it had connected, the endpoint's when the session ended."""
        totals, sender = self.series.ordered(), self.sender or {}
        control, controller = (
            (self.own_control, described(self.own_control))
            if self._uploads
            else (_of(str, sender.get("congestion_control")), _of(dict, sender.get("controller")))
        )
        near, far = "receive_buffer_bytes", "send_buffer_bytes"
        if self._uploads:
            near, far = far, near
        return {
            "kind": self.kind,
            "path": self.path.name,
            "connect_ms": self.connect_ms,
            "tls_ms": None if self.connected is None else self.connected.tls_ms,
            "bytes": self.payload_bytes,
            "fallback": self.kind == "mptcp" and self.series.fallback,
            "congestion_control": control,
            "controller": controller,
            near: self.own_buffer_bytes,
            far: _of(int, sender.get(far)),
            "subflows": [
                {
                    "subflow": t.subflow,
                    "path": t.name.path,
                    "bytes": t.bytes,
                    "share": share,
                    "rtt_ms_median": t.rtt_ms_median,
                    "join_delay_ms": self._join_ms(t.established_ns) if index else None,
                }
                for index, (t, share) in enumerate(zip(totals, shares(totals), strict=True))
            ],
            "failure": self.failure,
        }

    def _join_ms(self, established_ns: int | None) -> float | None:
        if established_ns is None or self.connected is None or self.terms.sample_hz is None:
            return None  # seen once, at the end: when it joined was not watched
        return max(0.0, (established_ns - self.connected.connected_monotonic_ns) / 1e6)


def _of(kind: type[T], value: object) -> T | None:
    return value if isinstance(value, kind) else None


def _between(begun_ns: int | None, ended_ns: int | None) -> float | None:
    return None if begun_ns is None or ended_ns is None else (ended_ns - begun_ns) / 1e9
