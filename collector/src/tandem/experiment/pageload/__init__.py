"""Page loads as an experiment: pages, and for each load a session, a browser or the object graph, the sender's side; all figures."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem.devtools import Browser, DevToolsError, NoBrowserError, find
from tandem.experiment import base
from tandem.experiment.base import STOPPED, MissingRequirementError, Outcome, Output, Stop, StoppedError, phase
from tandem.experiment.control import Control, ControlError, Session, mapping, objects, whoami, whole
from tandem.experiment.pageload import loads
from tandem.experiment.pageload.carrier import Carried, Carrier, Relay
from tandem.experiment.pageload.loads import GraphLoad, Load
from tandem.experiment.pageload.page import PageError, StoredPage
from tandem.experiment.pageload.page import read as read_page
from tandem.experiment.parameters import (
    ConnectionParameters,
    Parameter,
    ParameterError,
    parameter,
    parameters_of,
    read_request,
)
from tandem.experiment.results import BYTES_BY_PATH, bytes_by_path, carried, distribution, environment, path_rows
from tandem.schema.manifest import PLAIN_NAME, Failure

BROWSERS = ("auto", "chromium", "none", "both")
ALL = "all"
MOST_LOADS = 2000
"""A row of each goes into the result."""


@dataclass(frozen=True, slots=True)
class Request(ConnectionParameters):
    """Page loads, checked. ``names`` empty: all of the server's."""

    # fmt: off
    pages: str = parameter("names of stored pages on the server, with commas, or all", default="synthetic-page")
    first: int = parameter("with pages all: at most so many, by name", "1", default=1000, minimum=1, maximum=MOST_LOADS)
    browser: str = parameter("none: the object graph alone; both in turn; auto: where there is one", default="auto", choices=BROWSERS)
    repetitions: int = parameter("loads of each page", "1", default=1, minimum=1, maximum=1000)
    pause_s: float = parameter("between loads", "s", default=0.0, minimum=0, maximum=3600)
    load_timeout_s: float = parameter("a load that is not done by then has failed", "s", default=60.0, minimum=0.5, maximum=600)
    start_timeout_s: float = parameter("for the browser to start, which is not measured", "s", default=60.0, minimum=1, maximum=300)
    sandbox: bool = parameter("Chromium's own; root never has it", default=True)
    deadline_s: float = parameter("the whole run", "s", default=600.0, minimum=1, maximum=90000)
    # fmt: on
    names: tuple[str, ...] = field(kw_only=True)


