"""The UDP reflector: sends a session's datagrams back with the times it had them (docs/reference/endpoint-api.md).

It answers only what an open session's key has signed, with as many bytes as came and no more, to where they came from, within
the session's budget; everything else is dropped without a word. So it is no amplifier, and nobody's oracle.
"""

from __future__ import annotations

import hmac
import logging
import select
import socket
import struct
import threading
import time
from collections import OrderedDict

from tandem.kernel_clock import ask_kernel
from tandem.stream.arrival import arrival_ns, stamp
from tandem_server.endpoint.listener import family_of
from tandem_server.endpoint.sessions import SessionTable

_LOG = logging.getLogger("tandem.endpoint.reflector")
HEADER = struct.Struct(">4sBBH16sIIQQQ16s")
MAGIC, QUESTION, ANSWER = b"TdL1", 1, 2
_TAG_AT, _TAG_BYTES = 56, 16
_LONGEST = 2048
_IP_PKTINFO = 8
_STREAMS = 4096


class ReflectorError(RuntimeError):
    """The port cannot be had; one line with a hint."""


def reflector_socket(host: str, port: int) -> socket.socket:
    """A UDP socket on ``port``, with the kernel's time on every datagram; ReflectorError."""
    host, family = family_of(host, multipath=False)
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        else:
            made.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
        stamp(made)
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise ReflectorError(f"UDP {host}:{port}: {error.strerror}; hint: set another measurement_port") from error
    return made


class Reflector:
    """Reflects in a thread of its own until ``stop``."""

    def __init__(self, listener: socket.socket, sessions: SessionTable) -> None:
        self._listener, self._sessions = listener, sessions
        self._counts: OrderedDict[tuple[bytes, int], int] = OrderedDict()
        self._stopped = threading.Event()
        listener.settimeout(0.5)
        self._thread = threading.Thread(target=self._run, name="reflector", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._listener.getsockname()[1])

    def to_dict(self) -> dict[str, object]:
        """As the answer to a session's opening has it."""
        return {"port": self.port, "clock": read_clock()}

    def stop(self) -> None:
        """End the thread and close the port."""
        self._stopped.set()
        self._thread.join()
        self._listener.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._listener, select.POLLIN)
        while not self._stopped.is_set():
            if not poll.poll(500):
                continue
            try:
                raw, ancillary, _, peer = self._listener.recvmsg(_LONGEST, 256)
                answer = self.answer(raw, arrival_ns(ancillary))
                if answer is not None:
                    self._listener.sendmsg([answer], _from_there(ancillary), 0, peer)
            except OSError as error:
                _LOG.debug(
                    "%s", error
                )  # an ICMP error of an earlier answer, or no buffer: the datagram is lost, as others are

    def answer(self, raw: bytes, received_ns: int) -> bytes | None:
        """The answer to a datagram that came at ``received_ns`` (CLOCK_MONOTONIC); None when there is none."""
        if len(raw) < HEADER.size or len(raw) == _LONGEST:
            return None
        magic, kind, stream, _, session_id, sequence, _, sent_ns, _, _, tag = HEADER.unpack_from(raw)
        if magic != MAGIC or kind != QUESTION:
            return None
        session = self._sessions.get(session_id.hex())
        if session is None:
            return None
        if not hmac.compare_digest(signature(session.key, raw), tag):
            return None
        if session.take(len(raw)) < len(raw):
            return None
        session.idle_since_s = time.monotonic()
        count = self._counts.pop((session_id, stream), 0) + 1
        self._counts[session_id, stream] = count
        if len(self._counts) > _STREAMS:
            self._counts.popitem(last=False)
        rest = raw[HEADER.size :]
        fields = (MAGIC, ANSWER, stream, 0, session_id, sequence, count, sent_ns, received_ns, time.monotonic_ns())
        unsigned = HEADER.pack(*fields, bytes(_TAG_BYTES)) + rest
        return unsigned[:_TAG_AT] + signature(session.key, unsigned) + unsigned[_TAG_AT + _TAG_BYTES :]


def signature(key: bytes, raw: bytes) -> bytes:
    """Of a datagram: HMAC-SHA256 over it with the tag's place zero, cut to 16 bytes."""
    return hmac.digest(key, raw[:_TAG_AT] + bytes(_TAG_BYTES) + raw[_TAG_AT + _TAG_BYTES :], "sha256")[:_TAG_BYTES]


def _from_there(ancillary: list[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """What makes an answer come from the address that was addressed: a host may have several, and the client hears but that one."""
    for level, kind, content in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            return [(level, kind, bytes(4) + content[8:12] + bytes(4))]
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            return [(level, kind, content[:16] + bytes(4))]
    return []


def read_clock() -> dict[str, object]:
    """This machine's clock: ``utc_minus_monotonic_ns``; ``synchronised``, ``error_ms`` as the kernel has them (adjtimex(2)); null
    when it does not tell."""
    offset_ns = time.time_ns() - time.monotonic_ns()
    kernel = ask_kernel()
    if kernel is None:
        return {"utc_minus_monotonic_ns": offset_ns, "synchronised": None, "error_ms": None}
    error_ms = kernel.max_error_us / 1000 if kernel.synchronised else None
    return {"utc_minus_monotonic_ns": offset_ns, "synchronised": kernel.synchronised, "error_ms": error_ms}
