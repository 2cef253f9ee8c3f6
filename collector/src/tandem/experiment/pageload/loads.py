"""One load of a stored page, in either of two ways.

By a fresh Chromium: navigate, wait for the load event, read the browser's own times. Or by the page's object graph: each object is
requested as soon as the object that made it be requested has come, over as many kept connections as browsers have (six an origin, 32 in
all); nothing is parsed, run or painted: what it takes is the *object load time*. Both go through the relay, and so pay the same for it.
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from tandem.devtools import Browser, DevTools, DevToolsError, Event, RefusedError, TooLateError
from tandem.experiment import http_head
from tandem.experiment.control import describe, mapping, real
from tandem.experiment.pageload.carrier import SocksError, asking, connected
from tandem.experiment.pageload.page import StoredPage
from tandem.schema.url import Origin


@dataclass(slots=True)
class Load:
    """Times in ms since the load began, None for what was not reached. ``failure``: None when the page was loaded whole as far as it can
    be; objects that failed are no failure of the load, as a browser sees it."""

    page: str
    by: str
    load_ms: float | None = None
    content_loaded_ms: float | None = None
    first_paint_ms: float | None = None
    objects: int = 0
    failed: int = 0
    missed: int = 0
    failure: str | None = None


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
        self._tls = _tls_context(page)
        self._changed = threading.Condition()
        self._children: dict[int | None, list[int]] = {}
        for number, one in enumerate(page.objects):
            if not one.after_load:
                # what nobody is known to have requested, the document did
                by = None if number == 0 else one.by if one.by is not None else 0
                self._children.setdefault(by, []).append(number)
        self._queues: dict[Origin, deque[int]] = {}
        self._workers: dict[Origin, int] = {}
        self._left = 0
        self._over = False
        self.found = Load(page.name, "graph")

    def run(self) -> Load:
        begun = time.monotonic()
        self._root_failed: str | None = None
        self._last_s = begun
        with self._changed:
            self._ready(self._children.get(None, []))
            while self._left and not self._stop() and time.monotonic() < self._until_s:
                self._changed.wait(min(_WAKE_S, max(0.0, self._until_s - time.monotonic())))
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
        head, start = http_head.read(lambda: self._receive(connection))
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
        at = time.monotonic()
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
        return max(0.05, self._until_s - time.monotonic())


def _tls_context(page: StoredPage) -> ssl.SSLContext | None:
    """Trusts the page's own certificate and no other, under every name. ssl.SSLError when it is none."""
    if page.certificate is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # one certificate stands for all the page's hosts; it came over the control channel
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_verify_locations(cadata=page.certificate)
    return context


_READ_S = 5.0
_READ = """new Promise(done => { const look = () => {
 const n = performance.getEntriesByType('navigation')[0], p = performance.getEntriesByName('first-contentful-paint')[0];
 if (!n || !(n.loadEventEnd > 0) || (!p && performance.now() < n.loadEventEnd + 500)) { setTimeout(look, 10); return; }
 done(JSON.stringify({load: n.loadEventEnd, content: n.domContentLoadedEventEnd, paint: p ? p.startTime : null})); }; look(); })"""
"""In a world of its own, where the page's scripts cannot have changed what it uses. Half a second for a paint that comes after the load."""


