"""The gateway's HTTP side (docs/reference/probe-api.md): its resources, and what goes wrong with a request, which becomes a status here and
nowhere else."""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import math
import random
import sqlite3
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tandem.schema.manifest import PLAIN_NAME
from tandem.schema.trace import TraceError
from tandem_server import __version__
from tandem_server.http.body import BodyReader, Budget, Busy, TooMuch, Unreadable, decode, receive
from tandem_server.http.context import PROBE, Authentication, count_lines, exception_handlers, probe_in
from tandem_server.http.rates import Buckets, DaySpent, DiskShare, NoRoom, Reserve
from tandem_server.ingest.documents import (
    CampaignResource,
    EnrolmentResource,
    InvalidManifest,
    Tunnel,
    read_manifest,
)
from tandem_server.ingest.group_commit import GroupCommit, LateNotes
from tandem_server.ingest.lines import (
    BYTES_LIMIT,
    REASON_CHARACTERS,
    FastPathCache,
    NewSeries,
    TimeWindow,
    ValidatedBatch,
    validate_batch,
)
from tandem_server.ingest.meter import NOBODY_READS, Meter
from tandem_server.registry import BadCode, KeyTaken, LedgerConflict, NameTaken, Registry, TooManyUnfinished, probe_of
from tandem_server.store import SeriesStore, StoreDown, TooManyRefused
from tandem_server.uploads.resource import UploadResource
from tandem_server.uploads.service import BadBytes, NoOffer, Refused, TooLarge, TooLong, UploadService
from tandem_server.uploads.store import TraceStoreDown, TraceStoreFull

_LOG = logging.getLogger("tandem.gateway")
_MANIFEST_LIMIT_BYTES = 1024 * 1024
_SMALL_BYTES, _SMALL_LINES = 64 * 1024, 200
"""A batch up to this is validated on the event loop: that takes less than to hand it to a thread and back."""

