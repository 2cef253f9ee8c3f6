"""One load in a fresh Chromium: navigate, wait for the load event, read the browser's own times."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from tandem.devtools.browser import Browser, DevTools, DevToolsError, Event, RefusedError, TooLateError
from tandem.experiment.pageload.carrier import Load, now_s
from tandem.experiment.pageload.page import StoredPage

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
    """What the browser says of its requests."""

    def __init__(self) -> None:
        self._asked: set[str] = set()
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
            url = _object(p.get("request")).get("url")
            if isinstance(url, str) and url.startswith(("http:", "https:")):
                self._asked.add(request)
                self._begun = True
                self.objects += bool(p.get("redirectResponse"))
        elif request not in self._asked:
            return
        elif event.method == "Network.responseReceived":
            headers = _object(_object(p.get("response")).get("headers"))
            told = [v for k, v in headers.items() if k.lower() == "x-tandem-page"]
            self.missed += bool(told)
        elif event.method == "Network.loadingFinished":
            self._asked.discard(request)
            self.objects += 1
        elif event.method == "Network.loadingFailed":
            self._asked.discard(request)
            self.failed += 1


def load(
    browser: Browser,
    session: str,
    page: StoredPage,
    until_s: float,
    stop: Callable[[], bool],
    at_end: Callable[[], None],
) -> Load:
    """Load ``page`` by ``until_s``. ``at_end`` is called at the load event. DevToolsError only when told to stop."""
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
        event = tools.event(min(until_s, now_s() + 0.25) if not navigated else until_s)
        if event is not None:
            counts.take(event)
        if not navigated and tools.answered(number):
            # An answer with errorText is the end; the browser then "loads" its own error page.
            navigated = True
            error = tools.answer(number, until_s=until_s).get("errorText")
            if error:
                found.failure = str(error)[:100].removeprefix("net::")
                return
        if event is None and now_s() >= until_s:
            found.failure = "no load event in time"
            return
    if not navigated:
        error = tools.answer(number, until_s=until_s).get("errorText")
        found.failure = str(error)[:100].removeprefix("net::") if error else None


def _times(tools: DevTools, session: str, found: Load) -> None:
    until_s = now_s() + _READ_S
    try:
        tree = tools.call("Page.getFrameTree", {}, session, until_s=until_s)
        frame = _object(_object(tree.get("frameTree")).get("frame")).get("id")
        world = tools.call("Page.createIsolatedWorld", {"frameId": frame}, session, until_s=until_s)
        asked = {"expression": _READ, "awaitPromise": True, "contextId": world.get("executionContextId")}
        told = tools.call("Runtime.evaluate", asked, session, until_s=until_s)
        times = json.loads(_object(told.get("result")).get("value", ""))
    except (RefusedError, ValueError, TypeError, RecursionError) as error:
        found.failure = f"the browser told no times: {error}"[:200]
        return
    times = _object(times)
    found.load_ms = _ms(times.get("load"))
    found.content_loaded_ms, found.first_paint_ms = _ms(times.get("content")), _ms(times.get("paint"))
    if found.load_ms is None:
        found.failure = "the browser told no times"


def _ms(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        return None
    return round(float(value), 3)


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
