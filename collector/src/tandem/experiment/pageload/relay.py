"""A SOCKS5 proxy (RFC 1928) on loopback, between the browser and the endpoint: each of the browser's connections becomes one measured
connection of ours (``carrier.py``). What goes through is not looked at.

The browser hears that it is connected when the measured connection is, so that it waits as it would without the relay. Hosts that the page
does not have are refused here: a browser's own errands must not cross the measured path.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading

from tandem.experiment import http_head
from tandem.experiment.pageload.carrier import Carried, Carrier, now_s
from tandem.experiment.pageload.page import Origin

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
        """End everything; nothing more is received."""
        with self._lock:
            self._closing = True
            ends = tuple(self._open)
        for end in (self._listener, *ends):
            with contextlib.suppress(OSError):  # not connected any more
                end.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        until = now_s() + _JOIN_S
        for thread in self._threads:
            thread.join(max(0.0, until - now_s()))

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
                carried = self._carrier.open(self._until_s - now_s())
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
                up = up[self._given(measured, up) :]
            if not down and measured.fileno() in ready:
                count = self._heard(measured, buffer)
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

    def _heard(self, measured: socket.socket, buffer: memoryview) -> int | None:
        try:
            return _taken(measured, buffer)
        except OSError as error:
            self._broke(error)
            raise

    def _given(self, measured: socket.socket, content: memoryview) -> int:
        try:
            return _sent(measured, content)
        except OSError as error:
            self._broke(error)
            raise

    def _broke(self, error: OSError) -> None:
        if not self._closing:
            self._carrier.note(f"a connection broke: {error.strerror}")

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
            detail = " ".join(begun[head.size : head.size + 120].decode("ascii", "replace").split())
            self._carrier.note(f"HTTP {head.status} {detail}".strip())
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
    """A client's greeting and request in one."""
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
