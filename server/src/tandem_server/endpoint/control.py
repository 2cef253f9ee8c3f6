"""The control channel: sessions are opened and ended over HTTPS with the probe's token (server/spec/endpoint-api.md)."""

from __future__ import annotations

import logging
import sqlite3
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tandem_server.endpoint.environment import read_environment
from tandem_server.endpoint.options import OptionsError, negotiate
from tandem_server.endpoint.reflector import Reflector
from tandem_server.endpoint.session_ask import BadAsk, read_session_ask
from tandem_server.endpoint.sessions import Refused, Session, SessionTable
from tandem_server.registry import Registry
from tandem_server.registry.bearer import probe_of

_LOG = logging.getLogger("tandem.endpoint.control")
_BODY_LIMIT_BYTES = 16 * 1024


def control_app(
    registry: Registry, sessions: SessionTable, measurement_port: int, reflector: Reflector | None = None
) -> Starlette:
    """The ASGI application. Without a ``reflector`` its part of the answers is null."""

    async def post(request: Request) -> JSONResponse:
        probe = await run_in_threadpool(probe_of, registry, request.headers.get("authorization"))
        if probe is None:
            return _unauthorised()
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > _BODY_LIMIT_BYTES:
                return JSONResponse({"error": f"more than {_BODY_LIMIT_BYTES} bytes"}, 413)
        try:
            ask = read_session_ask(body)
            options = negotiate(ask.options)
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
            )
        except (BadAsk, OptionsError) as error:
            return JSONResponse({"error": str(error)}, 400)
        except Refused as error:
            return JSONResponse({"error": str(error)}, 429)
        answer = {
            "session": session.id,
            "expires_s": int(session.idle_s),
            "budget_bytes": session.budget_bytes,
            "measurement_port": measurement_port,
            "reflector": None if reflector is None else reflector.told(session.id),
            "options": options.told(),
            "environment": read_environment(),
        }
        return JSONResponse(answer, 201)

    async def delete(request: Request) -> JSONResponse:
        probe = await run_in_threadpool(probe_of, registry, request.headers.get("authorization"))
        if probe is None:
            return _unauthorised()
        session = await run_in_threadpool(sessions.end, request.path_params["session"], probe)
        if session is None:
            return JSONResponse({"error": "no such session"}, 404)
        return JSONResponse(_sender_side(session))

    return Starlette(
        routes=[
            Route("/v1/sessions", post, methods=["POST"]),
            Route("/v1/sessions/{session}", delete, methods=["DELETE"]),
        ],
        exception_handlers={sqlite3.Error: _unwritable},
    )


def _unwritable(_request: Request, error: Exception) -> JSONResponse:
    """The registry's disk is full, or its file damaged: the probe may ask again later."""
    _LOG.warning("registry: %s", error)
    return JSONResponse(
        {"error": f"the endpoint's registry does not take sessions now: {error}"}, 503, {"Retry-After": "10"}
    )


def _sender_side(session: Session) -> dict[str, Any]:
    connections = session.summaries
    return {
        "bytes_sent": sum(c["bytes_sent"] or 0 for c in connections),
        "bytes_received": sum(c.get("bytes_received", 0) for c in connections),
        "connections": connections,
    }


def _unauthorised() -> JSONResponse:
    return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})
