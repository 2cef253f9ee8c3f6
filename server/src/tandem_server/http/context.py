"""One request at the edge: whose it is, what it brings, and what is answered to who comes without a good token."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, Protocol

from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem_server.http.connections import Connection, ConnectionLimiter, address_of, ends_of
from tandem_server.http.rates import Buckets, ProbeRates

_KEY = "tandem_request"
PROBE = "tandem_probe"
"""In a request's state, where it has a good token."""
_LATER_S = 5.0
_NO_TOKEN = "too many requests without a good token"  # noqa: S105  (a message)
_CLOSE = {"Connection": "close"}


class RequestContext:
    """``probe``: known once its token was found good. ``sent_bytes``: of the body, as they came so far."""

    def __init__(self, limiter: ConnectionLimiter, rates: ProbeRates, connection: Connection | None) -> None:
        self._limiter, self._rates, self._connection = limiter, rates, connection
        self.probe: str | None = None
        self.sent_bytes = 0
        self.closes = False
        """The connection ends with the answer: there are more than may be."""

    def authenticate(self, probe: str) -> float:
        """The token of ``probe`` was shown. Seconds that it has to wait first, 0: none."""
        self.probe = probe
        if self._connection is not None and not self._limiter.authenticate(self._connection, probe):
            self.closes = True
            return _LATER_S
        wait_s = self._rates.wait_s(probe)
        if wait_s == 0:
            self._rates.take(probe, requests=1)
        return wait_s

    def count(self, *, lines: int = 0, sent_bytes: int = 0) -> None:
        """It brought so much."""
        if self.probe is not None:
            self._rates.take(self.probe, lines=lines, sent_bytes=sent_bytes)


def context_of(request: HTTPConnection) -> RequestContext | None:
    """None where no ``ConnectionGuard`` stands before the application."""
    found = request.scope.get("state", {}).get(_KEY)
    return found if isinstance(found, RequestContext) else None


def count_lines(request: Request, lines: int) -> None:
    """The request brought so many lines of records."""
    if (context := context_of(request)) is not None:
        context.count(lines=lines)


def probe_in(request: Request) -> str:
    """Whose request it is, behind ``Authentication``."""
    return str(request.scope["state"][PROBE])


def too_much(error: str, wait_s: float) -> JSONResponse:
    """429."""
    return JSONResponse({"error": error}, 429, {"Retry-After": str(math.ceil(wait_s))})


def exception_handlers(
    answers: Mapping[type[Exception], Callable[[Any], Response]],
    note: Callable[[Request, Exception], None] = lambda _request, _error: None,
) -> dict[Any, Callable[[Request, Any], Awaitable[Response]]]:
    """As Starlette takes them: ``answers`` by an exception's own class first, then its bases. ``note`` is called first."""

    def handler(answer: Callable[[Any], Response]) -> Callable[[Request, Any], Awaitable[Response]]:
        async def answered(request: Request, error: Exception) -> Response:
            note(request, error)
            return answer(error)

        return answered

    return {kind: handler(answer) for kind, answer in answers.items()}


class ConnectionGuard:
    """Before an application: bounds failures by address, counts bytes, and refuses what two readers could read in two ways."""

    def __init__(self, app: ASGIApp, limiter: ConnectionLimiter, rates: ProbeRates) -> None:
        self._app, self._limiter, self._rates = app, limiter, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client, server = scope.get("client"), scope.get("server")
        connection = self._limiter.find(ends_of(client, server)) if client and server else None
        if connection is not None:
            connection.waits_for(None)
        context = RequestContext(self._limiter, self._rates, connection)
        scope.setdefault("state", {})[_KEY] = context
        lengths = [value for name, value in scope["headers"] if name in (b"content-length", b"transfer-encoding")]
        whole = lengths in ([], [b"0"])
        address = address_of(client[0]) if client else ""
        replaced = False

        async def received() -> Message:
            nonlocal whole
            message = await receive()
            if message["type"] == "http.request":
                context.sent_bytes += len(message.get("body", b""))
                whole = not message.get("more_body", False)
            return message

        async def answered(message: Message) -> None:
            nonlocal replaced
            if replaced:
                return
            if message["type"] == "http.response.start" and message["status"] == 401 and address:
                wait_s = self._limiter.failures.wait_s(address)
                self._limiter.failures.take(address)
                if wait_s > 0:
                    replaced = True
                    later = too_much(_NO_TOKEN, wait_s)
                    later.headers["Connection"] = "close"
                    await later(scope, receive, send)
                    return
            if message["type"] == "http.response.start" and context.closes:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        try:
            refused = _refused(scope)
            await (self._app if refused is None else refused)(scope, received, answered)
        finally:
            context.count(sent_bytes=context.sent_bytes)
            if connection is not None:
                connection.waits_for("rest" if whole else "body")


