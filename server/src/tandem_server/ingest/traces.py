"""Traces over HTTP (docs/reference/probe-api.md, "Traces"): offers, bytes, states, receipts."""

from __future__ import annotations

import asyncio
import errno
import functools
import json
import logging
import math
import re
from collections.abc import Awaitable, Callable
from typing import NoReturn

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from tandem.schema.trace import TraceError, is_sha256, read_offer
from tandem_server.door import DaySpent, NoRoom
from tandem_server.ingest.body import Readers
from tandem_server.ingest.trace_desk import Refused, State, TooLarge, TraceDesk
from tandem_server.ingest.trace_stream import Busy
from tandem_server.ingest.trace_wait import Superseded, Wait
from tandem_server.ingest.trace_writer import BadBytes, NoOffer, TooLong, Writer, WrongOffset
from tandem_server.registry import NameTaken, TooManyUnfinished
from tandem_server.store.trace_store import TraceStoreDown, TraceStoreFull

_LOG = logging.getLogger("tandem.traces")
OFFER_LIMIT_BYTES = 1536 * 1024
"""Of the longest that ``tandem.schema.trace`` allows, spaces and all."""

_OFFSET = re.compile(r"[0-9]{1,12}\Z")
_APPEND_BYTES = 512 * 1024
_SETTLE_S = 20.0
_AT_ONCE, _AT_ONCE_OF_A_PROBE = 64, 4
_SETTLED_AT_ONCE = 2
_BUSY_S, _DOWN_S, _MOST_LATER_S = 5, 30, 3600

_Answer = Callable[["ProbesTraces", Request, str], Awaitable[Response]]


def _answers(answer: _Answer) -> _Answer:
    """The answers that the trace resources share."""

    async def answered(self: ProbesTraces, request: Request, probe: str) -> Response:
        try:
            return await answer(self, request, probe)
        except (TraceError, Refused, TooLong) as error:
            return _error(error, 400)
        except NoOffer:
            return JSONResponse({"error": "this probe has offered no such trace"}, 404)
        except NameTaken as error:
            return _error(error, 409)
        except TooLarge as error:
            return _error(error, 413)
        except BadBytes as error:
            _LOG.warning("%s: %s", probe, error.why)
            return JSONResponse({"state": "receiving", "offset": error.offset, "error": error.why}, 422)
        except DaySpent as error:
            return _error(error, 429, min(math.ceil(error.left_s), _MOST_LATER_S))
        except TooManyUnfinished as error:
            return _error(error, 429, _MOST_LATER_S)
        except (NoRoom, TraceStoreFull) as error:
            _LOG.warning("%s: no room: %s", probe, error)
            return JSONResponse({"error": "no room for traces now"}, 507)
        except TraceStoreDown as error:
            _LOG.warning("%s: store of traces: %s", probe, error)
            return JSONResponse({"error": "the store takes no traces now"}, 503, {"Retry-After": str(_DOWN_S)})
        except Busy as error:
            return _error(error, 503, _BUSY_S)
        except OSError as error:
            if isinstance(error, TimeoutError):
                raise
            _LOG.warning("%s: traces: %s", probe, error)
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            return JSONResponse(
                {"error": "the disk takes no traces now"}, 507 if full else 503, {"Retry-After": str(_DOWN_S)}
            )

    return answered


