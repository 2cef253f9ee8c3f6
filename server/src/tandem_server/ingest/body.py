"""A request's body: decoded in bounded memory, whatever is sent."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

from tandem_server.ingest.lines import TooMuch


class Unreadable(ValueError):  # noqa: N818  (an answer, no accident)
    """The body cannot be read as a whole."""


async def receive(stream: AsyncIterator[bytes], limit_bytes: int) -> bytes:
    """The body as sent; TooMuch as soon as it is longer than ``limit_bytes``."""
    body = bytearray()
    async for chunk in stream:
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
    """All members of a gzip file, one after the other (RFC 1952, 2.2)."""
    out = bytearray()
    rest = body
    while rest:
        member = zlib.decompressobj(wbits=31)
        out += member.decompress(rest, limit_bytes + 1 - len(out))
        if len(out) > limit_bytes:
            raise TooMuch(f"more than {limit_bytes} bytes after decoding")
        if not member.eof:
            raise Unreadable("not gzip: it ends in the middle")
        rest = member.unused_data
    return bytes(out)
