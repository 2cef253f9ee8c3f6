"""The gateway's HTTP side (docs/reference/probe-api.md)."""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import random
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
from tandem_server.door import (
    Buckets,
    DaySpent,
    DiskShare,
    NoRoom,
    Reserve,
    address_of,
    come_in,
    count_lines,
    received_bytes,
)
from tandem_server.ingest.body import Readers, Unreadable, decode, receive
from tandem_server.ingest.budget import Budget, Busy
from tandem_server.ingest.campaigns import NoReport, ProbesCampaigns
from tandem_server.ingest.enrolment import Enrolling, Tunnel
from tandem_server.ingest.group_commit import GroupCommit
from tandem_server.ingest.known_lines import KnownHeads
from tandem_server.ingest.late_notes import LateNotes
from tandem_server.ingest.lines import BYTES_LIMIT, REASON_CHARACTERS, NewSeries, Sifted, TimeWindow, TooMuch, sift
from tandem_server.ingest.meter import NOBODY_READS, Meter
from tandem_server.ingest.run_manifest import RUN_ID, NoManifest, read_manifest
from tandem_server.ingest.trace_desk import TraceDesk
from tandem_server.ingest.traces import ProbesTraces
from tandem_server.registry import LedgerConflict, Registry
from tandem_server.registry.bearer import probe_of
from tandem_server.store import SeriesStore, StoreDown, TooManyRefused

_LOG = logging.getLogger("tandem.gateway")
_MANIFEST_LIMIT_BYTES = 1024 * 1024
_LATER_S, _FULL_S = 5, 30
_SMALL_BYTES, _SMALL_LINES = 64 * 1024, 200
"""A batch up to this is checked on the event loop: that takes less than to hand it to a thread and back."""


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """``in_flight`` requests at once, and ``bytes_in_flight`` of theirs held in memory; the rest are told 503. ``at_work``: large batches
    and documents read at once, of each probe one.
    ``body_s``: within which a body must be whole. ``future_s``: how far a probe's clock may run ahead.
    Of a probe: ``document_bytes_per_day`` of manifests, as stored, and ``series_per_hour`` that it may begin. Of an address:
    ``failures_per_minute`` requests without a good token."""

    in_flight: int = 2048
    bytes_in_flight: int = 64 * 1024 * 1024
    at_work: int = 4
    body_s: float = 60.0
    future_s: float = 600.0
    retention_days: int | None = None
    document_bytes_per_day: int = 200_000_000
    series_per_hour: int = 20_000
    failures_per_minute: int = 30