class ProbesTraces:
    """The resources. ``readers``: of offers. ``body_s``: within which 4 KiB of a stream must come."""

    def __init__(self, desk: TraceDesk, readers: Readers, body_s: float) -> None:
        self._desk, self._readers, self._body_s = desk, readers, body_s
        self._sending: dict[str, set[Wait]] = {}
        self._waits: dict[tuple[str, str], Wait] = {}
        self._settling: set[tuple[str, str]] = set()
        self._settlers = CapacityLimiter(_SETTLED_AT_ONCE)

    @_answers
    async def offer(self, request: Request, probe: str) -> Response:
        """``POST /v1/traces``."""
        offered = functools.partial(self._offered, probe)
        sha256, state = await self._readers.document(request, probe, OFFER_LIMIT_BYTES, offered)
        return await self._told(probe, sha256, state)

    def _offered(self, probe: str, text: str) -> tuple[str, State]:
        try:
            told = json.loads(text, parse_constant=_no_constant)
        except (ValueError, RecursionError) as error:
            raise TraceError(f"not JSON: {error}") from None
        offer = read_offer(told)
        return offer.sha256, self._desk.offer(probe, offer)

    @_answers
    async def state(self, request: Request, probe: str) -> Response:
        """``GET /v1/traces/SHA256``."""
        sha256 = _hash_in(request)
        return await self._told(probe, sha256, await run_in_threadpool(self._desk.state, probe, sha256))

    @_answers
    async def append(self, request: Request, probe: str) -> Response:
        """``PATCH /v1/traces/SHA256``."""
        sha256 = _hash_in(request)
        told = request.headers.get("upload-offset", "")
        if not _OFFSET.match(told):
            raise TraceError("Upload-Offset is no count of bytes")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise TraceError("bytes of a stream have no Content-Encoding")
        if (older := self._waits.pop((probe, sha256), None)) is not None:
            older.end()
            self._leave(probe, older)  # its place is the newer one's, also while it still writes down what it has
        if (
            sum(map(len, self._sending.values())) >= _AT_ONCE
            or len(self._sending.get(probe, ())) >= _AT_ONCE_OF_A_PROBE
        ):
            raise Busy("too many traces at once")
        wait = self._waits[probe, sha256] = Wait(self._body_s)
        self._sending.setdefault(probe, set()).add(wait)
        try:
            state = await self._received(request, probe, sha256, int(told), wait)
        except BadBytes:
            raise
        except (WrongOffset, Superseded):
            state = await run_in_threadpool(self._desk.state, probe, sha256)  # another request may be at it
            if state.receipt is None:
                return JSONResponse({"state": "receiving", "offset": state.offset}, 409)
        finally:
            if self._waits.get((probe, sha256)) is wait:
                del self._waits[probe, sha256]
            self._leave(probe, wait)
        return await self._told(probe, sha256, state)

    def _leave(self, probe: str, wait: Wait) -> None:
        """Give a place back. Safe to call twice."""
        places = self._sending.get(probe, set())
        places.discard(wait)
        if not places:
            self._sending.pop(probe, None)

    async def _received(self, request: Request, probe: str, sha256: str, offset: int, wait: Wait) -> State:
        try:
            writer = await run_in_threadpool(self._desk.begin, probe, sha256, offset)
        except NoOffer:
            state = await run_in_threadpool(self._desk.state, probe, sha256)
            if state.receipt is None:
                raise
            return state
        held = bytearray()
        try:
            async for piece in wait.pieces(request.stream()):
                held += piece
                if len(held) >= _APPEND_BYTES:
                    ready, held = bytes(held), bytearray()
                    await run_in_threadpool(self._kept, writer, ready, False)
        except (ClientDisconnect, TimeoutError):
            await run_in_threadpool(self._kept, writer, bytes(held), True)
            raise
        else:
            await run_in_threadpool(self._kept, writer, bytes(held), True)
            return State(writer.offset)
        finally:
            writer.close()

    def _kept(self, writer: Writer, piece: bytes, last: bool) -> None:
        try:
            writer.append(piece)
        except BaseException:
            writer.checkpoint()  # what came before is kept, and counted
            raise
        if last or writer.due:
            self._desk.checkpoint(writer)

    async def _told(self, probe: str, sha256: str, state: State) -> Response:
        """The state; when all bytes are there, the receipt, or 503 while it takes longer than a request should."""
        if state.receipt is None and await run_in_threadpool(self._desk.complete, probe, sha256):
            state = await self._settled(probe, sha256)
        if state.receipt is None:
            return JSONResponse({"state": "receiving", "offset": state.offset})
        return JSONResponse({"state": "received", "receipt": state.receipt.as_json()})

    async def _settled(self, probe: str, sha256: str) -> State:
        """Goes on when nobody waits any more. A process that dies at it leaves all to the next request."""
        key = (probe, sha256)
        if key in self._settling:
            raise Busy("it is being verified and put into the store")
        self._settling.add(key)
        work = asyncio.ensure_future(to_thread.run_sync(self._desk.settle, probe, sha256, limiter=self._settlers))
        work.add_done_callback(lambda done: self._ended(key, done))
        finished, _ = await asyncio.wait([work], timeout=_SETTLE_S)
        if not finished:
            raise Busy("it is being verified and put into the store")
        return work.result()

    def _ended(self, key: tuple[str, str], work: asyncio.Future[State]) -> None:
        self._settling.discard(key)
        if not work.cancelled() and (error := work.exception()) is not None:
            _LOG.info("%s: %s is not in the store: %s", *key, error)


def _hash_in(request: Request) -> str:
    sha256 = str(request.path_params["sha256"])
    if not is_sha256(sha256):
        raise NoOffer(sha256)
    return sha256


def _error(error: Exception, status: int, later_s: int | None = None) -> JSONResponse:
    headers = None if later_s is None else {"Retry-After": str(later_s)}
    return JSONResponse({"error": str(error)}, status, headers)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
