"""The control channel: sessions are opened and ended over HTTPS with the probe's token, results handed in with them
(docs/reference/endpoint-api.md)."""

from __future__ import annotations

import asyncio
import functools
import ipaddress
import logging
import re
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tandem.schema.manifest import PLAIN_NAME
from tandem_server.content.page import PageError, PageStore, public
from tandem_server.durable import write_whole
from tandem_server.endpoint.capture import CaptureRefused, Captures
from tandem_server.endpoint.flows import PathPeer
from tandem_server.endpoint.reflector import Reflector
from tandem_server.endpoint.sessions import Refused, Session, SessionRequest, SessionTable
from tandem_server.endpoint.sockets import OptionsError, negotiate, read_environment, read_options
from tandem_server.http.body import TooMuch, Unreadable, read_json, receive
from tandem_server.http.context import Authentication, exception_handlers, probe_in
from tandem_server.http.rates import DiskShare
from tandem_server.registry import Registry, probe_of

_WORD = re.compile(r"[^\x00-\x1f\x7f\\\ud800-\udfff]{1,64}\Z")
_PATHS_LIMIT = 8
_LARGEST = 10**15 - 1
_KEYS = {"run", "kind", "path", "bytes", "seconds", "budget_bytes", "paths", "options", "capture", "tls"}


class InvalidRequest(Unreadable):
    """The body is no request for a session."""


def read_session_request(body: bytes) -> SessionRequest:
    """Check the body of ``POST /v1/sessions``; InvalidRequest names what is wrong."""
    wanted = read_json(body, InvalidRequest)
    if not isinstance(wanted, dict):
        raise InvalidRequest("the body is no JSON object")
    unknown = wanted.keys() - _KEYS
    if unknown:
        raise InvalidRequest(f"unknown key {min(unknown)!r}")
    if not isinstance(wanted.get("run"), str) or not PLAIN_NAME.match(wanted["run"]):
        raise InvalidRequest("run is no id")
    if wanted.get("kind") not in ("mptcp", "tcp", "any"):
        raise InvalidRequest("kind is neither mptcp nor tcp nor any")
    payload_bytes, seconds, budget = wanted.get("bytes"), wanted.get("seconds"), wanted.get("budget_bytes")
    for name, count in (("bytes", payload_bytes), ("budget_bytes", budget)):
        if count is not None and (type(count) is not int or not 1 <= count <= _LARGEST):
            raise InvalidRequest(f"{name} is no whole number from 1 to {_LARGEST}")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds < 1e5):
        raise InvalidRequest("seconds is no time above 0")
    if payload_bytes is not None and (seconds is not None or budget is not None):
        raise InvalidRequest("bytes and seconds or budget_bytes: ask for one")
    path = wanted.get("path")
    if path is not None:
        _word(path, "path")
    try:
        options = read_options(wanted.get("options"))
    except OptionsError as error:
        raise InvalidRequest(str(error)) from None
    capture = wanted.get("capture", False)
    if not isinstance(capture, bool):
        raise InvalidRequest("capture is neither true nor false")
    tls = wanted.get("tls", False)
    if not isinstance(tls, bool):
        raise InvalidRequest("tls is neither true nor false")
    paths = _paths(wanted.get("paths"))
    return SessionRequest(
        wanted["run"], wanted["kind"], path, paths, payload_bytes, seconds, budget, options, capture, tls
    )


def _paths(wanted: object) -> dict[str, PathPeer]:
    if wanted is None:
        return {}
    if not isinstance(wanted, dict) or len(wanted) > _PATHS_LIMIT:
        raise InvalidRequest(f"paths is no object of at most {_PATHS_LIMIT} paths")
    paths = {}
    for name, peer in wanted.items():
        _word(name, "a path's name")
        if not isinstance(peer, dict) or peer.keys() - {"operator", "address"}:
            raise InvalidRequest(f"path {name!r} is not {{operator, address}}")
        operator, address = peer.get("operator"), peer.get("address")
        if operator is not None:
            _word(operator, "operator")
        if address is not None:
            address = _address(address)
        paths[str(name)] = PathPeer(operator, address)
    return paths


def _word(value: object, what: str) -> None:
    if not isinstance(value, str) or not _WORD.match(value):
        raise InvalidRequest(f"{what} is no text of 1 to 64 printable characters")


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise InvalidRequest(f"address {value!r} is no IP address") from None


RESULT_BYTES = 256 * 1024
"""The largest result."""


class BadResult(Unreadable):
    """The body is no result."""


class Results:
    """``folder``/PROBE/RUN/SESSION.json, each as it was sent, within each probe's ``share`` of the disk. Safe to use from any thread."""

    def __init__(self, folder: Path, share: DiskShare) -> None:
        self._folder, self._share = folder, share

    def put(self, probe: str, run: str, session: str, body: bytes) -> None:
        """Keep a session's result, in place of one that it had; BadResult, OSError (a full disk, a share
        used up). The names are those of an open
        session, so they are safe as names of files."""
        self._share.check(probe)
        content = read_json(body, BadResult)  # by the standard: here, not by whoever reads it later
        if not isinstance(content, dict):
            raise BadResult("the body is no JSON object")
        write_whole(self._folder / probe / run / f"{session}.json", body)
        self._share.charge(probe, len(body))


_LOG = logging.getLogger("tandem.endpoint.control")
_BODY_LIMIT_BYTES = 16 * 1024
_LATER_S = 10


