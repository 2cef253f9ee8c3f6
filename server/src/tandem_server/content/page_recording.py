"""Pages as browsers had them: loaded here in Chromium and recorded by the DevTools protocol, every answer, its body, and what made
the browser request it; or exported with content to an HTTP archive (HAR 1.2).

What a HAR has not: bodies as they came (only decoded), and in Firefox's the initiators. What it has wrong is left out with its reason, not
guessed at.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from tandem.devtools import Browser, DevTools, DevToolsError, Event, RefusedError
from tandem_server.content.page import LONGEST_BODY_BYTES, MOST_OBJECTS, Captured, usable

LONGEST_BYTES = 512 << 20


class HarError(ValueError):
    """No page can be made of it; one line."""


@dataclass(frozen=True, slots=True)
class Imported:
    """``left_out``: entries that were not taken, one line each. ``browser``: who wrote the archive, as it says."""

    objects: list[Captured]
    times_ms: dict[str, float]
    left_out: list[str]
    browser: str


def read_har(raw: bytes) -> Imported:
    """The first page of the archive; HarError."""
    if len(raw) > LONGEST_BYTES:
        raise HarError(f"longer than {LONGEST_BYTES} bytes")
    try:
        top = json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise HarError(f"no JSON: {error}") from error
    log = json_object(json_object(top).get("log"))
    entries = log.get("entries")
    if not isinstance(entries, list) or not entries:
        raise HarError("no log.entries")
    page = json_object(next(iter(_list(log.get("pages"))), {}))
    entries = [json_object(e) for e in entries]
    if page.get("id") is not None:
        # a HAR may hold several pages one after the other
        entries = [e for e in entries if e.get("pageref") in (page["id"], None)] or entries
    times_ms = _times(json_object(page.get("pageTimings")))
    begun, load_ms = _when(page.get("startedDateTime")), times_ms.get("load")
    objects: list[Captured] = []
    left_out: list[str] = []
    numbers: dict[str, int] = {}
    for place, entry in enumerate(entries):
        try:
            late = _late(entry, begun, load_ms) and bool(objects)
            one = _captured(entry, numbers, late=late)
        except HarError as error:
            left_out.append(f"entry {place}: {error}")
            continue
        if len(objects) == MOST_OBJECTS:
            left_out.append(f"entry {place} and what follows: more than {MOST_OBJECTS}")
            break
        if not objects and not 200 <= one.status < 400:
            raise HarError(f"its document was answered {one.status}")
        numbers.setdefault(one.url, len(objects))
        objects.append(one)
    if not objects:
        raise HarError("nothing in it can be replayed: " + "; ".join(left_out[:3]))
    creator = json_object(log.get("browser")) or json_object(log.get("creator"))
    browser = " ".join(str(creator.get(k, ""))[:40] for k in ("name", "version")).strip()
    return Imported(objects, times_ms, left_out, browser)


def _captured(entry: Mapping[str, Any], numbers: Mapping[str, int], *, late: bool) -> Captured:
    request, response = json_object(entry.get("request")), json_object(entry.get("response"))
    method, url, status = request.get("method"), request.get("url"), response.get("status")
    if not isinstance(url, str) or not usable(url):
        raise HarError(f"{str(url)[:60]!r} is no URL that can be requested")
    url = url.partition("#")[0]
    if (
        not isinstance(method, str)
        or not method.isascii()
        or not method.isalpha()
        or not method.isupper()
        or len(method) > 16
    ):
        raise HarError(f"method {str(method)[:20]!r}")
    if isinstance(status, bool) or not isinstance(status, int) or not 200 <= status <= 599:
        raise HarError(f"status {str(status)[:20]} of {url[:60]!r}")
    headers = []
    for header in _list(response.get("headers")):
        name, value = json_object(header).get("name"), json_object(header).get("value")
        if isinstance(name, str) and isinstance(value, str) and not name.startswith(":"):
            # browsers join several of one name by line breaks
            headers += [(name, part.strip()) for part in value.split("\n")]
    content = json_object(response.get("content"))
    wire = response.get("bodySize")
    wire_bytes = wire if isinstance(wire, int) and not isinstance(wire, bool) and 0 <= wire < 1 << 40 else None
    by = next((numbers[url] for url in initiators(json_object(entry.get("_initiator"))) if url in numbers), None)
    return Captured(method, url, status, tuple(headers), _body(content, status, url), wire_bytes, by, late)


def _body(content: Mapping[str, Any], status: int, url: str) -> bytes:
    text, size = content.get("text"), content.get("size")
    if text is None:
        if isinstance(size, int) and size > 0 and status == 200:
            raise HarError(f"no body of {url[:60]!r}: export with content")
        return b""
    if not isinstance(text, str):
        raise HarError(f"a body of {url[:60]!r} that is no text")
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError) as error:
            raise HarError(f"the body of {url[:60]!r}: {error}") from error
    return text.encode("utf-8", "surrogatepass")


def initiators(origin: Mapping[str, Any]) -> Iterator[str]:
    """URLs of what made a request, by Chromium's ``initiator``: the document or style sheet that was parsed, or scripts, nearest first."""
    url = origin.get("url")
    if isinstance(url, str) and url:
        yield url
    stack = json_object(origin.get("stack"))
    for _ in range(32):
        for frame in _list(stack.get("callFrames")):
            at = json_object(frame).get("url")
            if isinstance(at, str) and at:
                yield at
        stack = json_object(stack.get("parent"))


