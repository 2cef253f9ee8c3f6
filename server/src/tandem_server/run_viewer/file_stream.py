"""A received trace on its way to a reader: unpacked, from any byte on, and held against its hash where all of it is read."""

from __future__ import annotations

import contextlib
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from typing import BinaryIO

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from tandem_server.http.ranges import Part
from tandem_server.registry import TraceRow
from tandem_server.uploads.store import NotTheFile, TraceStore, TraceStoreDown, file_parts

_LOG = logging.getLogger("tandem.pages")


class Damaged(RuntimeError):  # noqa: N818  (it reads as what it is)
    """What is stored is not the file that was received: the answer must not look whole."""


def opened(store: TraceStore, row: TraceRow, start: int) -> BinaryIO:
    """What is stored, to be read for the bytes from ``start`` on: those that are packed only from their beginning. FileNotFoundError,
    TraceStoreDown."""
    return store.open(row.place, start if row.encoding == "identity" else 0)


def pieces(stored: BinaryIO, row: TraceRow, start: int, end: int) -> Iterator[bytes]:
    """The file's bytes from ``start`` to ``end``, out of ``opened``. Damaged before the last of them is given, so that no reader takes a
    damaged file for whole: its hash is wrong (where all of it was read), or it has too few bytes."""
    at = start if row.encoding == "identity" else 0
    whole = hashlib.sha256() if at == 0 and end == row.bytes else None
    held = b""
    try:
        for piece in file_parts(stored, row.encoding):
            if whole is not None:
                whole.update(piece)
            wanted = piece[max(0, start - at) : max(0, end - at)]
            at += len(piece)
            if wanted:
                if held:
                    yield held
                held = wanted
            if whole is None and at >= end:
                break
    except NotTheFile as error:
        raise Damaged(f"{row.place}: {error}") from error
    if at < end or (whole is not None and (at != row.bytes or whole.hexdigest() != row.sha256)):
        raise Damaged(f"{row.place}: it is not the file with the SHA-256 {row.sha256} any more")
    if held:
        yield held


class Sending(StreamingResponse):
    """A part of a file as an answer. ``left`` is called once, when it is over in whatever way. What breaks on the way ends the connection
    before the promised length: a reader sees that it has not the file, and may ask for the rest."""

    def __init__(
        self, stored: BinaryIO, row: TraceRow, part: Part, headers: dict[str, str], left: Callable[[], None]
    ) -> None:
        self._stored, self._row, self._left = stored, row, left
        self._broken = False
        super().__init__(self._pieces(pieces(stored, row, part.start, part.end)), part.status, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""

        async def answered(message: Message) -> None:
            if not (self._broken and message["type"] == "http.response.body"):
                await send(message)

        try:
            await super().__call__(scope, receive, answered)
        finally:
            self._left()
            with contextlib.suppress(OSError):
                self._stored.close()

    async def _pieces(self, found: Iterator[bytes]) -> AsyncIterator[bytes]:
        """Each read in a worker thread, when the one before has gone out."""
        try:
            while piece := await run_in_threadpool(next, found, b""):
                yield piece
        except (Damaged, TraceStoreDown, OSError) as error:
            self._broken = True
            _LOG.warning("%s of %s: %s", self._row.name, self._row.probe, error)
