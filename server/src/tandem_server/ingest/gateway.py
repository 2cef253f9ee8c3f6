"""The gateway's HTTP side (server/spec/ingest-api.md)."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tandem_server import __version__
from tandem_server.ingest.body import Unreadable, decode, receive
from tandem_server.ingest.campaigns import NoReport, ProbesCampaigns
from tandem_server.ingest.lines import BYTES_LIMIT, TimeWindow, TooMuch, sift
from tandem_server.ingest.run_manifest import RUN_ID, NoManifest, read_manifest
from tandem_server.registry import LedgerConflict, Registry
from tandem_server.registry.bearer import probe_of
from tandem_server.store import Influx, StoreDown

_LOG = logging.getLogger("tandem.gateway")
_MANIFEST_LIMIT_BYTES = 1024 * 1024
_LATER_S = 5


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """``in_flight`` requests with a body at once, of which ``at_work`` are being checked and stored; the rest are told
    503. ``body_s``: within which a body must be whole. ``future_s``: how far a probe's clock may run ahead."""

    in_flight: int = 16
    at_work: int = 2
    body_s: float = 60.0
    future_s: float = 600.0
    retention_days: int | None = None


class Gateway:
    """Answers probes. Every store and registry call runs in a worker thread."""

    def __init__(self, registry: Registry, store: Influx, limits: GatewayLimits) -> None:
        self._registry, self._store, self._limits = registry, store, limits
        self._in_flight = 0
        self._at_work = asyncio.Semaphore(limits.at_work)
        self._campaigns = ProbesCampaigns(registry.campaigns, limits.body_s)

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/records", self._guarded(self._records), methods=["POST"]),
                Route("/v1/runs/{run}", self._guarded(self._run), methods=["PUT"]),
                Route("/v1/campaigns", self._guarded(self._campaigns.listed), methods=["GET"]),
                Route("/v1/campaigns/{campaign}", self._guarded(self._campaigns.file), methods=["GET"]),
                Route("/v1/campaigns/{campaign}/state", self._guarded(self._campaigns.state), methods=["PUT"]),
                Route("/v1/health", self._health, methods=["GET"]),
            ]
        )

    def _guarded(
        self, answer: Callable[[Request, str], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """Token, back-pressure and the answers that all requests with a body share."""

        async def guarded(request: Request) -> Response:
            probe = await run_in_threadpool(probe_of, self._registry, request.headers.get("authorization"))
            if probe is None:
                return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})
            if self._in_flight >= self._limits.in_flight:
                return _later("too many requests at once", 1)
            self._in_flight += 1
            try:
                return await answer(request, probe)
            except TooMuch as error:
                return JSONResponse({"error": str(error)}, 413)
            except (Unreadable, NoManifest, NoReport, LedgerConflict) as error:
                return JSONResponse({"error": str(error)}, 400)
            except TimeoutError:
                return JSONResponse({"error": f"the body did not come within {self._limits.body_s:g} s"}, 408)
            except StoreDown as error:
                _LOG.warning("store: %s", error)
                return _later("the database does not take records now", _LATER_S)
            except sqlite3.Error as error:
                _LOG.warning("registry: %s", error)
                return _later("the registry does not answer now", _LATER_S)
            except ClientDisconnect:
                return Response(status_code=400)  # nobody reads it
            finally:
                self._in_flight -= 1

        return guarded

    async def _records(self, request: Request, probe: str) -> Response:
        async with asyncio.timeout(self._limits.body_s):
            body = await receive(request.stream(), BYTES_LIMIT)
        encoding = request.headers.get("content-encoding")
        async with self._at_work:
            accepted, rejected = await run_in_threadpool(self._store_lines, body, encoding, probe)
        if rejected:
            _LOG.warning("%s: %d lines rejected, the first: %s", probe, len(rejected), rejected[0]["reason"])
        return JSONResponse({"accepted": accepted, "rejected": rejected})

    def _store_lines(self, body: bytes, encoding: str | None, probe: str) -> tuple[int, list[dict[str, object]]]:
        window = TimeWindow.at(time.time_ns(), self._limits.future_s, self._limits.retention_days)
        sifted = sift(decode(body, encoding, BYTES_LIMIT), probe, window)
        refused = self._store.write(sifted.lines)
        rejected = sifted.rejected + [(sifted.origins[one.index], one.reason) for one in refused]
        told = [{"line": line, "reason": reason[:500]} for line, reason in sorted(rejected)]
        return len(sifted.lines) - len(refused), told

    async def _run(self, request: Request, probe: str) -> Response:
        run = request.path_params["run"]
        if not RUN_ID.match(run):
            raise NoManifest("the address holds no run id")
        async with asyncio.timeout(self._limits.body_s):
            body = await receive(request.stream(), _MANIFEST_LIMIT_BYTES)
        text = decode(body, request.headers.get("content-encoding"), _MANIFEST_LIMIT_BYTES)
        await run_in_threadpool(self._registry.runs.put, run, probe, read_manifest(text, run, probe))
        return JSONResponse({"ok": True})

    async def _health(self, _request: Request) -> Response:
        try:
            await run_in_threadpool(self._store.ping)
        except StoreDown:
            return _later("the database does not answer", _LATER_S)
        return JSONResponse({"ok": True, "version": __version__})


def _later(why: str, seconds: int) -> JSONResponse:
    return JSONResponse({"error": why}, 503, {"Retry-After": str(seconds)})
