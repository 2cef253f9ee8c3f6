"""Records a page as Chromium loads it, by the DevTools protocol: every answer, its body, and what made it be asked for."""

from __future__ import annotations

import base64
import binascii
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem.devtools.browser import Browser
from tandem.devtools.pipe import DevTools, DevToolsError, Event, RefusedError
from tandem_server.content.page.index import LONGEST_BODY_BYTES, MOST_OBJECTS
from tandem_server.content.page.shelf import Captured, usable

LONGEST_MESSAGE = 256 << 20
_START_S = 30.0
_BODY_S = 30.0
_QUIET_S = 2.0
"""After the load event, so long without a request is the end of the page."""


class RecordError(RuntimeError):
    """The page could not be recorded; one line."""


@dataclass(slots=True)
class _Exchange:
    request: str
    method: str
    url: str
    by_url: str | None
    asked_s: float
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    wire_bytes: int | None = None
    body: bytes = b""
    ended: bool = False
    failed: str | None = None
    redirected: bool = False


@dataclass(frozen=True, slots=True)
class Recorded:
    """``failed``: requests that were not answered, one line each."""

    objects: list[Captured]
    times_ms: dict[str, float]
    failed: list[str]
    browser: str


@dataclass(slots=True)
class _Log:
    """What the browser has said so far. Times as its own clock tells them, in s."""

    by_request: dict[str, _Exchange] = field(default_factory=dict)
    order: list[_Exchange] = field(default_factory=list)
    document_s: float | None = None
    content_s: float | None = None
    load_s: float | None = None

    def take(self, event: Event) -> None:
        """One event; what is not known is passed over."""
        p = event.params
        request, at = p.get("requestId"), p.get("timestamp")
        if event.method == "Page.loadEventFired" and isinstance(at, int | float):
            self.load_s = float(at)
        elif event.method == "Page.domContentEventFired" and isinstance(at, int | float):
            self.content_s = float(at)
        elif not isinstance(request, str):
            return
        elif event.method == "Network.requestWillBeSent":
            self._asked(request, p, float(at) if isinstance(at, int | float) else 0.0)
        elif request in self.by_request:
            self._more(self.by_request[request], event.method, p)

    def _asked(self, request: str, p: Mapping[str, Any], at: float) -> None:
        asked, initiator = _object(p.get("request")), _object(p.get("initiator"))
        by = _initiator(initiator)
        earlier, redirect = self.by_request.get(request), _object(p.get("redirectResponse"))
        if earlier is not None and redirect:
            _answered(earlier, redirect)
            earlier.ended = earlier.redirected = True
            by = earlier.url
        if self.document_s is None:
            self.document_s = at
        exchange = _Exchange(request, str(asked.get("method", "GET")), str(asked.get("url", "")), by, at)
        self.by_request[request] = exchange
        self.order.append(exchange)

    @staticmethod
    def _more(exchange: _Exchange, method: str, p: Mapping[str, Any]) -> None:
        if method == "Network.responseReceived":
            _answered(exchange, _object(p.get("response")))
        elif method == "Network.loadingFinished":
            exchange.ended = True
            wire = p.get("encodedDataLength")
            exchange.wire_bytes = int(wire) if isinstance(wire, int | float) and 0 <= wire < 1 << 40 else None
        elif method == "Network.loadingFailed":
            exchange.ended, exchange.failed = True, str(p.get("errorText", "failed"))[:80]

    def waiting(self) -> int:
        """Requests without an end."""
        return sum(not one.ended for one in self.order if usable(one.url))


def record(
    program: str, url: str, timeout_s: float, sandbox: bool | None = None, flags: tuple[str, ...] = ()
) -> Recorded:
    """Load ``url`` in a fresh Chromium and keep all that it was answered. RecordError, ``NoBrowserError``."""
    browser = Browser(program, flags, sandbox=sandbox, longest=LONGEST_MESSAGE)
    try:
        session = browser.page(time.monotonic() + _START_S)
        return _load(browser.devtools, session, url, time.monotonic() + timeout_s)
    except DevToolsError as error:
        raise RecordError(f"{url}: {browser.said() or error}") from error
    finally:
        browser.close()