def _times(timings: Mapping[str, Any]) -> dict[str, float]:
    found = {}
    for name, key in (("dom_content_loaded", "onContentLoad"), ("load", "onLoad")):
        value = timings.get(key)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e7:
            found[name] = float(value)
    return found


def _late(entry: Mapping[str, Any], begun: datetime | None, load_ms: float | None) -> bool:
    started = _when(entry.get("startedDateTime"))
    if started is None or begun is None or load_ms is None:
        return False
    return (started - begun).total_seconds() * 1000 > load_ms


def _when(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        when = datetime.fromisoformat(value)
    except ValueError:
        return None
    return when if when.tzinfo is not None else None


def json_object(value: object) -> dict[str, Any]:
    """``value``, or an empty one where it is none."""
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


LONGEST_MESSAGE = 256 << 20
_START_S = 30.0
_BODY_S = 30.0
_INNER = "not a public address"
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


class _Public:
    """Where a page may lead: public addresses, and what was named itself by an address that is none. Who wrote a page, or has its name,
    must not have the browser read what only this machine reaches."""

    def __init__(self, url: str) -> None:
        host, port = _end_of(url)
        self._named = (host, port) if host == "localhost" or _inner(host) else None
        # Behind a proxy every answer comes from the proxy's address.
        self._direct = not getproxies()
        self._inner_hosts: dict[str, bool] = {}

    def fault(self, url: str, answered_by: str | None = None) -> str | None:
        """Why ``url`` is not for this browser, None: it is. ``answered_by``: the address that the answer came from, which is not always
        what its name was resolved to a moment before."""
        host, port = _end_of(url)
        if not usable(url) or (host, port) == self._named:
            return None
        if answered_by is not None:
            inner = self._direct and _inner(answered_by.strip("[]"))
        else:
            if host not in self._inner_hosts:
                self._inner_hosts[host] = any(map(_inner, _addresses(host)))
            inner = self._inner_hosts[host]
        return _INNER if inner else None


def _end_of(url: str) -> tuple[str, int | None]:
    try:
        parts = urlsplit(url)
        return parts.hostname or "", parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", None


def _addresses(host: str) -> list[str]:
    try:
        return [str(found[4][0]) for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError):
        return []  # nor will the browser find it


def _inner(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    address = getattr(address, "ipv4_mapped", None) or address
    return not address.is_global or address.is_multicast


@dataclass(slots=True)
class _Log:
    """What the browser has said so far. Times as its own clock tells them, in s."""

    public: _Public
    refused: list[str] = field(default_factory=list)
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
            if event.method == "Network.responseReceived":
                answered_by = json_object(p.get("response")).get("remoteIPAddress")
                self._refuse(self.by_request[request], answered_by)

    def _refuse(self, exchange: _Exchange, answered_by: object) -> None:
        if isinstance(answered_by, str) and answered_by:
            exchange.failed = self.public.fault(exchange.url, answered_by) or exchange.failed

    def _asked(self, request: str, p: Mapping[str, Any], at: float) -> None:
        sent, initiator = json_object(p.get("request")), json_object(p.get("initiator"))
        by = next(initiators(initiator), None)
        earlier, redirect = self.by_request.get(request), json_object(p.get("redirectResponse"))
        if earlier is not None and redirect:
            _answered(earlier, redirect)
            earlier.ended = earlier.redirected = True
            by = earlier.url
        if self.document_s is None:
            self.document_s = at
        exchange = _Exchange(request, str(sent.get("method", "GET")), str(sent.get("url", "")), by, at)
        self.by_request[request] = exchange
        self.order.append(exchange)

    @staticmethod
    def _more(exchange: _Exchange, method: str, p: Mapping[str, Any]) -> None:
        if method == "Network.responseReceived":
            _answered(exchange, json_object(p.get("response")))
        elif method == "Network.loadingFinished":
            exchange.ended = True
            wire = p.get("encodedDataLength")
            exchange.wire_bytes = int(wire) if isinstance(wire, int | float) and 0 <= wire < 1 << 40 else None
        elif method == "Network.loadingFailed":
            exchange.ended, exchange.failed = True, exchange.failed or str(p.get("errorText", "failed"))[:80]

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
    # Each request waits for a word from here, those of a redirect too; so nothing may wait for the answer to this one.
    tools.call("Fetch.enable", {}, session, until_s=until_s)
    navigation = tools.send("Page.navigate", {"url": url}, session, until_s=until_s)
    log = _Log(_Public(url))
    quiet_s = time.monotonic() + _QUIET_S
    while (now_s := time.monotonic()) < until_s:
        event = tools.event(min(until_s, quiet_s) if log.load_s is not None else until_s)
        if event is not None and event.method == "Fetch.requestPaused":
            _go_on(tools, session, log, event, until_s)
        elif event is not None:
            log.take(event)
            if event.method.startswith("Network."):
                quiet_s = time.monotonic() + _QUIET_S
        elif log.load_s is not None and (log.waiting() == 0 or now_s > quiet_s + _QUIET_S):
            break
        if tools.answered(navigation) and (why := tools.answer(navigation, until_s=until_s).get("errorText")):
            refused = f"{log.refused[0][:120]} is {_INNER}" if log.refused else None
            raise RecordError(f"{url}: {refused or str(why)[:100]}")
    if log.load_s is None:
        raise RecordError(f"{url}: its load event did not come in time")
    for exchange in log.order:
        _fetch_body(tools, session, exchange)
    return _recorded(log, version)


def _go_on(tools: DevTools, session: str, log: _Log, event: Event, until_s: float) -> None:
    """Let a request go on, or end it."""
    paused = event.params.get("requestId")
    url = str(json_object(event.params.get("request")).get("url", ""))
    if log.public.fault(url) is None:
        tools.send("Fetch.continueRequest", {"requestId": paused}, session, until_s=until_s)
        return
    log.refused.append(url)
    answer = {"requestId": paused, "errorReason": "AddressUnreachable"}
    tools.send("Fetch.failRequest", answer, session, until_s=until_s)


def _fetch_body(tools: DevTools, session: str, one: _Exchange) -> None:
    if not one.ended or one.failed or one.redirected or one.status in (204, 304):
        return
    try:
        sent = {"requestId": one.request}
        answer = tools.call("Network.getResponseBody", sent, session, until_s=time.monotonic() + _BODY_S)
        text = str(answer.get("body", ""))
        encoded = answer.get("base64Encoded") is True
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
            why = _INNER if one.url in log.refused else one.failed or "no answer"
            failed.append(f"{one.method[:16]} {url[:120]}: {why}")
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
    for name, value in json_object(response.get("headers")).items():
        headers += [(str(name), part.strip()) for part in str(value).split("\n")]
    exchange.headers = tuple(headers)
