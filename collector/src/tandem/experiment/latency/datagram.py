"""The reflector's datagrams (docs/reference/endpoint-api.md): questions made and signed, answers checked and read. Pure."""

from __future__ import annotations

import hmac
import struct
from dataclasses import dataclass

SHORTEST, LONGEST = 72, 1400
_HEADER = struct.Struct(">4sBBH16sIIQQQ16s")
_MAGIC, _QUESTION, _ANSWER = b"TdL1", 1, 2
_TAG = slice(56, 72)


@dataclass(frozen=True, slots=True)
class Answer:
    """``count``: questions of the stream that the server had had, with this one. ``received_ns``, ``returned_ns``: the server's
    CLOCK_MONOTONIC; ``sent_ns``: ours."""

    stream: int
    sequence: int
    count: int
    sent_ns: int
    received_ns: int
    returned_ns: int


def question(key: bytes, session: bytes, stream: int, sequence: int, sent_ns: int, size: int) -> bytes:
    """A question of ``size`` bytes (72 to 1400)."""
    raw = _HEADER.pack(_MAGIC, _QUESTION, stream, 0, session, sequence, 0, sent_ns, 0, 0, bytes(16))
    raw += bytes(size - len(raw))
    return raw[: _TAG.start] + _signature(key, raw) + raw[_TAG.stop :]


def read_answer(key: bytes, session: bytes, raw: bytes) -> Answer | None:
    """The answer, None when it is none of this session's."""
    if len(raw) < _HEADER.size:
        return None
    magic, kind, stream, _, owner, sequence, count, sent_ns, received_ns, returned_ns, tag = _HEADER.unpack_from(raw)
    if (magic, kind, owner) != (_MAGIC, _ANSWER, session) or not hmac.compare_digest(_signature(key, raw), tag):
        return None
    return Answer(stream, sequence, count, sent_ns, received_ns, returned_ns)


def _signature(key: bytes, raw: bytes) -> bytes:
    return hmac.digest(key, raw[: _TAG.start] + bytes(16) + raw[_TAG.stop :], "sha256")[:16]
