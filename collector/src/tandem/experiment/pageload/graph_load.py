"""One load without a browser: the stored page's objects, each asked for as soon as the object that made it be asked for has come, over as
many kept connections as browsers have (six an origin, 32 in all). Nothing is parsed, run or painted: what it takes is the *object load
time*.

It goes through the relay, as the browser does, and so pays the same for it.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable

from tandem.experiment import http_head
from tandem.experiment.control import describe
from tandem.experiment.pageload.carrier import Load, now_s
from tandem.experiment.pageload.page import Origin, StoredPage
from tandem.experiment.pageload.relay import SocksError, asking, connected

PER_ORIGIN = 6
IN_ALL = 32
_CHUNK_BYTES = 1 << 17
_WAKE_S = 0.1
_BODILESS = (204, 205, 304)
_MISS = b"\r\nx-tandem-page:"


class GraphLoad:
    """One load of ``page`` through the relay at ``port``, by ``until_s``."""

    def __init__(self, page: StoredPage, port: int, until_s: float, stop: Callable[[], bool]) -> None:
        self._page, self._port, self._until_s, self._stop = page, port, until_s, stop
        self._tls = _context(page)
        self._changed = threading.Condition()
        self._children: dict[int | None, list[int]] = {}
        for number, one in enumerate(page.objects):
            if not one.after_load:
                # what nobody is known to have asked for, the document did
                by = None if number == 0 else one.by if one.by is not None else 0
                self._children.setdefault(by, []).append(number)
        self._queues: dict[Origin, deque[int]] = {}
        self._workers: dict[Origin, int] = {}
        self._left = 0
        self._over = False
        self.found = Load(page.name, "graph")

    def run(self) -> Load:
        """Load it; never raises for what the network does."""
        begun = now_s()
        self._root_failed: str | None = None
        self._last_s = begun
        with self._changed:
            self._ready(self._children.get(None, []))
            while self._left and not self._stop() and now_s() < self._until_s:
                self._changed.wait(min(_WAKE_S, max(0.0, self._until_s - now_s())))
            self._over = True
            self._changed.notify_all()
            if self._root_failed is not None:
                self.found.failure = self._root_failed
            elif self._left:
                self.found.failure = "not all objects in time"
            else:
                self.found.load_ms = round((self._last_s - begun) * 1000, 3)
        return self.found

    def _ready(self, numbers: list[int]) -> None:
        """Queue ``numbers`` and see that somebody takes them. With the lock."""
        for number in numbers:
            origin = self._page.objects[number].origin
            self._left += 1
            queue = self._queues.setdefault(origin, deque())
            queue.append(number)
            self._hire(origin)
        self._changed.notify_all()

    def _hire(self, origin: Origin) -> None:
        busy = self._workers.get(origin, 0)
        if busy < PER_ORIGIN and sum(self._workers.values()) < IN_ALL:
            self._workers[origin] = busy + 1
            threading.Thread(target=self._work, args=(origin,), name="fetcher", daemon=True).start()

    def _work(self, origin: Origin) -> None:
        connection: socket.socket | None = None
        try:
            while (number := self._next(origin)) is not None:
                try:
                    if connection is None:
                        connection = self._connect(origin)
                    kept = self._fetch(connection, number)
                except (OSError, SocksError, http_head.HeadError) as error:
                    reason = describe(error)
                    kept = False
                    self._done(number, reason)
                if not kept and connection is not None:
                    connection.close()
                    connection = None
        finally:
            if connection is not None:
                connection.close()

    def _next(self, origin: Origin) -> int | None:
        """The next object of ``origin``; None when the worker is to go. Idle connections wait, as browsers keep them."""
        with self._changed:
            while not self._over:
                queue = self._queues[origin]
                if queue:
                    return queue.popleft()
                waiting = [o for o, q in self._queues.items() if q and self._workers.get(o, 0) < PER_ORIGIN]
                if waiting and sum(self._workers.values()) >= IN_ALL:
                    # Another origin waits for one of the 32: an idle one gives way.
                    self._workers[origin] -= 1
                    self._hire(waiting[0])
                    return None
                self._changed.wait(_WAKE_S)
            self._workers[origin] -= 1
            return None

    def _connect(self, origin: Origin) -> socket.socket:
        made = socket.create_connection(("127.0.0.1", self._port), self._patience())
        try:
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.sendall(asking(origin.host, origin.port))
            made.settimeout(self._patience())
            if not connected(made):
                raise SocksError("not connected")
            if origin.scheme == "https" and self._tls is not None:
                made.settimeout(self._patience())
                return self._tls.wrap_socket(made, server_hostname=origin.host)
        except BaseException:
            made.close()
            raise
        return made

    def _fetch(self, connection: socket.socket, number: int) -> bool:
        """One object; whether the connection can be used again. OSError, HeadError."""
        one = self._page.objects[number]
        body = "Content-Length: 0\r\n" if one.method not in ("GET", "HEAD", "OPTIONS") else ""
        lines = f"{one.method} {one.target} HTTP/1.1\r\nHost: {one.origin.authority}\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n{body}\r\n"
        connection.settimeout(self._patience())
        connection.sendall(lines.encode("ascii"))
        start = b""
        head = None
        while head is None:
            more = self._receive(connection)
            if not more:
                raise ConnectionResetError("closed before the answer")
            start += more
            head = http_head.parse(start)
        received = len(start) - head.size
        bodiless = head.status in _BODILESS or one.method == "HEAD"
        length = 0 if bodiless else head.length
        while length is None or received < length:
            more = self._receive(connection)
            if not more:
                break
            received += len(more)
        if length is not None and received != length:
            raise ConnectionResetError(f"{received} of {length} bytes")
        missed = _MISS in start[: head.size].lower()
        self._done(number, None, missed)
        return length is not None and b"\r\nconnection: close" not in start[: head.size].lower()

    def _receive(self, connection: socket.socket) -> bytes:
        connection.settimeout(self._patience())
        return connection.recv(_CHUNK_BYTES)

    def _done(self, number: int, failure: str | None, missed: bool = False) -> None:
        at = now_s()
        with self._changed:
            self._left -= 1
            if self._over:
                return  # too late to count
            if failure is None:
                self.found.objects += 1
                self.found.missed += missed
                self._last_s = at
                self._ready(self._children.get(number, []))
            else:
                self.found.failed += 1
                if number == 0:
                    self._root_failed = failure
            self._changed.notify_all()

    def _patience(self) -> float:
        return max(0.05, self._until_s - now_s())


def _context(page: StoredPage) -> ssl.SSLContext | None:
    """Trusts the page's own certificate and no other, under every name. ssl.SSLError when it is none."""
    if page.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # one certificate stands for all the page's hosts; it came over the control channel
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=page.certificate)
    return context