def read(p: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    named = [name.strip() for name in p["pages"].split(",") if name.strip()]
    if not named:
        raise ParameterError("parameter 'pages': no name")
    for name in named:
        if not PLAIN_NAME.match(name):
            raise ParameterError(f"parameter 'pages': {name[:40]!r} is not a name of letters, digits, '.', '_', '-'")
    names = () if named == [ALL] else tuple(dict.fromkeys(named))
    if len(names) * p["repetitions"] * (1 + (p["browser"] == "both")) > MOST_LOADS:
        raise ParameterError(f"parameters 'pages' and 'repetitions': more than {MOST_LOADS} loads in one run")
    request = read_request(Request, p, names=names)
    if request.measurement.scheme != "http":
        raise ParameterError(
            "parameter 'server': pages bring their own TLS; hint: measurement = http://HOST:PORT for page loads"
        )
    return request


RESULTS = (
    Parameter("page_load_time_ms", "object", "by the browser, navigation to the load event's end: n, mean, quantiles", "ms"),
    Parameter("first_contentful_paint_ms", "object", "by the browser, likewise", "ms"),
    Parameter("dom_content_loaded_ms", "object", "by the browser, to the end of DOMContentLoaded, likewise", "ms"),
    Parameter("object_load_time_ms", "object", "without a browser, first connection to the last object's last byte, likewise", "ms"),
    Parameter("connect_ms", "object", "establishment of each measured connection, likewise", "ms"),
    Parameter("loads", "list", "a row of each load"),
    Parameter("loads_failed", "int", "loads that did not reach their end", "1"),
    Parameter("objects", "int", "that came, of all loads", "1"),
    Parameter("objects_failed", "int", "that did not", "1"),
    Parameter("objects_missed", "int", "requested and not in the stored page: answered 404", "1"),
    Parameter("objects_near", "int", "answered by the stored query nearest to the requested one", "1"),
    Parameter("refused_elsewhere", "int", "connections to hosts that the page does not have, not let through", "1"),
    Parameter("connections", "int", "measured connections", "1"),
    Parameter("bytes", "int", "received over them before the loads' ends and their closing, heads and TLS included", "B"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP, in any of the connections"),
    Parameter("subflows", "list", "each path: bytes over all connections, share"),
    Parameter("browser", "str", "the browser's own name and version; null without one"),
    BYTES_BY_PATH,
)  # fmt: skip


@dataclass(slots=True)
class Loaded:
    """One load with what carried it. ``shares``: of the bytes by path at the load's end. ``sender``: the server's answer when the
    session was closed, None when it gave none. ``session``: where the server was to capture it, else None."""

    load: Load
    carried: list[Carried]
    shares: dict[str, float] | None
    elsewhere: int
    sender: dict[str, Any] | None
    tls: bool
    session: str | None = None


def shares(carrier: Carrier) -> dict[str, float] | None:
    """Each path's part of the bytes received; None when the kernel said nothing."""
    found = {path: count for path, count in carried(carrier.totals()).items() if path is not None}
    whole = sum(found.values())
    return {path: round(count / whole, 4) for path, count in found.items()} if whole else None


def row(loaded: Loaded) -> dict[str, Any]:
    load = loaded.load
    connections = len(loaded.carried)
    own = {
        "page_load_time_ms": load.load_ms,
        "first_contentful_paint_ms": load.first_paint_ms,
        "dom_content_loaded_ms": load.content_loaded_ms,
    }
    return {
        "page": load.page,
        "by": load.by,
        **(own if load.by == "browser" else {"object_load_time_ms": load.load_ms}),
        "objects": load.objects,
        "objects_failed": load.failed,
        "objects_missed": load.missed,
        "objects_near": _sum(loaded.sender, "near"),
        "bytes": sum(c.received for c in loaded.carried),
        "connections": connections,
        "connect_ms": round(loaded.carried[0].connected.connect_ms, 3) if connections else None,
        "tls": loaded.tls,
        "shares": loaded.shares,
        **({} if loaded.session is None else {"session": loaded.session, "sender_addresses": _named(loaded.sender)}),
        "failure": load.failure,
    }


def _named(sender: dict[str, Any] | None) -> dict[str, str]:
    """By address the path of which the server took it to be; an address of two is left out."""
    found: dict[str, set[object]] = {}
    for connection in objects(mapping(sender).get("connections")):
        for row in objects(connection.get("subflows")):
            address = mapping(row.get("remote")).get("address")
            if isinstance(address, str):
                found.setdefault(address, set()).add(row.get("path"))
    one = {address: paths.pop() for address, paths in found.items() if len(paths) == 1}
    return {address: path for address, path in one.items() if isinstance(path, str)}


def result(loads: Sequence[Loaded], browser: str | None, kind: str) -> dict[str, Any] | None:
    """The figures; None when no load brought an object."""
    if not any(one.load.objects for one in loads):
        return None
    by_browser = [one.load for one in loads if one.load.by == "browser" and one.load.failure is None]
    by_graph = [one.load for one in loads if one.load.by == "graph" and one.load.failure is None]
    connections = [c for one in loads for c in one.carried]
    totals = [total for c in connections for total in c.series.totals.values()]
    return {
        "page_load_time_ms": _of(by_browser, "load_ms"),
        "first_contentful_paint_ms": _of(by_browser, "first_paint_ms"),
        "dom_content_loaded_ms": _of(by_browser, "content_loaded_ms"),
        "object_load_time_ms": _of(by_graph, "load_ms"),
        "connect_ms": distribution([c.connected.connect_ms for c in connections]),
        "loads": [row(one) for one in loads],
        "loads_failed": sum(one.load.failure is not None for one in loads),
        "objects": sum(one.load.objects for one in loads),
        "objects_failed": sum(one.load.failed for one in loads),
        "objects_missed": sum(one.load.missed for one in loads),
        "objects_near": sum(_sum(one.sender, "near") or 0 for one in loads),
        "refused_elsewhere": sum(one.elsewhere for one in loads),
        "connections": len(connections),
        "bytes": sum(c.received for c in connections),
        "fallback": kind == "mptcp" and any(c.series.fallback for c in connections),
        "subflows": path_rows(totals),
        "browser": browser,
        "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
    }


def _of(loads: Sequence[Load], figure: str) -> dict[str, Any] | None:
    return distribution([v for one in loads if (v := getattr(one, figure)) is not None]) if loads else None


def _sum(sender: dict[str, Any] | None, key: str) -> int | None:
    """Over the server's connections; None when it did not say."""
    connections = mapping(sender).get("connections")
    return sum(whole(c.get(key)) or 0 for c in objects(connections)) if isinstance(connections, list) else None


_GRACE_S = 20.0
"""What the collector gives a run beyond its deadline is more."""
_NO_BROWSER = (
    "no Chromium here; hint: install chromium-headless-shell or chromium, set TANDEM_CHROMIUM, or browser = none"
)


class PageLoad:
    """Stored pages, loaded by a browser or by their object graph."""

    name = "pageload"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    results: tuple[Parameter, ...] = RESULTS
    phases: tuple[tuple[str, str], ...] = (("load", "one load of one page, by a browser or of its object graph"),)

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        request = read(parameters)
        program = find() if request.browser != "none" else None
        if program is None and request.browser in ("chromium", "both"):
            raise MissingRequirementError(_NO_BROWSER)
        found = _Loads(request, program, output, stop)
        failure: Failure | None = None
        try:
            found.run()
        except ControlError as error:
            failure = error.failure
        except PageError as error:
            failure = Failure(reason=f"page: {error}", retry=False)
        except (StoppedError, DevToolsError):
            failure = STOPPED
        except NoBrowserError as error:
            if not stop.requested:
                raise MissingRequirementError(str(error)) from error
            failure = STOPPED
        if failure is None:
            failure = found.failure()
        return Outcome(result(found.done, found.browser, request.kind), failure, found.environment, found.further)


class _Loads:
    """One run's loads, one after the other. ``done``: so far; ``browser``: its name and version, when one has come up."""

    def __init__(self, request: Request, program: str | None, output: Output, stop: Stop) -> None:
        self._request, self._program, self._output, self._stop = request, program, output, stop
        self._until_s = time.monotonic() + request.deadline_s
        self.done: list[Loaded] = []
        self.browser: str | None = None
        self.environment: dict[str, Any] = {**environment(request), **request.options.to_dict()}
        self.further: dict[str, Any] = {"public_addresses": {}, "control_path": None}
        self._missing = 0

    def run(self) -> None:
        """All loads, as far as the deadline allows. ControlError, PageError, StoppedError, DevToolsError, NoBrowserError."""
        request, stop = self._request, self._stop
        control = Control(request)
        ways = ["browser", "graph"] if request.browser == "both" else ["graph" if self._program is None else "browser"]
        with stop.interruptible():
            self.further["public_addresses"] = whoami(request, request.carrying)
            names = request.names or self._all(control)
        plan = [(name, way) for _ in range(request.repetitions) for name in names for way in ways]
        if len(plan) > MOST_LOADS:
            raise ParameterError(
                f"parameters 'first' and 'repetitions': {len(plan)} loads; {MOST_LOADS} may be in one run"
            )
        pages: dict[str, StoredPage] = {}
        for number, (name, way) in enumerate(plan, 1):
            if time.monotonic() >= self._until_s:
                self._missing = len(plan) - number + 1
                return
            if name not in pages:
                with stop.interruptible():
                    # one at a time: they can be large
                    pages = {name: read_page(name, control.get(f"/v1/pages/{name}"))}
            phase(self._output, "load", number, len(plan))
            self._one(control, pages[name], way)
            if number < len(plan) and stop.wait(request.pause_s):
                raise StoppedError
            if stop.requested:
                raise StoppedError

    def _all(self, control: Control) -> tuple[str, ...]:
        answer = control.get("/v1/pages")
        names = answer.get("pages") if isinstance(answer, dict) else None
        if not isinstance(names, list) or not all(isinstance(n, str) and n.isascii() and "/" not in n for n in names):
            raise PageError("the server reported no list of pages")
        if not names:
            raise ControlError("the server has no page; hint: tandem-server page build, record or import", retry=False)
        return tuple(names[: self._request.first])

    def _one(self, control: Control, page: StoredPage, way: str) -> None:
        """One load, from its session to what the sender says of it."""
        request = self._request
        with self._stop.interruptible():
            session = control.open(
                request.kind,
                self.further["public_addresses"],
                bytes=None,
                seconds=None,
                # Without Nagle's algorithm, as every web server's sockets.
                options={"nodelay": True, **request.options.there(sends=True).get("options", {})},
            )
        self.further["control_path"] = session.path
        loaded: Loaded | None = None
        try:
            loaded = self._loaded(page, way, session)
        finally:
            sender = control.leave(session, self._stop)
            if loaded is not None:
                loaded.sender = sender
                self._output.line("load", monotonic_ns=int(time.monotonic() * 1e9), **row(loaded))

    def _loaded(self, page: StoredPage, way: str, session: Session) -> Loaded:
        carrier = Carrier(self._request, session, page.name)
        relay = Relay(carrier, page.origins, self._until_s)
        loaded = Loaded(Load(page.name, way), carrier.carried, None, 0, None, page.certificate is not None)
        loaded.session = session.id if session.id in base.server_captures else None
        self.done.append(loaded)

        def at_end() -> None:
            carrier.sample()
            loaded.shares = shares(carrier)
            self.environment |= carrier.environment()

        request = self._request
        try:
            if way == "browser":
                loaded.load = self._by_browser(page, relay, at_end)
            else:
                until_s = min(self._until_s, time.monotonic() + request.load_timeout_s)
                loaded.load = GraphLoad(page, relay.port, until_s, lambda: self._stop.requested).run()
                at_end()
        except ssl.SSLError as error:
            raise PageError(f"its certificate: {error}") from error
        finally:
            relay.close()
            carrier.close()
            loaded.elsewhere = relay.elsewhere
        if carrier.unsupported is not None:
            raise MissingRequirementError(str(carrier.unsupported))
        if loaded.load.failure is not None and carrier.refused:
            # what the network did says more than what the browser made of it
            loaded.load.failure = f"{carrier.refused[0]} ({loaded.load.failure})"
        return loaded

    def _by_browser(self, page: StoredPage, relay: Relay, at_end: Callable[[], None]) -> Load:
        request = self._request

        def stop() -> bool:
            return self._stop.requested

        sandbox = None if request.sandbox else False
        browser = Browser(self._program or "", loads.flags(page, relay.port), stop, sandbox)
        try:
            try:
                session = browser.page(min(time.monotonic() + request.start_timeout_s, self._until_s + _GRACE_S))
            except NoBrowserError as error:
                if self.browser is None or stop():
                    raise
                # It has come up before: this time it is what was measured.
                return Load(page.name, "browser", failure=str(error))
            if self.browser is None:
                version = browser.devtools.call(
                    "Browser.getVersion", until_s=time.monotonic() + request.start_timeout_s
                )
                self.browser = str(version.get("product", ""))[:80]
                self.environment |= {"browser": self.browser, "browser_sandbox": browser.sandbox}
            until_s = min(self._until_s, time.monotonic() + request.load_timeout_s)
            return loads.by_browser(browser, session, page, until_s, stop, at_end)
        finally:
            browser.close()

    def failure(self) -> Failure | None:
        """Of the run: the deadline, or that no load at all reached its end."""
        if self._missing:
            return Failure(reason=f"deadline passed, {self._missing} loads not begun", retry=True)
        failed = [one.load.failure for one in self.done if one.load.failure is not None]
        if failed and len(failed) == len(self.done):
            return Failure(reason=failed[0], retry=True)
        return None


EXPERIMENT = PageLoad()
