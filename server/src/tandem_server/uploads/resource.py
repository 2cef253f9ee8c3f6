"""Uploads of traces over HTTP (docs/reference/probe-api.md, "Traces"): offers, bytes, states, receipts."""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from collections.abc import AsyncIterator

from anyio import CapacityLimiter, to_thread
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from tandem.schema.trace import TraceError, is_sha256, read_offer
from tandem_server.http.body import BodyReader, Busy, read_json
from tandem_server.uploads.service import BUSY_S, BadBytes, NoOffer, State, UploadService, Writer, WrongOffset

_LOG = logging.getLogger("tandem.traces")
OFFER_LIMIT_BYTES = 1536 * 1024
"""Of the longest that ``tandem.schema.trace`` allows, spaces and all."""

_OFFSET = re.compile(r"[0-9]{1,12}\Z")
_APPEND_BYTES = 512 * 1024
_STALL_BYTES = 4096
_SETTLE_S = 20.0
_AT_ONCE, _AT_ONCE_OF_A_PROBE = 64, 4
_SETTLED_AT_ONCE = 2


class Superseded(Exception):  # noqa: N818  (an answer, no accident)
    """A newer request sends this trace now."""


class Wait:
    """One request's wait for bytes. ``stall_s``: within which 4 KiB must come. A newer request for the same trace ends it: a link that
    breaks leaves its connection open at this end for minutes, and a probe that is back must not find its share of requests taken by its
    own dead ones."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._timeout: asyncio.Timeout | None = None
        self._over = False

    def end(self) -> None:
        """From the event loop: whoever waits gets Superseded now."""
        self._over = True
        if self._timeout is not None and not self._timeout.expired():
            self._timeout.reschedule(asyncio.get_running_loop().time())

    async def pieces(self, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """The bytes as they come; TimeoutError when too few do, Superseded."""
        loop, counted = asyncio.get_running_loop(), 0
        deadline_s = loop.time() + self._stall_s
        while not self._over:
            try:
                async with asyncio.timeout_at(deadline_s) as self._timeout:
                    piece = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if self._over:
                    break
                raise
            finally:
                self._timeout = None
            counted += len(piece)
            if counted >= _STALL_BYTES:
                deadline_s, counted = loop.time() + self._stall_s, 0
            yield piece
        raise Superseded


class UploadResource:
    """The resources. ``readers``: of offers. ``body_s``: within which 4 KiB of a stream must come. What is refused is raised: TraceError,
    Refused, TooLong, NoOffer, NameTaken, TooLarge, BadBytes, DaySpent, TooManyUnfinished, NoRoom, TraceStoreFull, TraceStoreDown, Busy,
    OSError."""

    def __init__(self, service: UploadService, readers: BodyReader, body_s: float) -> None:
        self._service, self._readers, self._body_s = service, readers, body_s
        self._sending: dict[str, set[Wait]] = {}
        self._waits: dict[tuple[str, str], Wait] = {}
        self._settling: set[tuple[str, str]] = set()
        self._settlers = CapacityLimiter(_SETTLED_AT_ONCE)

    async def offer(self, request: Request, probe: str) -> Response:
        """``POST /v1/traces``."""
        offered = functools.partial(self._offered, probe)
        sha256, state = await self._readers.document(request, probe, OFFER_LIMIT_BYTES, offered)
        return await self._answer(probe, sha256, state)

    def _offered(self, probe: str, text: str) -> tuple[str, State]:
        offer = read_offer(read_json(text, TraceError))
        return offer.sha256, self._service.offer(probe, offer)

    async def state(self, request: Request, probe: str) -> Response:
        """``GET /v1/traces/SHA256``."""
        sha256 = _hash_in(request)
        return await self._answer(probe, sha256, await run_in_threadpool(self._service.state, probe, sha256))

    async def append(self, request: Request, probe: str) -> Response:
        """``PATCH /v1/traces/SHA256``."""
        sha256 = _hash_in(request)
        offset = request.headers.get("upload-offset", "")
        if not _OFFSET.match(offset):
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
            raise Busy("too many traces at once", BUSY_S, spread=False)
        wait = self._waits[probe, sha256] = Wait(self._body_s)
        self._sending.setdefault(probe, set()).add(wait)
        try:
            state = await self._received(request, probe, sha256, int(offset), wait)
        except BadBytes:
            raise
        except (WrongOffset, Superseded):
            state = await run_in_threadpool(self._service.state, probe, sha256)  # another request may be at it
            if state.receipt is None:
                return JSONResponse({"state": "receiving", "offset": state.offset}, 409)
        finally:
            if self._waits.get((probe, sha256)) is wait:
                del self._waits[probe, sha256]
            self._leave(probe, wait)
        return await self._answer(probe, sha256, state)

    def _leave(self, probe: str, wait: Wait) -> None:
        """Give a place back. Safe to call twice."""
        places = self._sending.get(probe, set())
        places.discard(wait)
        if not places:
            self._sending.pop(probe, None)

    async def _received(self, request: Request, probe: str, sha256: str, offset: int, wait: Wait) -> State:
        try:
            writer = await run_in_threadpool(self._service.begin, probe, sha256, offset)
        except NoOffer:
            state = await run_in_threadpool(self._service.state, probe, sha256)
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
            self._service.checkpoint(writer)

    async def _answer(self, probe: str, sha256: str, state: State) -> Response:
        """The state; when all bytes are there, the receipt, or Busy while it takes longer than a request should."""
        if state.receipt is None and await run_in_threadpool(self._service.complete, probe, sha256):
            state = await self._settled(probe, sha256)
        if state.receipt is None:
            return JSONResponse({"state": "receiving", "offset": state.offset})
        return JSONResponse({"state": "received", "receipt": state.receipt.as_json()})

    async def _settled(self, probe: str, sha256: str) -> State:
        """Goes on when nobody waits any more. A process that dies at it leaves all to the next request."""
        key = (probe, sha256)
        if key in self._settling:
            raise Busy("it is being verified and put into the store", BUSY_S, spread=False)
        self._settling.add(key)
        work = asyncio.ensure_future(to_thread.run_sync(self._service.settle, probe, sha256, limiter=self._settlers))
        work.add_done_callback(lambda done: self._ended(key, done))
        finished, _ = await asyncio.wait([work], timeout=_SETTLE_S)
        if not finished:
            raise Busy("it is being verified and put into the store", BUSY_S, spread=False)
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
