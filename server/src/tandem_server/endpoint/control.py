"""The control channel: sessions are opened and ended over HTTPS with the probe's token (server/spec/endpoint-api.md)."""

from __future__ import annotations

import ipaddress
import json
import logging
import re
import sqlite3
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tandem_server.endpoint.environment import read_environment
from tandem_server.endpoint.paths import PathPeer
from tandem_server.endpoint.sessions import Refused, Session, SessionTable
from tandem_server.registry import Registry
from tandem_server.registry.bearer import probe_of

_LOG = logging.getLogger("tandem.endpoint.control")
_BODY_LIMIT_BYTES = 16 * 1024
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")
_WORD = re.compile(r"[^\x00-\x1f\x7f\\\ud800-\udfff]{1,64}\Z")
_PATHS_LIMIT = 8


class BadAsk(ValueError):  # noqa: N818  (an answer, no accident)
    """The body is no request for a session; the reason is told with status 400."""


@dataclass(frozen=True, slots=True)
class SessionAsk:
    """A request for a session, checked. At most one of ``payload_bytes`` and ``seconds`` is set."""

    run: str
    kind: str
    path: str | None
    paths: dict[str, PathPeer]
    payload_bytes: int | None
    seconds: float | None


def read_session_ask(body: bytes) -> SessionAsk:
    """Check the body of ``POST /v1/sessions``; BadAsk names what is wrong."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise BadAsk("the body is not JSON") from None
    if not isinstance(asked, dict):
        raise BadAsk("the body is no JSON object")
    unknown = asked.keys() - {"run", "kind", "path", "bytes", "seconds", "paths"}
    if unknown:
        raise BadAsk(f"unknown key {min(unknown)!r}")
    if not isinstance(asked.get("run"), str) or not _ID.match(asked["run"]):
        raise BadAsk("run is no id")
    if asked.get("kind") not in ("mptcp", "tcp"):
        raise BadAsk("kind is neither mptcp nor tcp")
    payload_bytes, seconds = asked.get("bytes"), asked.get("seconds")
    if payload_bytes is not None and (type(payload_bytes) is not int or payload_bytes < 1):
        raise BadAsk("bytes is no whole number from 1")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 < seconds < 1e5):
        raise BadAsk("seconds is no time above 0")
    if payload_bytes is not None and seconds is not None:
        raise BadAsk("bytes and seconds: ask for one")
    path = asked.get("path")
    if path is not None:
        _word(path, "path")
    return SessionAsk(asked["run"], asked["kind"], path, _paths(asked.get("paths")), payload_bytes, seconds)


def control_app(registry: Registry, sessions: SessionTable, measurement_port: int) -> Starlette:
    """The ASGI application."""

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
            session = await run_in_threadpool(
                sessions.open, probe, ask.run, ask.kind, ask.path, ask.paths, ask.payload_bytes, ask.seconds
            )
        except BadAsk as error:
            return JSONResponse({"error": str(error)}, 400)
        except Refused as error:
            return JSONResponse({"error": str(error)}, 429)
        answer = {
            "session": session.id,
            "expires_s": int(session.idle_s),
            "budget_bytes": session.budget_bytes,
            "measurement_port": measurement_port,
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
    return {"bytes_sent": sum(c["bytes_sent"] for c in session.summaries), "connections": session.summaries}


def _unauthorised() -> JSONResponse:
    return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})


def _paths(asked: object) -> dict[str, PathPeer]:
    if asked is None:
        return {}
    if not isinstance(asked, dict) or len(asked) > _PATHS_LIMIT:
        raise BadAsk(f"paths is no object of at most {_PATHS_LIMIT} paths")
    paths = {}
    for name, peer in asked.items():
        _word(name, "a path's name")
        if not isinstance(peer, dict) or peer.keys() - {"operator", "address"}:
            raise BadAsk(f"path {name!r} is not {{operator, address}}")
        operator, address = peer.get("operator"), peer.get("address")
        if operator is not None:
            _word(operator, "operator")
        if address is not None:
            address = _address(address)
        paths[str(name)] = PathPeer(operator, address)
    return paths


def _word(value: object, what: str) -> None:
    if not isinstance(value, str) or not _WORD.match(value):
        raise BadAsk(f"{what} is no text of 1 to 64 printable characters")


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(value if isinstance(value, str) else ""))
    except ValueError:
        raise BadAsk(f"address {value!r} is no IP address") from None
