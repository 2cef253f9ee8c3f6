"""One request at the door: whose it is, what it brings, and what a stranger is told who tries too often."""

from __future__ import annotations

import json
import math
from typing import Any

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tandem_server.door.admission import Admitted, Door, address_of, ends_of
from tandem_server.door.rates import ProbeRates

_KEY = "tandem_visit"
_LATER_S = 5.0


class Visit:
    """``probe``: known once its token was found good."""

    def __init__(self, door: Door, rates: ProbeRates, admitted: Admitted | None) -> None:
        self._door, self._rates, self._admitted = door, rates, admitted
        self.probe: str | None = None
        self.sent_bytes = 0
        self.closes = False
        """The connection ends with the answer: there are more than may be."""

    def come_in(self, probe: str) -> float:
        """The token of ``probe`` was shown. Seconds that it has to wait first, 0: none."""
        self.probe = probe
        if self._admitted is not None and not self._door.is_known(self._admitted, probe):
            self.closes = True
            return _LATER_S
        wait_s = self._rates.wait_s(probe)
        if wait_s == 0:
            self._rates.take(probe, requests=1)
        return wait_s

    def lines(self, count: int) -> None:
        """It brought so many lines of records."""
        if self.probe is not None:
            self._rates.take(self.probe, lines=count)

    def over(self) -> None:
        """The request was received."""
        if self.probe is not None:
            self._rates.take(self.probe, sent_bytes=self.sent_bytes)


def visit_of(request: Request) -> Visit | None:
    """None where no door stands before the application."""
    found = request.scope.get("state", {}).get(_KEY)
    return found if isinstance(found, Visit) else None


def come_in(request: Request, probe: str) -> int:
    """Seconds for ``Retry-After`` when the probe asks too much (status 429), else 0."""
    visit = visit_of(request)
    return 0 if visit is None else math.ceil(visit.come_in(probe))


def count_lines(request: Request, lines: int) -> None:
    """The request brought so many lines of records."""
    visit = visit_of(request)
    if visit is not None:
        visit.lines(lines)


def received_bytes(request: Request) -> int:
    """Of its body, as they came so far; 0 where no door stands before the application."""
    visit = visit_of(request)
    return 0 if visit is None else visit.sent_bytes


class AtTheDoor:
    """Before an application: bounds failures by address, counts bytes, and refuses what two readers could read in two ways."""

    def __init__(self, app: ASGIApp, door: Door, rates: ProbeRates) -> None:
        self._app, self._door, self._rates = app, door, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if (fault := _framing(scope["headers"])) is not None:
            await _answer(send, *fault)
            return
        if scope["http_version"] not in ("1.0", "1.1"):
            await _answer(send, 505, {"error": "only HTTP 1.1 is spoken here"})
            return
        client, server = scope.get("client"), scope.get("server")
        admitted = self._door.find(ends_of(client, server)) if client and server else None
        visit = Visit(self._door, self._rates, admitted)
        scope.setdefault("state", {})[_KEY] = visit
        address = address_of(client[0]) if client else ""
        replaced = False

        async def received() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                visit.sent_bytes += len(message.get("body", b""))
            return message

        async def told(message: Message) -> None:
            nonlocal replaced
            if replaced:
                return
            if message["type"] == "http.response.start" and message["status"] == 401 and address:
                wait_s = self._door.failures.wait_s(address)
                self._door.failures.take(address)
                if wait_s > 0:
                    replaced = True
                    error = {"error": "too many requests without a good token"}
                    await _answer(send, 429, error, [(b"retry-after", str(math.ceil(wait_s)).encode())])
                    return
            if message["type"] == "http.response.start" and visit.closes:
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        try:
            await self._app(scope, received, told)
        finally:
            visit.over()


def _framing(headers: list[tuple[bytes, bytes]]) -> tuple[int, dict[str, Any]] | None:
    """What is wrong with how a request says where it ends (RFC 9112, 6.1 and 6.3), if anything: two readers could part it in two
    places, and a parser may be more lenient than another."""
    codings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    if codings and any(name == b"content-length" for name, _ in headers):
        return 400, {"error": "both Transfer-Encoding and Content-Length"}
    if codings not in ([], [b"chunked"]):
        return 501, {"error": "of Transfer-Encoding only chunked is spoken here"}
    return None


async def _answer(
    send: Send, status: int, content: dict[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    """JSON, and the connection ends."""
    body = json.dumps(content).encode()
    more = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [*more, (b"connection", b"close"), *(headers or [])],
        }
    )
    await send({"type": "http.response.body", "body": body})