class Gateway:
    """Answers probes. Every store and registry call runs in a worker thread, but for the look-up of a token. ``saw``: told of each
    request with a good token. ``meter`` counts. ``late``: told of all lines that are stored, before the probe is. ``tunnel``: of the
    probes that enrol; ``peers_changed``: called when one did. ``collector_version``: that probes shall run.
    ``reserve``: of the disks of database and registry."""

    def __init__(
        self,
        registry: Registry,
        store: SeriesStore,
        limits: GatewayLimits,
        traces: TraceDesk,
        saw: Callable[[str], None] = lambda _: None,
        meter: Meter | None = None,
        late: LateNotes | None = None,
        tunnel: Tunnel | None = None,
        peers_changed: Callable[[], None] = lambda: None,
        collector_version: str = __version__,
        reserve: Reserve = Reserve((), 0),  # noqa: B008  it has no state
    ) -> None:
        self._meter = Meter() if meter is None else meter
        self._registry, self._store, self._limits = registry, store, limits
        self._saw, self._late = saw, late
        self._disk = DiskShare(reserve, limits.document_bytes_per_day)
        self._collector_version = collector_version
        self._in_flight = 0
        self._bytes = Budget(limits.bytes_in_flight)
        self._strangers = Buckets(limits.failures_per_minute)
        self._series = NewSeries(limits.series_per_hour)
        self._heads, self._commit = KnownHeads(), GroupCommit(store.write, self._meter)
        self._readers = Readers(self._bytes, limits.body_s, limits.at_work)
        self._campaigns = ProbesCampaigns(registry.campaigns, self._readers)
        self._traces = ProbesTraces(traces, self._readers, limits.body_s)
        self._enrolling = Enrolling(registry.enrolments, tunnel, limits.body_s, peers_changed)

    def app(self) -> Starlette:
        """The ASGI application."""
        return Starlette(
            routes=[
                Route("/v1/records", self._guarded(self._records), methods=["POST"]),
                Route("/v1/runs/{run}", self._guarded(self._run), methods=["PUT"]),
                Route("/v1/campaigns", self._guarded(self._campaigns.listed), methods=["GET"]),
                Route("/v1/campaigns/{campaign}", self._guarded(self._campaigns.file), methods=["GET"]),
                Route("/v1/campaigns/{campaign}/state", self._guarded(self._campaigns.state), methods=["PUT"]),
                Route("/v1/traces", self._guarded(self._traces.offer), methods=["POST"]),
                Route("/v1/traces/{sha256}", self._guarded(self._traces.append, counted=False), methods=["PATCH"]),
                Route("/v1/traces/{sha256}", self._guarded(self._traces.state), methods=["GET"]),
                Route("/v1/probe", self._guarded(self._probe), methods=["GET"]),
                Route("/v1/enrol", self._open(self._enrolling.answer), methods=["POST"]),
                Route("/v1/health", self._open(self._health), methods=["GET"]),
            ],
            exception_handlers={404: self._elsewhere, 405: self._elsewhere},
        )

    def _guarded(
        self, answer: Callable[[Request, str], Awaitable[Response]], counted: bool = True
    ) -> Callable[[Request], Awaitable[Response]]:
        """Token, back-pressure and the answers that all requests with a body share. Not ``counted``: one that may take
        long and has bounds of its own."""

        async def guarded(request: Request) -> Response:
            try:
                # 15 µs out of SQLite's memory, a tenth of the way to a thread and back. Nothing is remembered here: a
                # revoked token is void at once.
                probe = probe_of(self._registry, request.headers.get("authorization"))
            except sqlite3.Error as error:
                return _registry_down(error)
            if probe is None:
                self._meter.stranger()
                return JSONResponse({"error": "no good token"}, 401, {"WWW-Authenticate": "Bearer"})
            self._saw(probe)
            response = await answered(request, probe)
            self._meter.answered(probe, response.status_code, received_bytes(request))
            return response

        async def answered(request: Request, probe: str) -> Response:
            if wait_s := come_in(request, probe):
                return _too_much("more than this probe may send a minute", wait_s)
            if counted and self._in_flight >= self._limits.in_flight:
                return _later("too many requests at once", 1)
            self._in_flight += counted
            self._meter.at_once(self._in_flight, self._bytes.held)
            try:
                return await answer(request, probe)
            except (TooMuch, TooManyRefused) as error:
                return JSONResponse({"error": str(error)}, 413)
            except (Unreadable, NoManifest, NoReport, LedgerConflict) as error:
                return JSONResponse({"error": str(error)}, 400)
            except TimeoutError:
                return JSONResponse({"error": f"the body did not come within {self._limits.body_s:g} s"}, 408)
            except Busy as error:
                return _later(str(error), 1)
            except StoreDown as error:
                _LOG.warning("store: %s", error)
                return _later("the database does not take records now", _LATER_S)
            except sqlite3.Error as error:
                return _registry_down(error)
            except NoRoom as error:
                _LOG.warning("%s: no room: %s", probe, error)
                return JSONResponse({"error": "the server has no room now"}, 507, {"Retry-After": str(_FULL_S)})
            except DaySpent as error:
                return _too_much(str(error), error.left_s)
            except ClientDisconnect:
                return Response(status_code=NOBODY_READS)
            finally:
                self._in_flight -= counted

        return guarded

    def _open(self, answer: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        """What is answered without a token, too: each address as often a minute as it may fail elsewhere."""
        known = self._guarded(lambda request, _: answer(request))

        async def opened(request: Request) -> Response:
            try:
                if probe_of(self._registry, request.headers.get("authorization")) is not None:
                    return await known(request)
            except sqlite3.Error as error:
                return _registry_down(error)
            self._meter.stranger()
            address = "" if request.client is None else address_of(request.client.host)
            if wait_s := self._strangers.wait_s(address):
                return _too_much("too many requests without a good token", wait_s)
            self._strangers.take(address)
            return await answer(request)

        return opened

    async def _elsewhere(self, request: Request, error: Exception) -> Response:
        """No such resource, or none with this method. A stranger is told 401, which the door counts."""

        async def told(_request: Request, _probe: str) -> Response:
            return JSONResponse({"error": str(getattr(error, "detail", ""))}, getattr(error, "status_code", 404))

        return await self._guarded(told)(request)

    async def _records(self, request: Request, probe: str) -> Response:
        self._disk.reserve.check()
        with self._bytes.share() as held:
            async with asyncio.timeout(self._limits.body_s):
                body = await receive(request.stream(), BYTES_LIMIT, held.take)
            began_s = time.perf_counter()
            encoding = request.headers.get("content-encoding")
            sifted = self._sift_small(body, encoding, probe)
            if sifted is None:
                text_of = functools.partial(decode, body, encoding, BYTES_LIMIT, held.take)
                sifted = await self._readers.run(probe, lambda: self._sift(text_of(), probe))
                del text_of
            del body
            if wait_s := self._series.wait_s(probe, sifted.series):
                return _too_much("more new series than this probe may begin an hour", wait_s)
            size = sum(map(len, sifted.lines))
            # Lines are held as such and, while they are written, as one text.
            held.hold(2 * size + sum(len(reason) for _, reason in sifted.rejected))
            self._meter.at_once(self._in_flight, self._bytes.held)
            refused = await self._commit.store(probe, sifted.lines, size)
            if self._late is not None:
                await self._late.note(probe, sifted.lines)
        rejected = sifted.rejected + [(sifted.origins[one.index], one.reason) for one in refused]
        told = [{"line": line, "reason": reason[:REASON_CHARACTERS]} for line, reason in sorted(rejected)]
        count_lines(request, len(sifted.lines) + len(sifted.rejected))
        accepted, reason = len(sifted.lines) - len(refused), max(rejected)[1][:REASON_CHARACTERS] if rejected else None
        self._meter.lines(probe, accepted, len(told), reason, time.perf_counter() - began_s)
        if told:
            _LOG.warning("%s: %d lines rejected, the first: %s", probe, len(told), told[0]["reason"])
        return JSONResponse({"accepted": accepted, "rejected": told})

    def _sift_small(self, body: bytes, encoding: str | None, probe: str) -> Sifted | None:
        """At once, or None when the batch is not small."""
        if len(body) > _SMALL_BYTES:
            return None
        try:
            text = decode(body, encoding, _SMALL_BYTES)
        except TooMuch:
            return None
        return self._sift(text, probe) if text.count("\n") < _SMALL_LINES else None

    def _sift(self, text: str, probe: str) -> Sifted:
        window = TimeWindow.at(time.time_ns(), self._limits.future_s, self._limits.retention_days)
        return sift(text, probe, window, self._heads)

    async def _run(self, request: Request, probe: str) -> Response:
        run = request.path_params["run"]
        if not RUN_ID.match(run):
            raise NoManifest("the address holds no run id")

        def put(text: str) -> None:
            manifest = read_manifest(text, run, probe)
            self._disk.check(probe)
            self._disk.charge(probe, self._registry.runs.put(run, probe, manifest))

        await self._readers.document(request, probe, _MANIFEST_LIMIT_BYTES, put)
        return JSONResponse({"ok": True})

    async def _probe(self, _request: Request, probe: str) -> Response:
        return JSONResponse({"probe": probe, "collector_version": self._collector_version})

    async def _health(self, _request: Request) -> Response:
        try:
            await run_in_threadpool(self._store.ping)
        except StoreDown:
            return _later("the database does not answer", _LATER_S)
        return JSONResponse({"ok": True, "version": __version__})


def _later(why: str, seconds: int) -> JSONResponse:
    """503. Those told at one moment come back spread over ``seconds`` to three times as long."""
    return JSONResponse({"error": why}, 503, {"Retry-After": str(random.randint(seconds, 3 * seconds))})


def _too_much(why: str, wait_s: float) -> JSONResponse:
    return JSONResponse({"error": why}, 429, {"Retry-After": str(math.ceil(wait_s))})


def _registry_down(error: sqlite3.Error) -> JSONResponse:
    _LOG.warning("registry: %s", error)
    return _later("the registry does not answer now", _LATER_S)