def _refused(scope: Scope) -> JSONResponse | None:
    """The answer to a request that does not say clearly where it ends (RFC 9112, 6.1 and 6.3): two readers could part it in two places,
    and a parser may be more lenient than another. Also to another version of HTTP."""
    codings = [value.strip().lower() for name, value in scope["headers"] if name == b"transfer-encoding"]
    if codings and any(name == b"content-length" for name, _ in scope["headers"]):
        return JSONResponse({"error": "both Transfer-Encoding and Content-Length"}, 400, _CLOSE)
    if codings not in ([], [b"chunked"]):
        return JSONResponse({"error": "of Transfer-Encoding only chunked is spoken here"}, 501, _CLOSE)
    if scope["http_version"] not in ("1.0", "1.1"):
        return JSONResponse({"error": "only HTTP 1.1 is spoken here"}, 505, _CLOSE)
    return None


class Observer(Protocol):
    """Counts requests by whose they are."""

    def unauthenticated(self) -> None:
        """A request came without a good token."""

    def authenticated(self, probe: str) -> None:
        """A request of ``probe`` came."""

    def answered(self, probe: str, status: int, received_bytes: int) -> None:
        """It has its answer."""


class Authentication:
    """Middleware: ``probe_of`` says whose an ``Authorization`` header is (None: nobody's; sqlite3.Error goes to ``unreadable``). Without a
    good token 401, but for the method and path of ``open_to_all``: there each address may ask as often a minute as ``failures`` has."""

    def __init__(
        self,
        app: ASGIApp,
        probe_of: Callable[[str | None], str | None],
        unreadable: Callable[[sqlite3.Error], Response],
        observer: Observer | None = None,
        open_to_all: Collection[tuple[str, str]] = (),
        failures: Buckets | None = None,
    ) -> None:
        self._app, self._probe_of, self._unreadable, self._observer = app, probe_of, unreadable, observer
        self._open_to_all, self._failures = open_to_all, failures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        status = 0

        async def answered(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            # 15 µs out of SQLite's memory, a tenth of the way to a thread and back. Nothing is remembered here: a revoked token is void
            # at once.
            probe = self._probe_of(request.headers.get("authorization"))
        except sqlite3.Error as error:
            await self._unreadable(error)(scope, receive, send)
            return
        if probe is None:
            if self._observer is not None:
                self._observer.unauthenticated()
            await (self._without_token(request) or self._app)(scope, receive, send)
            return
        scope.setdefault("state", {})[PROBE] = probe
        if self._observer is not None:
            self._observer.authenticated(probe)
        context = context_of(request)
        wait_s = 0.0 if context is None else context.authenticate(probe)
        app = self._app if not wait_s else too_much("more than this probe may send a minute", wait_s)
        await app(scope, receive, answered)
        if self._observer is not None:
            self._observer.answered(probe, status, 0 if context is None else context.sent_bytes)

    def _without_token(self, request: HTTPConnection) -> JSONResponse | None:
        """The refusal; None: it is answered all the same."""
        if (request.scope["method"], request.scope["path"]) not in self._open_to_all or self._failures is None:
            return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})
        address = "" if request.client is None else address_of(request.client.host)
        if wait_s := self._failures.wait_s(address):
            return too_much(_NO_TOKEN, wait_s)
        self._failures.take(address)
        return None
