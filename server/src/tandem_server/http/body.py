"""A request's body: received, decoded and read in bounded memory, whatever is sent."""

from __future__ import annotations

import asyncio
import json
import threading
import zlib
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Any, NoReturn, TypeVar
from weakref import WeakValueDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

_PIECE_BYTES = 4096
_T = TypeVar("_T")


class TooMuch(ValueError):  # noqa: N818  (an answer, no accident)
    """The body is longer than one request may bring: 413."""


class Unreadable(ValueError):  # noqa: N818  (an answer, no accident)
    """The body cannot be read as a whole: 400."""


class Busy(Exception):  # noqa: N818  (an answer, no accident)
    """The request cannot be answered now: 503. ``later_s``: after which it may come again; with ``spread`` each at another time."""

    def __init__(self, why: str, later_s: int = 1, *, spread: bool = True) -> None:
        super().__init__(why)
        self.later_s, self.spread = later_s, spread


class Budget:
    """``bytes_limit`` for all requests together. For several threads."""

    def __init__(self, bytes_limit: int) -> None:
        self.bytes_limit, self.held = bytes_limit, 0
        self.lock = threading.Lock()

    def share(self) -> Share:
        """One request's part; give it back with ``with``."""
        return Share(self)


class Share:
    """Takes as bytes come, so that a length that is only claimed holds nothing."""

    def __init__(self, budget: Budget) -> None:
        self._budget, self._mine = budget, 0

    def take(self, count: int) -> None:
        """Hold ``count`` bytes more; Busy when they would be too many."""
        self.hold(self._mine + count)

    def hold(self, count: int) -> None:
        """Hold ``count`` bytes in all; Busy when they would be too many."""
        with self._budget.lock:
            held = self._budget.held + count - self._mine
            if count > self._mine and held > self._budget.bytes_limit:
                raise Busy("too many bytes at once")
            self._budget.held, self._mine = held, count

    def __enter__(self) -> Share:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.hold(0)


class BodyReader:
    """What is large is decoded and read here: of each probe one body at a time, of all ``at_once``, so that what a body becomes in memory
    is bounded too, and one probe holds up nobody else's. ``budget``: of the bytes of all. ``body_s``: within which a body must be whole.
    All methods are the event loop's."""

    def __init__(self, budget: Budget, body_s: float, at_once: int) -> None:
        self._budget, self._body_s, self._at_once = budget, body_s, asyncio.Semaphore(at_once)
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def document(self, request: Request, probe: str, limit_bytes: int, read: Callable[[str], _T]) -> _T:
        """What ``read`` makes of the text that ``request`` brings, in a thread. TooMuch, Unreadable, Busy, TimeoutError, and what ``read``
        raises."""
        encoding = request.headers.get("content-encoding")
        with self._budget.share() as held:
            async with asyncio.timeout(self._body_s):
                body = await receive(request.stream(), limit_bytes, held.take)
            return await self.run(probe, lambda: read(decode(body, encoding, limit_bytes, held.take)))

    async def run(self, probe: str, read: Callable[[], _T]) -> _T:
        """``read()`` in a thread, when it is this probe's turn."""
        turn = self._turns.setdefault(probe, asyncio.Lock())
        async with turn, self._at_once:
            return await run_in_threadpool(_frameless, read)


def _frameless(read: Callable[[], _T]) -> _T:
    """``read()``. What is wrong with a body is raised without the frames that it came through: they hold what was made of the body, and a
    future keeps them in a circle until the garbage is collected."""
    try:
        return read()
    except ValueError as error:
        error.__context__ = None
        raise error.with_traceback(None)  # noqa: B904  it is the same


def read_json(text: str | bytes, error: type[Exception] = Unreadable, **options: Any) -> Any:  # noqa: ANN401  any JSON value
    """What ``text`` says; ``error`` where it is no JSON by the standard (``NaN`` is none). ``options``: of ``json.loads``."""
    try:
        return json.loads(text, parse_constant=_no_constant, **options)
    except (ValueError, RecursionError) as fault:
        raise error(f"not JSON: {fault}") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


async def receive(
    stream: AsyncIterator[bytes], limit_bytes: int, take: Callable[[int], None] = lambda _: None
) -> bytes:
    """The body as sent; TooMuch as soon as it is longer than ``limit_bytes``. ``take`` is called with the bytes that came;
    what it raises ends it."""
    body = bytearray()
    async for chunk in stream:
        take(len(chunk))
        body += chunk
        if len(body) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes")
    return bytes(body)


def decode(body: bytes, encoding: str | None, limit_bytes: int, take: Callable[[int], None] = lambda _: None) -> str:
    """The text of a body sent with this Content-Encoding (None, ``identity`` or ``gzip``); Unreadable, TooMuch.

    Never holds more than ``limit_bytes`` of decoded text, so a small body that unpacks to a huge one costs nothing. ``take`` is
    called with the bytes that were unpacked; what it raises ends it.
    """
    if encoding not in (None, "", "identity", "gzip"):
        raise Unreadable(f"Content-Encoding {encoding!r}; understood: gzip")
    try:
        raw = _gunzip(body, limit_bytes, take) if encoding == "gzip" else body
        return raw.decode("utf-8")
    except zlib.error as error:
        raise Unreadable(f"not gzip: {error}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def _gunzip(body: bytes, limit_bytes: int, take: Callable[[int], None]) -> bytes:
    """All members of a gzip file, one after the other (RFC 1952, 2.2).

    Read in small pieces: after each member the rest of what was given is copied, which with the whole body would take minutes for one
    of many empty members.
    """
    out, view, at = bytearray(), memoryview(body), 0
    member = None
    while at < len(view):
        if member is None:
            member = zlib.decompressobj(wbits=31)
        piece = member.unconsumed_tail or view[at : at + _PIECE_BYTES]
        unpacked = member.decompress(piece, limit_bytes + 1 - len(out))
        take(len(unpacked))
        out += unpacked
        if len(out) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes after decoding")
        at += len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
        if member.eof:
            member = None
    if member is not None:
        raise Unreadable("not gzip: it ends in the middle")
    return bytes(out)