def control_app(
    registry: Registry,
    sessions: SessionTable,
    measurement_port: int,
    results: Results,
    captures: Captures | None = None,
    reflector: Reflector | None = None,
    measurement_tls_port: int | None = None,
    further_addresses: Sequence[str] = (),
    pages: PageStore | None = None,
    body_s: float = 60.0,
) -> Starlette:
    """The ASGI application. ``captures``: None when none are allowed. ``reflector``: None when there is none; then its part of
    the answers is null. ``measurement_tls_port``: None when the measurement listener speaks no TLS. ``further_addresses``: where the
    measurement listeners are reached besides. ``pages``: None: there are none. ``body_s``: within which a body must be whole."""

    async def body_of(request: Request, limit_bytes: int) -> bytes:
        async with asyncio.timeout(body_s):
            return await receive(request.stream(), limit_bytes)

    async def post(request: Request) -> JSONResponse:
        probe = probe_in(request)
        wanted = read_session_request(await body_of(request, _BODY_LIMIT_BYTES))
        options = negotiate(wanted.options)
        if wanted.capture and captures is None:
            raise InvalidRequest("this endpoint allows no captures ([capture] allowed in its server.toml)")
        port = measurement_tls_port if wanted.tls else measurement_port
        if port is None:
            raise InvalidRequest(
                "this endpoint measures without TLS ([listen] measurement_tls_port in its server.toml)"
            )
        session = await run_in_threadpool(sessions.open, probe, wanted)
        if wanted.capture and captures is not None:
            await run_in_threadpool(_begin_capture, captures, sessions, session, port)
        answer = {
            "session": session.id,
            "key": session.key.hex(),
            "expires_s": int(session.idle_s),
            "budget_bytes": session.budget_bytes,
            "measurement_port": port,
            "further_addresses": list(further_addresses),
            "reflector": None if reflector is None else reflector.to_dict(),
            "options": options.to_dict(),
            "environment": read_environment(),
        }
        return JSONResponse(answer, 201)

    async def delete(request: Request) -> JSONResponse:
        session = await run_in_threadpool(sessions.end, request.path_params["session"], probe_in(request))
        return _NO_SESSION if session is None else JSONResponse(_sender_side(session))

    async def put_result(request: Request) -> JSONResponse:
        probe = probe_in(request)
        session = await run_in_threadpool(sessions.get, request.path_params["session"])
        if session is None or session.probe != probe:
            return _NO_SESSION
        body = await body_of(request, RESULT_BYTES)
        await run_in_threadpool(results.put, probe, session.run, session.id, body)
        session.charge(len(body))
        return JSONResponse({"bytes": len(body)})

    async def get_page(request: Request) -> JSONResponse:
        status, content = await run_in_threadpool(_page, pages, request.path_params["page"])
        return JSONResponse(content, status)

    async def get_pages(_request: Request) -> JSONResponse:
        return JSONResponse({"pages": [] if pages is None else await run_in_threadpool(pages.names)})

    def route(path: str, answer: Callable[[Request], Awaitable[JSONResponse]], method: str) -> Route:
        known = Middleware(Authentication, probe_of=functools.partial(probe_of, registry), unreadable=_unwritable)
        return Route(path, answer, methods=[method], middleware=[known])

    return Starlette(
        routes=[
            route("/v1/pages", get_pages, "GET"),
            route("/v1/pages/{page}", get_page, "GET"),
            route("/v1/sessions", post, "POST"),
            route("/v1/sessions/{session}", delete, "DELETE"),
            route("/v1/sessions/{session}/result", put_result, "PUT"),
        ],
        exception_handlers=exception_handlers(_ERRORS),
    )


def _begin_capture(captures: Captures, sessions: SessionTable, session: Session, port: int) -> None:
    try:
        session.capture = captures.begin(session.probe, session.run, session.id, port)
    except CaptureRefused:
        sessions.end(session.id, session.probe)  # who wanted a capture does not want to measure without
        raise


def _error(status: int, error: Exception | str) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status, {"Retry-After": str(_LATER_S)} if status == 503 else None)


def _unwritable(error: sqlite3.Error) -> JSONResponse:
    """The registry's disk is full, or its file damaged: the probe may come again later."""
    _LOG.warning("registry: %s", error)
    return _error(503, f"the endpoint's registry does not take sessions now: {error}")


def _no_result(error: OSError) -> JSONResponse:
    _LOG.warning("results: %s", error)
    return _error(503, f"the endpoint cannot keep results now: {error.strerror}")


_ERRORS: dict[type[Exception], Callable[[Any], JSONResponse]] = {
    Unreadable: lambda error: _error(400, error),
    OptionsError: lambda error: _error(400, error),
    ClientDisconnect: lambda _: _error(400, "the connection broke"),  # nobody reads it
    TimeoutError: lambda _: _error(408, "the body did not come in time"),
    TooMuch: lambda error: _error(413, error),
    Refused: lambda error: _error(429, error),
    CaptureRefused: lambda error: _error(429, error),
    sqlite3.Error: _unwritable,
    OSError: _no_result,
}
"""What goes wrong with a request becomes a status here (docs/reference/endpoint-api.md)."""

_NO_SESSION = _error(404, "no such session")


def _page(pages: PageStore | None, name: str) -> tuple[int, dict[str, Any]]:
    try:
        opened = None if pages is None else pages.open(name)
    except (PageError, OSError) as error:
        return 503, {"error": f"page {name[:64]}: {error}"}
    if opened is None:
        return 404, {"error": f"no page {name[:64]}; hint: tandem-server page build, record or import on the server"}
    return 200, {**public(opened.page), "tls": opened.public}


def _sender_side(session: Session) -> dict[str, Any]:
    connections = session.summaries
    return {
        "bytes_sent": sum(c["bytes_sent"] or 0 for c in connections),
        "bytes_received": sum(c.get("bytes_received", 0) for c in connections),
        "connections": connections,
        "capture": session.captured,
    }
