"""Between the browser and the endpoint: a SOCKS5 proxy (RFC 1928) on loopback (``Relay``), and the measured connections of one load
(``Carrier``): each of the browser's connections becomes one, over the primary path. What goes through is not looked at.

The browser hears that it is connected when the measured connection is, so that it waits as it would without the relay. Hosts that the page
does not have are refused here: a browser's own errands must not cross the measured path.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tandem.experiment import http_head
from tandem.experiment.control import Session, describe
from tandem.experiment.measured_connection import PathNames, both_families, connect
from tandem.experiment.parameters import ConnectionParameters
from tandem.experiment.results import environment
from tandem.mptcp import sockets
from tandem.mptcp.statistics import Series, SubflowTotal
from tandem.mptcp_abi.reader import Reader, StatisticsError
from tandem.schema.url import Origin


@dataclass(slots=True)
class Carried:
    """One measured connection. ``received``: bytes of the page's origins over it, heads and TLS included."""

    connected: sockets.Connected
    reader: Reader
    series: Series
    received: int = 0
    over: bool = False


class Carrier:
    """Opens and watches connections, from any thread, each with the session and the page named at its beginning. ``refused``: why
    connections were refused or broke, in the order it happened. ``unsupported``: what this machine cannot do at all."""

    def __init__(self, request: ConnectionParameters, session: Session, page: str) -> None:
        self._request, self._session, self._page = request, session, page
        self._names = PathNames(request.paths)
        both = both_families(request.kind, request.paths)
        self._options = request.options.here(sends=False, both_families=both)
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._address: tuple[str, int] | None = None
        self._thread = threading.Thread(target=self._watch, name="carrier", daemon=True)
        self.carried: list[Carried] = []
        self.refused: list[str] = []
        self.unsupported: sockets.UnsupportedError | None = None
        self._thread.start()

    def open(self, patience_s: float) -> Carried | None:
        """A connection to the endpoint, the page requested; None when it failed, and ``refused`` says why."""
        r = self._request
        try:
            if self._address is None:
                self._address = sockets.resolve(r.measurement.host, r.measurement.port, r.primary.interface)
            timeout_s = min(r.connect_timeout_s, max(0.1, patience_s))
            connected = connect(r, r.kind, r.primary, timeout_s, self._options, self._address)
        except sockets.UnsupportedError as error:
            self.unsupported = error
            return None
        except OSError as error:
            self.note(f"connect: {describe(error)}")
            return None
        made = connected.socket
        # A request must not wait for the acknowledgement of the one before it; browsers say the same.
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        target = f"/v1/page/{self._page}"
        headers = {"X-Tandem-Session": self._session.claim(target), "Connection": "Upgrade", "Upgrade": "tandem-page"}
        carried = Carried(connected, Reader(made), Series(self._names.of))
        try:
            made.sendall(http_head.request(target, r.measurement.authority, headers, close=False))
        except OSError as error:
            self.note(describe(error))
            made.close()
            return None
        with self._lock:
            self.carried.append(carried)
        return carried

    def note(self, reason: str) -> None:
        with self._lock:
            if len(self.refused) < 100:
                self.refused.append(reason[:200])

    def finish(self, carried: Carried) -> None:
        """Read its figures a last time and close it. Once more does nothing."""
        with self._lock:
            if not carried.over:
                self._sample(carried)
                carried.over = True
                carried.connected.socket.close()

    def sample(self) -> None:
        with self._lock:
            for carried in self.carried:
                if not carried.over:
                    self._sample(carried)

    def close(self) -> None:
        """No more readings; what is still open is closed."""
        self._done.set()
        self._thread.join()
        for carried in tuple(self.carried):
            self.finish(carried)

    def _watch(self) -> None:
        while not self._done.wait(1 / self._request.sample_hz):
            self.sample()

    @staticmethod
    def _sample(carried: Carried) -> None:
        # After a reset the kernel has forgotten the connection; the totals keep what was last seen.
        with contextlib.suppress(StatisticsError):
            carried.series.add(carried.reader.read(), carried.received)

    def environment(self) -> dict[str, Any]:
        """The machine now, and what the kernel says of a connection that is open."""
        with self._lock:
            made = next((c.connected.socket for c in reversed(self.carried) if not c.over), None)
            return environment(self._request, made)

    def totals(self) -> list[SubflowTotal]:
        return [total for c in self.carried for total in c.series.totals.values()]


_CHUNK_BYTES = 1 << 18
_GREETING_S = 10.0
_JOIN_S = 2.0
_DONE, _REFUSED, _UNREACHABLE = 0, 2, 4
_SWITCHED = 101


