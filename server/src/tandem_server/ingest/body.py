"""A request's body: decoded in bounded memory, whatever is sent."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator, Callable

from tandem_server.ingest.lines import TooMuch

_PIECE_BYTES = 4096


class Unreadable(ValueError):  # noqa: N818  (an answer, no accident)
    """The body cannot be read as a whole."""


async def receive(
    stream: AsyncIterator[bytes], limit_bytes: int, take: Callable[[int], None] = lambda _: None
) -> bytes:
    """The body as sent; TooMuch as soon as it is longer than ``limit_bytes``. ``take`` is told of bytes as they come; what it
    raises ends it."""
    body = bytearray()
    async for chunk in stream:
        take(len(chunk))
        body += chunk
        if len(body) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes")
    return bytes(body)


def decode(body: bytes, encoding: str | None, limit_bytes: int) -> str:
    """The text of a body sent with this Content-Encoding (None, ``identity`` or ``gzip``); Unreadable, TooMuch.

    Never holds more than ``limit_bytes`` of decoded text, so a small body that unpacks to a huge one costs nothing.
    """
    if encoding not in (None, "", "identity", "gzip"):
        raise Unreadable(f"Content-Encoding {encoding!r}; understood: gzip")
    try:
        raw = _gunzip(body, limit_bytes) if encoding == "gzip" else body
        return raw.decode("utf-8")
    except zlib.error as error:
        raise Unreadable(f"not gzip: {error}") from None
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def _gunzip(body: bytes, limit_bytes: int) -> bytes:
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
        out += member.decompress(piece, limit_bytes + 1 - len(out))
        if len(out) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes after decoding")
        at += len(piece) - len(member.unused_data) - len(member.unconsumed_tail)
        if member.eof:
            member = None
    if member is not None:
        raise Unreadable("not gzip: it ends in the middle")
    return bytes(out)
