"""The server's reflector (docs/reference/endpoint-api.md): what the answer to a session says of it, its datagrams, made, signed,
checked and read, and whether its clock can be compared with ours. Pure, but for ``our_clock``.
"""

from __future__ import annotations

import hmac
import struct
import time
from dataclasses import dataclass

from tandem.experiment.control import ControlError, Session, mapping, real, whole
from tandem.kernel_clock import ask_kernel


@dataclass(frozen=True, slots=True)
class Clock:
    """``offset_ns``: UTC less CLOCK_MONOTONIC. ``synchronised``, ``error_ms``: as its kernel has them; None when it does not say."""

    offset_ns: int
    synchronised: bool | None
    error_ms: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of the server's clock with ours. ``absolute``: both are synchronised, so one-way times mean something, within ``error_ms``.
    ``ahead_ns``: what to take off the server's CLOCK_MONOTONIC to have ours; None when they cannot be compared."""

    absolute: bool
    error_ms: float | None
    ahead_ns: int | None


APART = Comparison(False, None, None)


def our_clock() -> Clock:
    offset_ns = time.time_ns() - time.monotonic_ns()
    kernel = ask_kernel()
    if kernel is None:
        return Clock(offset_ns, None, None)
    return Clock(offset_ns, kernel.synchronised, kernel.max_error_us / 1000 if kernel.synchronised else None)


def read_clock(answer: object) -> Clock | None:
    """The server's, from its answer; None when that holds none."""
    found = mapping(answer)
    offset, synchronised = found.get("utc_minus_monotonic_ns"), found.get("synchronised")
    if type(offset) is not int:
        return None
    return Clock(offset, synchronised if isinstance(synchronised, bool) else None, real(found.get("error_ms")))


def compare(ours: Clock, theirs: Clock | None) -> Comparison:
    """The two clocks; the error is the sum of what the two kernels own to."""
    if theirs is None or not ours.synchronised or not theirs.synchronised:
        return APART
    if ours.error_ms is None or theirs.error_ms is None:
        return APART
    return Comparison(True, ours.error_ms + theirs.error_ms, ours.offset_ns - theirs.offset_ns)


@dataclass(frozen=True, slots=True)
class Reflector:
    """``owner``: the session's id as datagrams have it, 16 bytes; ``clock``: the server's, None where it has none."""

    port: int
    owner: bytes
    clock: Clock | None


def reflector_of(session: Session) -> Reflector:
    """The reflector that serves ``session``; ControlError when there is none."""
    found = session.answer.get("reflector")
    if not isinstance(found, dict):
        raise ControlError("the server has no reflector", retry=False)
    port = whole(found.get("port"))
    try:
        owner = bytes.fromhex(session.id)
    except ValueError:
        owner = b""
    if port is None or not 0 < port < 65536 or len(owner) != 16:
        raise ControlError("the server's reflector cannot be understood", retry=False)
    return Reflector(port, owner, read_clock(found.get("clock")))


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