class Relay:
    """Listens on ``port`` until it is closed. ``origins``: where connections may go. ``until_s``: no connect lasts longer.
    ``elsewhere``: connections that were refused."""

    def __init__(self, carrier: Carrier, origins: frozenset[Origin], until_s: float) -> None:
        self._carrier, self._until_s = carrier, until_s
        self._allowed = {(origin.host, origin.port) for origin in origins}
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self.elsewhere = 0
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._closing = False
        self._thread = threading.Thread(target=self._accept, name="relay", daemon=True)
        self._thread.start()

    def close(self) -> None:
        with self._lock:
            self._closing = True
            ends = tuple(self._open)
        for end in (self._listener, *ends):
            with contextlib.suppress(OSError):  # not connected any more
                end.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        until = time.monotonic() + _JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    def _accept(self) -> None:
        while True:
            try:
                browser, _ = self._listener.accept()
            except OSError:
                return  # closed
            thread = threading.Thread(target=self._serve, args=(browser,), name="relayed", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, browser: socket.socket) -> None:
        with browser:
            if not self._enter(browser):
                return
            carried: Carried | None = None
            try:
                browser.settimeout(_GREETING_S)
                browser.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                host, port = greeted(browser)
                if (host, port) not in self._allowed:
                    self.elsewhere += 1
                    browser.sendall(_answer(_REFUSED))
                    return
                carried = self._carrier.open(self._until_s - time.monotonic())
                browser.sendall(_answer(_UNREACHABLE if carried is None else _DONE))
                if carried is not None and self._enter(carried.connected.socket):
                    self._pump(browser, carried)
            except (OSError, SocksError):
                pass  # the browser closed it; what the measured side did is noted where it happens
            finally:
                if carried is not None:
                    self._leave(carried.connected.socket)
                    self._carrier.finish(carried)
                self._leave(browser)

    def _enter(self, end: socket.socket) -> bool:
        with self._lock:
            if not self._closing:
                self._open.add(end)
            return not self._closing

    def _leave(self, end: socket.socket) -> None:
        with self._lock:
            self._open.discard(end)

    def _pump(self, browser: socket.socket, carried: Carried) -> None:
        """Until either side has ended. Neither direction waits for the other."""
        measured = carried.connected.socket
        buffer = memoryview(bytearray(_CHUNK_BYTES))
        up, down = memoryview(b""), memoryview(b"")  # taken from one side, not yet by the other
        head: bytes | None = b""
        browser.setblocking(False)
        measured.setblocking(False)
        poll = select.poll()
        while True:
            poll.register(browser, (select.POLLOUT if down else 0) | (0 if up else select.POLLIN))
            poll.register(measured, (select.POLLOUT if up else 0) | (0 if down else select.POLLIN))
            ready = dict(poll.poll())
            if not up and browser.fileno() in ready:
                count = _taken(browser, buffer)
                if count == 0:
                    return
                up = memoryview(bytes(buffer[: count or 0]))
            if up:
                with self._noted():
                    up = up[_sent(measured, up) :]
            if not down and measured.fileno() in ready:
                with self._noted():
                    count = _taken(measured, buffer)
                if count == 0:
                    if head is not None:
                        self._carrier.note("closed before any answer")
                    return
                down = memoryview(bytes(buffer[: count or 0]))
                if head is not None:
                    head += down
                    rest = self._switched(head)
                    head, down = (None, memoryview(rest)) if rest is not None else (head, memoryview(b""))
                carried.received += len(down)
            if down:
                down = down[_sent(browser, down) :]

    @contextlib.contextmanager
    def _noted(self) -> Iterator[None]:
        """Why the measured side broke is noted, unless it is this end that closes."""
        try:
            yield
        except OSError as error:
            if not self._closing:
                self._carrier.note(f"a connection broke: {error.strerror}")
            raise

    def _switched(self, begun: bytes) -> bytes | None:
        """What followed the endpoint's 101; None while that is incomplete. SocksError when it refuses."""
        try:
            head = http_head.parse(begun)
        except http_head.HeadError as error:
            self._carrier.note(str(error))
            raise SocksError(str(error)) from error
        if head is None:
            return None
        if head.status != _SWITCHED:
            self._carrier.note(http_head.refusal(head.status, begun[head.size :]))
            raise SocksError(f"HTTP {head.status}")
        return begun[head.size :]


def _taken(end: socket.socket, buffer: memoryview) -> int | None:
    """Bytes read; 0 at the end, None when there were none yet."""
    try:
        return end.recv_into(buffer)
    except BlockingIOError:
        return None


def _sent(end: socket.socket, content: memoryview) -> int:
    try:
        return end.send(content)
    except BlockingIOError:
        return 0


class SocksError(Exception):
    """The other end does not speak SOCKS5, or the endpoint refused."""


def greeted(browser: socket.socket) -> tuple[str, int]:
    """Host and port that a SOCKS5 client asks to be connected to. SocksError, OSError."""
    version, count = _exactly(browser, 2)
    if version != 5 or 0 not in _exactly(browser, count):
        raise SocksError("no SOCKS5 without authentication")
    browser.sendall(b"\x05\x00")
    version, command, _, kind = _exactly(browser, 4)
    if (version, command) != (5, 1):
        raise SocksError("no CONNECT")
    if kind == 1:
        host = socket.inet_ntop(socket.AF_INET, _exactly(browser, 4))
    elif kind == 4:
        host = socket.inet_ntop(socket.AF_INET6, _exactly(browser, 16))
    elif kind == 3:
        host = _exactly(browser, _exactly(browser, 1)[0]).decode("ascii", "replace").lower()
    else:
        raise SocksError("an address of no kind")
    return host, struct.unpack(">H", _exactly(browser, 2))[0]


def asking(host: str, port: int) -> bytes:
    name = host.encode("ascii")
    return b"\x05\x01\x00" + b"\x05\x01\x00\x03" + bytes([len(name)]) + name + struct.pack(">H", port)


def connected(client: socket.socket) -> bool:
    """Take the answers to ``asking``; whether the connection is there. SocksError, OSError."""
    if _exactly(client, 2) != b"\x05\x00":
        raise SocksError("the relay wants another SOCKS")
    return _exactly(client, 10)[1] == _DONE


def _answer(status: int) -> bytes:
    return bytes([5, status, 0, 1]) + bytes(6)


def _exactly(end: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count:
        more = end.recv(count - len(got))
        if not more:
            raise SocksError("closed within the greeting")
        got += more
    return got