def flags(page: StoredPage, port: int) -> list[str]:
    """Of Chromium: everything by the relay, no name resolved, and the replay's key trusted."""
    found = [
        f"--proxy-server=socks5://127.0.0.1:{port}",
        "--proxy-bypass-list=<-loopback>",
        "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    ]
    if page.spki_sha256 is not None:
        found.append(f"--ignore-certificate-errors-spki-list={page.spki_sha256}")
    return found


class Counts:
    def __init__(self) -> None:
        self._pending: set[str] = set()
        self.objects = self.failed = self.missed = 0
        self._begun = self.loaded = False

    def take(self, event: Event) -> None:
        """One event; what is not known is passed over."""
        p = event.params
        request = p.get("requestId")
        if event.method == "Page.loadEventFired":
            self.loaded = self._begun  # else it is the empty page's
        elif not isinstance(request, str):
            return
        elif event.method == "Network.requestWillBeSent":
            url = mapping(p.get("request")).get("url")
            if isinstance(url, str) and url.startswith(("http:", "https:")):
                self._pending.add(request)
                self._begun = True
                self.objects += bool(p.get("redirectResponse"))
        elif request not in self._pending:
            return
        elif event.method == "Network.responseReceived":
            headers = mapping(mapping(p.get("response")).get("headers"))
            self.missed += any(name.lower() == "x-tandem-page" for name in headers)
        elif event.method == "Network.loadingFinished":
            self._pending.discard(request)
            self.objects += 1
        elif event.method == "Network.loadingFailed":
            self._pending.discard(request)
            self.failed += 1


def by_browser(
    browser: Browser,
    session: str,
    page: StoredPage,
    until_s: float,
    stop: Callable[[], bool],
    at_end: Callable[[], None],
) -> Load:
    """Load ``page`` in the browser's ``session`` by ``until_s``. ``at_end`` is called at the load event. DevToolsError only when ``stop``
    says so."""
    found, counts = Load(page.name, "browser"), Counts()
    try:
        _navigate(browser.devtools, session, page, until_s, counts, found)
        if found.failure is None:
            at_end()
            _times(browser.devtools, session, found)
    except TooLateError as error:
        if stop():
            raise
        found.failure = str(error)
    except DevToolsError as error:
        found.failure = browser.said() or str(error)
    found.objects, found.failed, found.missed = counts.objects, counts.failed, counts.missed
    return found


def _navigate(tools: DevTools, session: str, page: StoredPage, until_s: float, counts: Counts, found: Load) -> None:
    tools.call("Network.enable", {}, session, until_s=until_s)
    tools.call("Page.enable", {}, session, until_s=until_s)
    number = tools.send("Page.navigate", {"url": page.url}, session, until_s=until_s)
    navigated = False
    while not counts.loaded:
        event = tools.event(min(until_s, time.monotonic() + 0.25) if not navigated else until_s)
        if event is not None:
            counts.take(event)
        if not navigated and tools.answered(number):
            # An answer with errorText is the end; the browser then "loads" its own error page.
            navigated = True
            error = tools.answer(number, until_s=until_s).get("errorText")
            if error:
                found.failure = str(error)[:100].removeprefix("net::")
                return
        if event is None and time.monotonic() >= until_s:
            found.failure = "no load event in time"
            return
    if not navigated:
        error = tools.answer(number, until_s=until_s).get("errorText")
        found.failure = str(error)[:100].removeprefix("net::") if error else None


def _times(tools: DevTools, session: str, found: Load) -> None:
    until_s = time.monotonic() + _READ_S
    try:
        tree = tools.call("Page.getFrameTree", {}, session, until_s=until_s)
        frame = mapping(mapping(tree.get("frameTree")).get("frame")).get("id")
        world = tools.call("Page.createIsolatedWorld", {"frameId": frame}, session, until_s=until_s)
        reading = {"expression": _READ, "awaitPromise": True, "contextId": world.get("executionContextId")}
        answer = tools.call("Runtime.evaluate", reading, session, until_s=until_s)
        times = json.loads(mapping(answer.get("result")).get("value", ""))
    except (RefusedError, ValueError, TypeError, RecursionError) as error:
        found.failure = f"the browser reported no times: {error}"[:200]
        return
    times = mapping(times)
    found.load_ms = _ms(times.get("load"))
    found.content_loaded_ms, found.first_paint_ms = _ms(times.get("content")), _ms(times.get("paint"))
    if found.load_ms is None:
        found.failure = "the browser reported no times"


def _ms(value: object) -> float | None:
    found = real(value)
    return None if found is None or found < 0 else round(found, 3)