def _load(tools: DevTools, session: str, url: str, until_s: float) -> Recorded:
    version = str(tools.call("Browser.getVersion", until_s=until_s).get("product", ""))
    room = {"maxTotalBufferSize": LONGEST_MESSAGE, "maxResourceBufferSize": LONGEST_BODY_BYTES * 2}
    tools.call("Network.enable", room, session, until_s=until_s)
    tools.call("Page.enable", {}, session, until_s=until_s)
    # With stacks over asynchronous calls, or what a script asks for later has no initiator; a ``debugger`` statement stops nothing.
    tools.call("Debugger.enable", {}, session, until_s=until_s)
    tools.call("Debugger.setSkipAllPauses", {"skip": True}, session, until_s=until_s)
    tools.call("Debugger.setAsyncCallStackDepth", {"maxDepth": 16}, session, until_s=until_s)
    told = tools.call("Page.navigate", {"url": url}, session, until_s=until_s)
    if told.get("errorText"):
        raise RecordError(f"{url}: {str(told['errorText'])[:100]}")
    log = _Log()
    quiet_s = time.monotonic() + _QUIET_S
    while (now_s := time.monotonic()) < until_s:
        event = tools.event(min(until_s, quiet_s) if log.load_s is not None else until_s)
        if event is not None:
            log.take(event)
            if event.method.startswith("Network."):
                quiet_s = time.monotonic() + _QUIET_S
        elif log.load_s is not None and (log.waiting() == 0 or now_s > quiet_s + _QUIET_S):
            break
    if log.load_s is None:
        raise RecordError(f"{url}: its load event did not come in time")
    for exchange in log.order:
        _fetch_body(tools, session, exchange)
    return _recorded(log, version)


def _fetch_body(tools: DevTools, session: str, one: _Exchange) -> None:
    if not one.ended or one.failed or one.redirected or one.status in (204, 304):
        return
    try:
        asked = {"requestId": one.request}
        told = tools.call("Network.getResponseBody", asked, session, until_s=time.monotonic() + _BODY_S)
        text = str(told.get("body", ""))
        encoded = told.get("base64Encoded") is True
        one.body = base64.b64decode(text, validate=True) if encoded else text.encode("utf-8", "surrogatepass")
    except RefusedError as error:
        # of beacons and preflights there is none; of others it is lost, and the object with it
        if one.method == "GET" and one.status == 200:
            one.failed = str(error)
    except binascii.Error as error:
        one.failed = f"its body: {error}"


def _recorded(log: _Log, version: str) -> Recorded:
    objects: list[Captured] = []
    failed: list[str] = []
    numbers: dict[str, int] = {}
    for one in log.order:
        url = one.url.partition("#")[0]
        if not usable(url):
            continue  # data: and blob: are inside of what is stored
        if one.failed or not 200 <= one.status <= 599 or not one.method.isalpha():
            failed.append(f"{one.method[:16]} {url[:120]}: {one.failed or 'no answer'}")
            continue
        if len(objects) == MOST_OBJECTS:
            failed.append(f"{url[:120]} and what follows: more than {MOST_OBJECTS}")
            break
        late = log.load_s is not None and one.asked_s > log.load_s and bool(objects)
        by = numbers.get(one.by_url.partition("#")[0]) if one.by_url else None
        objects.append(Captured(one.method, url, one.status, one.headers, one.body, one.wire_bytes, by, late))
        numbers[url] = len(objects) - 1
    if not objects:
        raise RecordError("nothing was answered: " + "; ".join(failed[:3]))
    start = log.document_s or 0.0
    times = {"dom_content_loaded": log.content_s, "load": log.load_s}
    return Recorded(
        objects, {k: round((v - start) * 1000, 3) for k, v in times.items() if v is not None}, failed, version
    )


def _answered(exchange: _Exchange, response: Mapping[str, Any]) -> None:
    status = response.get("status")
    exchange.status = status if isinstance(status, int) else 0
    headers = []
    for name, value in _object(response.get("headers")).items():
        headers += [(str(name), part.strip()) for part in str(value).split("\n")]
    exchange.headers = tuple(headers)


def _initiator(told: Mapping[str, Any]) -> str | None:
    """The URL of what asked: the document or style sheet that was parsed, or the script nearest to the request."""
    if isinstance(told.get("url"), str) and told["url"]:
        return str(told["url"])
    stack = _object(told.get("stack"))
    for _ in range(32):
        frames = stack.get("callFrames")
        for frame in frames if isinstance(frames, list) else []:
            at = _object(frame).get("url")
            if isinstance(at, str) and at:
                return at
        stack = _object(stack.get("parent"))
    return None


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
