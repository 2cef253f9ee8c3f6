"""The control channel: sessions are opened and ended over HTTPS with the probe's token (docs/reference/endpoint-api.md)."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tandem_server.content.page.index import PageError, public
from tandem_server.content.page.shelf import Shelf
from tandem_server.door import come_in
from tandem_server.endpoint.capture import CaptureRefused, Captures
from tandem_server.endpoint.environment import read_environment
from tandem_server.endpoint.options import OptionsError, negotiate
from tandem_server.endpoint.reflector import Reflector
from tandem_server.endpoint.results import RESULT_BYTES, BadResult, Results
from tandem_server.endpoint.session_ask import BadAsk, read_session_ask
from tandem_server.endpoint.sessions import Refused, Session, SessionTable
from tandem_server.registry import Registry
from tandem_server.registry.bearer import probe_of

_LOG = logging.getLogger("tandem.endpoint.control")
_BODY_LIMIT_BYTES = 16 * 1024


def control_app(
    registry: Registry,
    sessions: SessionTable,
    measurement_port: int,
    results: Results,
    captures: Captures | None = None,
    reflector: Reflector | None = None,
    measurement_tls_port: int | None = None,
    further_addresses: Sequence[str] = (),
    pages: Shelf | None = None,
    body_s: float = 60.0,
) -> Starlette:
    """The ASGI application. ``captures``: None when none are allowed. ``reflector``: None when there is none; then its part of
    the answers is null. ``measurement_tls_port``: None when the measurement listener speaks no TLS. ``further_addresses``: where the
    measurement listeners are reached besides. ``pages``: None: there are none. ``body_s``: within which a body must be whole."""

    async def post(request: Request) -> JSONResponse:
        probe = await _probe(registry, request)
        if isinstance(probe, JSONResponse):
            return probe
        try:
            body = await _body(request, _BODY_LIMIT_BYTES, body_s)
            ask = read_session_ask(body)
            options = negotiate(ask.options)
            if ask.capture and captures is None:
                raise BadAsk("this endpoint allows no captures ([capture] allowed in its server.toml)")
            port = measurement_tls_port if ask.tls else measurement_port
            if port is None:
                raise BadAsk("this endpoint measures without TLS ([listen] measurement_tls_port in its server.toml)")
            session = await run_in_threadpool(
                sessions.open,
                probe,
                ask.run,
                ask.kind,
                ask.path,
                ask.paths,
                ask.payload_bytes,
                ask.seconds,
                ask.budget_bytes,
                ask.options,
                ask.tls,
            )
            if ask.capture and captures is not None:
                await run_in_threadpool(_begin_capture, captures, sessions, session, port)
        except (BadAsk, OptionsError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except (Refused, CaptureRefused) as error:
            return JSONResponse({"error": str(error)}, 429)
        except _TooLong as error:
            return JSONResponse({"error": str(error)}, 413)
        answer = {
            "session": session.id,
            "key": session.key.hex(),
            "expires_s": int(session.idle_s),
            "budget_bytes": session.budget_bytes,
            "measurement_port": port,
            "further_addresses": list(further_addresses),
            "reflector": None if reflector is None else reflector.told(),
            "options": options.told(),
            "environment": read_environment(),
        }
        return JSONResponse(answer, 201)

    async def delete(request: Request) -> JSONResponse:
        probe = await _probe(registry, request)
        if isinstance(probe, JSONResponse):
            return probe
        session = await run_in_threadpool(sessions.end, request.path_params["session"], probe)
        if session is None:
            return JSONResponse({"error": "no such session"}, 404)
        return JSONResponse(_sender_side(session))

    async def put_result(request: Request) -> JSONResponse:
        probe = await _probe(registry, request)
        if isinstance(probe, JSONResponse):
            return probe
        session = await run_in_threadpool(sessions.get, request.path_params["session"])
        if session is None or session.probe != probe:
            return JSONResponse({"error": "no such session"}, 404)
        try:
            body = await _body(request, RESULT_BYTES, body_s)
            await run_in_threadpool(results.put, probe, session.run, session.id, body)
        except _TooLong as error:
            return JSONResponse({"error": str(error)}, 413)
        except BadResult as error:
            return JSONResponse({"error": str(error)}, 400)
        except OSError as error:
            _LOG.warning("results: %s", error)
            told = f"the endpoint cannot keep results now: {error.strerror}"
            return JSONResponse({"error": told}, 503, {"Retry-After": "10"})
        session.charge(len(body))
        return JSONResponse({"bytes": len(body)})

    async def get_page(request: Request) -> JSONResponse:
        if isinstance(refusal := await _probe(registry, request), JSONResponse):
            return refusal
        status, told = await run_in_threadpool(_page, pages, request.path_params["page"])
        return JSONResponse(told, status)

    async def get_pages(request: Request) -> JSONResponse:
        if isinstance(refusal := await _probe(registry, request), JSONResponse):
            return refusal
        return JSONResponse({"pages": [] if pages is None else await run_in_threadpool(pages.names)})

    return Starlette(
        routes=[
            Route("/v1/pages", get_pages, methods=["GET"]),
            Route("/v1/pages/{page}", get_page, methods=["GET"]),
            Route("/v1/sessions", post, methods=["POST"]),
            Route("/v1/sessions/{session}", delete, methods=["DELETE"]),
            Route("/v1/sessions/{session}/result", put_result, methods=["PUT"]),
        ],
        exception_handlers={sqlite3.Error: _unwritable, TimeoutError: _late, ClientDisconnect: _gone},
    )


def _begin_capture(captures: Captures, sessions: SessionTable, session: Session, port: int) -> None:
    try:
        session.capture = captures.begin(session.probe, session.run, session.id, port)
    except CaptureRefused:
        sessions.end(session.id, session.probe)  # who wanted a capture does not want to measure without
        raise


class _TooLong(ValueError):  # noqa: N818  (an answer, no accident)
    """The body is longer than it may be."""


async def _body(request: Request, limit: int, within_s: float) -> bytes:
    body = bytearray()
    async with asyncio.timeout(within_s):
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit:
                raise _TooLong(f"more than {limit} bytes")
    return bytes(body)


def _unwritable(_request: Request, error: Exception) -> JSONResponse:
    """The registry's disk is full, or its file damaged: the probe may ask again later."""
    _LOG.warning("registry: %s", error)
    return JSONResponse(
        {"error": f"the endpoint's registry does not take sessions now: {error}"}, 503, {"Retry-After": "10"}
    )


def _late(_request: Request, _error: Exception) -> JSONResponse:
    return JSONResponse({"error": "the body did not come in time"}, 408)


def _gone(_request: Request, _error: Exception) -> JSONResponse:
    return JSONResponse({"error": "the connection broke"}, 400)  # nobody reads it


def _page(pages: Shelf | None, name: str) -> tuple[int, dict[str, Any]]:
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


async def _probe(registry: Registry, request: Request) -> str | JSONResponse:
    """Whose token the request bears, or what it is told without a good one, or when it asks too much."""
    probe = await run_in_threadpool(probe_of, registry, request.headers.get("authorization"))
    if probe is None:
        return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})
    if wait_s := come_in(request, probe):
        return JSONResponse({"error": "more than this probe may ask a minute"}, 429, {"Retry-After": str(wait_s)})
    return probe