_OPEN_TO_ALL = (("POST", "/v1/enrol"), ("GET", "/v1/health"), ("HEAD", "/v1/health"))
_OfProbe = Callable[[Request, str], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class GatewayLimits:
    """``in_flight`` requests at once, and ``bytes_in_flight`` of theirs held in memory; the rest are answered 503. ``at_work``: large
    batches and documents read at once, of each probe one.
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
    """Answers probes. Every store and registry call runs in a worker thread, but for the look-up of a token. ``meter`` counts, and notes
    each request with a good token. ``late``: gets all lines that are stored, before the probe is answered. ``tunnel``: of the probes that
    enrol; ``peers_changed``: called when one did. ``collector_version``: that probes shall run. ``reserve``: of the disks of database and
    registry."""

    def __init__(
        self,
        registry: Registry,
        store: SeriesStore,
        limits: GatewayLimits,
        uploads: UploadService,
        meter: Meter | None = None,
        late: LateNotes | None = None,
        tunnel: Tunnel | None = None,
        peers_changed: Callable[[], None] = lambda: None,
        collector_version: str = __version__,
        reserve: Reserve = Reserve((), 0),  # noqa: B008  it has no state
    ) -> None:
        self._meter = Meter() if meter is None else meter
        self._registry, self._store, self._limits, self._late = registry, store, limits, late
        self._disk = DiskShare(reserve, limits.document_bytes_per_day)
        self._collector_version = collector_version
        self._in_flight = 0
        self._bytes = Budget(limits.bytes_in_flight)
        self._series = NewSeries(limits.series_per_hour)
        self._cache, self._commit = FastPathCache(), GroupCommit(store.write, self._meter)
        self._readers = BodyReader(self._bytes, limits.body_s, limits.at_work)
        self._campaigns = CampaignResource(registry.campaigns, self._readers)
        self._uploads = UploadResource(uploads, self._readers, limits.body_s)
        self._enrolment = EnrolmentResource(registry.enrolments, tunnel, limits.body_s, peers_changed)

    def app(self) -> Starlette:
        """The ASGI application."""
        errors = handlers(self._limits.body_s)
        return Starlette(
            routes=[
                Route("/v1/records", self._bounded(self._records), methods=["POST"]),
                Route("/v1/runs/{run}", self._bounded(self._run), methods=["PUT"]),
                Route("/v1/campaigns", self._bounded(self._campaigns.listed), methods=["GET"]),
                Route("/v1/campaigns/{campaign}", self._bounded(self._campaigns.file), methods=["GET"]),
                Route("/v1/campaigns/{campaign}/state", self._bounded(self._campaigns.state), methods=["PUT"]),
                Route("/v1/traces", self._bounded(self._uploads.offer), methods=["POST"]),
                # May take long, and has bounds of its own.
                Route("/v1/traces/{sha256}", _of_probe(self._uploads.append), methods=["PATCH"]),
                Route("/v1/traces/{sha256}", self._bounded(self._uploads.state), methods=["GET"]),
                Route("/v1/probe", self._bounded(self._probe), methods=["GET"]),
                Route("/v1/enrol", self._enrolment.answer, methods=["POST"]),
                Route("/v1/health", self._health, methods=["GET"]),
            ],
            middleware=[
                Middleware(
                    Authentication,
                    probe_of=functools.partial(probe_of, self._registry),
                    unreadable=registry_down,
                    observer=self._meter,
                    open_to_all=_OPEN_TO_ALL,
                    failures=Buckets(self._limits.failures_per_minute),
                )
            ],
            exception_handlers={404: _no_such_resource, 405: _no_such_resource, **errors},
        )

    def _bounded(self, answer: _OfProbe) -> Callable[[Request], Awaitable[Response]]:
        """``answer``, or 503 while there are too many requests at once."""

        async def bounded(request: Request) -> Response:
            if self._in_flight >= self._limits.in_flight:
                raise Busy("too many requests at once", 1)
            self._in_flight += 1
            self._meter.at_once(self._in_flight, self._bytes.held)
            try:
                return await answer(request, probe_in(request))
            finally:
                self._in_flight -= 1

        return bounded

    async def _records(self, request: Request, probe: str) -> Response:
        self._disk.reserve.check()
        with self._bytes.share() as held:
            async with asyncio.timeout(self._limits.body_s):
                body = await receive(request.stream(), BYTES_LIMIT, held.take)
            began_s = time.perf_counter()
            encoding = request.headers.get("content-encoding")
            batch = self._validate_small(body, encoding, probe)
            if batch is None:
                text_of = functools.partial(decode, body, encoding, BYTES_LIMIT, held.take)
                batch = await self._readers.run(probe, lambda: self._validate(text_of(), probe))
                del text_of
            del body
            if wait_s := self._series.wait_s(probe, batch.series):
                raise TooFast("more new series than this probe may begin an hour", wait_s)
            size = sum(map(len, batch.lines))
            # Lines are held as such and, while they are written, as one text.
            held.hold(2 * size + sum(len(reason) for _, reason in batch.rejected))
            self._meter.at_once(self._in_flight, self._bytes.held)
            refused = await self._commit.store(probe, batch.lines, size)
            if self._late is not None:
                await self._late.note(probe, batch.lines)
        found = sorted(batch.rejected + [(batch.origins[one.index], one.reason) for one in refused])
        rejected = [{"line": line, "reason": reason[:REASON_CHARACTERS]} for line, reason in found]
        count_lines(request, len(batch.lines) + len(batch.rejected))
        accepted, reason = len(batch.lines) - len(refused), found[-1][1][:REASON_CHARACTERS] if found else None
        self._meter.lines(probe, accepted, len(rejected), reason, time.perf_counter() - began_s)
        if rejected:
            _LOG.warning("%s: %d lines rejected, the first: %s", probe, len(rejected), rejected[0]["reason"])
        return JSONResponse({"accepted": accepted, "rejected": rejected})

    def _validate_small(self, body: bytes, encoding: str | None, probe: str) -> ValidatedBatch | None:
        """At once, or None when the batch is not small."""
        if len(body) > _SMALL_BYTES:
            return None
        try:
            text = decode(body, encoding, _SMALL_BYTES)
        except TooMuch:
            return None
        return self._validate(text, probe) if text.count("\n") < _SMALL_LINES else None

    def _validate(self, text: str, probe: str) -> ValidatedBatch:
        window = TimeWindow.at(time.time_ns(), self._limits.future_s, self._limits.retention_days)
        return validate_batch(text, probe, window, self._cache)

    async def _run(self, request: Request, probe: str) -> Response:
        run = request.path_params["run"]
        if not PLAIN_NAME.match(run):
            raise InvalidManifest("the address holds no run id")

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
            raise Busy("the database does not answer", 5) from None
        return JSONResponse({"ok": True, "version": __version__})


def _of_probe(answer: _OfProbe) -> Callable[[Request], Awaitable[Response]]:
    async def answered(request: Request) -> Response:
        return await answer(request, probe_in(request))

    return answered


async def _no_such_resource(_request: Request, error: Exception) -> Response:
    """Or none with this method. Who has no good token gets 401 before that."""
    return JSONResponse({"error": str(getattr(error, "detail", ""))}, getattr(error, "status_code", 404))


_LATER_S, _MUCH_LATER_S, _LATEST_S = 5, 30, 3600


class TooFast(Exception):  # noqa: N818  (an answer, no accident)
    """More than a probe may bring in a time: 429. ``wait_s``: until it may come again."""

    def __init__(self, why: str, wait_s: float) -> None:
        super().__init__(why)
        self.wait_s = wait_s


def later(why: str, seconds: int, *, spread: bool = True) -> JSONResponse:
    """503. With ``spread`` those refused at one moment come back over ``seconds`` to three times as long."""
    wait_s = random.randint(seconds, 3 * seconds) if spread else seconds
    return _answer(503, why, wait_s)


def registry_down(error: sqlite3.Error) -> JSONResponse:
    """503."""
    _LOG.warning("registry: %s", error)
    return later("the registry does not answer now", _LATER_S)


def handlers(body_s: float) -> dict[Any, Callable[[Request, Any], Awaitable[Response]]]:
    """Starlette's exception handlers, looked up by an exception's own class first. ``body_s``: within which a body must come."""
    answers: dict[type[Exception], Callable[[Any], Response]] = {
        Unreadable: lambda error: _answer(400, error),
        TraceError: lambda error: _answer(400, error),
        Refused: lambda error: _answer(400, error),
        TooLong: lambda error: _answer(400, error),
        LedgerConflict: lambda error: _answer(400, error),
        # One answer for all of them. The edge counts it, as it counts wrong tokens.
        BadCode: _bad_code,
        NoOffer: lambda _: _answer(404, "this probe has offered no such trace"),
        TimeoutError: lambda _: _answer(408, f"the body did not come within {body_s:g} s"),
        NameTaken: lambda error: _answer(409, error),
        KeyTaken: lambda _: _answer(409, "another probe has this WireGuard key; make a new one"),
        TooMuch: lambda error: _answer(413, error),
        TooManyRefused: lambda error: _answer(413, error),
        TooLarge: lambda error: _answer(413, error),
        BadBytes: lambda error: JSONResponse({"state": "receiving", "offset": error.offset, "error": error.why}, 422),
        DaySpent: lambda error: _answer(429, error, min(math.ceil(error.left_s), _LATEST_S)),
        TooFast: lambda error: _answer(429, error, math.ceil(error.wait_s)),
        TooManyUnfinished: lambda error: _answer(429, error, _LATEST_S),
        ClientDisconnect: lambda _: Response(status_code=NOBODY_READS),
        Busy: lambda error: later(str(error), error.later_s, spread=error.spread),
        StoreDown: lambda _: later("the database does not take records now", _LATER_S),
        sqlite3.Error: lambda _: later("the registry does not answer now", _LATER_S),
        TraceStoreDown: lambda _: later("the store takes no traces now", _MUCH_LATER_S, spread=False),
        TraceStoreFull: lambda _: _answer(507, "no room for traces now", _MUCH_LATER_S),
        NoRoom: lambda _: _answer(507, "the server has no room now", _MUCH_LATER_S),
        OSError: _disk_down,
    }

    return exception_handlers(answers, _log)


_LOGGED = (StoreDown, sqlite3.Error, TraceStoreDown, OSError, BadBytes)
_NOT_LOGGED = (TooManyRefused, TimeoutError, DaySpent)


def _log(request: Request, error: Exception) -> None:
    if isinstance(error, _LOGGED) and not isinstance(error, _NOT_LOGGED):
        whose = request.scope.get("state", {}).get(PROBE, "without a token")
        _LOG.warning("%s: %s: %s", whose, type(error).__name__, error)


def _answer(status: int, error: Exception | str, later_s: int | None = None) -> JSONResponse:
    headers = None if later_s is None else {"Retry-After": str(later_s)}
    return JSONResponse({"error": str(error)}, status, headers)


def _bad_code(error: BadCode) -> JSONResponse:
    if error.why is not None:
        _LOG.warning("enrolment: %s", error.why)
    return JSONResponse({"error": "no good code"}, 401, {"WWW-Authenticate": "Invitation"})


def _disk_down(error: OSError) -> JSONResponse:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return _answer(507 if full else 503, "the disk takes nothing now", _MUCH_LATER_S)
