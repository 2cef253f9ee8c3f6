"""The head of an HTTP/1.1 request and answer (RFC 9112), as bytes of the measured connection. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

LONGEST = 16384
"""Bytes that a head may have."""
WORTH_RETRYING = (408, 429, 500, 502, 503, 504)
"""Statuses of a refusal that may be another one's later."""

_STATUS = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})(?: [^\r\n]*)?\Z")
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")


class HeadError(ValueError):
    """The bytes are no HTTP/1.1 head that this experiment understands; one line says why."""


@dataclass(frozen=True, slots=True)
class Head:
    """``length``: Content-Length, None when the body ends with the connection. ``size``: bytes of the head itself."""

    status: int
    length: int | None
    size: int


def request(path: str, host: str, headers: dict[str, str], method: str = "GET", *, close: bool = True) -> bytes:
    """The head of a request, after which the server closes unless ``close`` is False. No value may hold a line break."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *(("Connection: close",) if close else ())]
    lines += [f"{k}: {v}" for k, v in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("line break in a header")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def refusal(status: int, body: bytes) -> str:
    """A refusal in one line: the status, and what the beginning of its body says as far as that can be printed."""
    said = body[:120].decode("ascii", "replace")
    return " ".join([f"HTTP {status}", *"".join(c if c.isprintable() else " " for c in said).split()])


def parse(received: bytes) -> Head | None:
    """The head at the start of ``received``; None while it is incomplete; HeadError when it cannot become one."""
    end = received.find(b"\r\n\r\n", 0, LONGEST)
    if end < 0:
        if len(received) >= LONGEST:
            raise HeadError(f"no end of the head within {LONGEST} bytes")
        if not b"HTTP/1.".startswith(received[:7]):
            raise HeadError(f"an answer that is not HTTP/1: {received[:20]!r}")
        return None
    first, *rest = received[:end].split(b"\r\n")
    match = _STATUS.match(first)
    if match is None:
        raise HeadError(f"an answer that is not HTTP/1: {first[:40]!r}")
    length: int | None = None
    for line in rest:
        name, colon, value = line.partition(b":")
        if not colon:
            raise HeadError(f"a header without a colon: {line[:40]!r}")
        key, value = name.lower(), value.strip()
        if key == b"content-length":
            if not _LENGTH.match(value) or (length is not None and length != int(value)):
                raise HeadError(f"Content-Length: {value[:40]!r}")
            length = int(value)
        elif key == b"transfer-encoding":
            raise HeadError(f"Transfer-Encoding {value[:40]!r}: the payload is never decoded here")
    return Head(int(match[1]), length, end + 4)


def read(receive: Callable[[], bytes]) -> tuple[Head, bytes]:
    """The head that the pieces from ``receive`` begin with, and all bytes so far; HeadError when they end before it does."""
    received = b""
    while (head := parse(received)) is None:
        more = receive()
        if not more:
            raise HeadError("closed before any answer" if not received else "closed within the head")
        received += more
    return head, received
