"""TLS over a measured socket, with the kernel's times of what was sent and acknowledged."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, cast, overload

RECORD_BYTES = 16384
OVERHEAD_BYTES = 22


class Marks:
    """Places of one stream, in order: so many bytes of it hold so much payload. Between two of them all records but the last are full.

    What lies before the place asked for last is forgotten, so that there are no more marks than what is on its way needs.
    """

    def __init__(self) -> None:
        self._ahead: deque[tuple[int, int]] = deque()
        self._reached = (0, 0)

    def add(self, stream_bytes: int, payload_bytes: int) -> None:
        """A place further on."""
        ahead = self._ahead
        if len(ahead) > 1 and ahead[-1][1] == ahead[-2][1] == payload_bytes:
            ahead.pop()  # nothing of payload since: answers of the library's
        ahead.append((stream_bytes, payload_bytes))

    def payload_in(self, stream_bytes: int) -> int:
        """How much payload the first so many bytes hold. Never ask for fewer than before."""
        while self._ahead and self._ahead[0][0] <= stream_bytes:
            self._reached = self._ahead.popleft()
        stream, payload = self._reached
        if not self._ahead:
            return payload
        whole = max(0, stream_bytes - stream) // (RECORD_BYTES + OVERHEAD_BYTES) * RECORD_BYTES
        return min(payload + whole, self._ahead[0][1])


# ---------------------------------------------------------------------------------------------------------------------
# TLS 1.3 over a measured connection, at both ends: what is encrypted stays apart from what the kernel has taken.
# ``ssl.SSLSocket`` hides both its records and what it still holds, so neither payload acknowledged nor the end of a
# transfer could be known from the kernel's counters. Here the library works on memory alone (``ssl.MemoryBIO``), and
# this class does the socket's calls: they keep the socket's own blocking, time-outs and options, and every record's
# place in the stream is known.


BATCH_BYTES = 8 * RECORD_BYTES
"""Most payload that is encrypted and not yet taken by the kernel."""

HANDSHAKE_LIMIT_BYTES = 1 << 15
"""Most that a peer may send before the handshake is over."""

_REPLIES_LIMIT_BYTES = 1 << 16
_READ_BYTES = 1 << 18


class TlsError(ConnectionError):
    """The handshake failed, or the peer broke TLS off: one line."""


def strict(context: ssl.SSLContext) -> ssl.SSLContext:
    """The context, for a ``TlsStream``: Python takes a stream that only stops for one that has ended (a cut would look whole)."""
    context.options &= ~ssl.OP_IGNORE_UNEXPECTED_EOF
    return context


class TlsStream:
    """One connected socket with TLS, used as a socket is; from one thread. ``handshake`` first.

    A call that receives makes one read of the socket, or, where the socket has a time-out, as many as that allows; it raises
    BlockingIOError when what came makes no payload yet. An end of the stream without TLS's own end is a TlsError (``context``: ``strict``).
    """

    def __init__(self, raw: socket.socket, context: ssl.SSLContext, *, server_hostname: str | None = None) -> None:
        self._raw = raw
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming, self._outgoing, server_side=server_hostname is None, server_hostname=server_hostname
        )
        self._unsent = memoryview(b"")
        self._kept = b""
        self._ending = False
        self._stream = self._payload = 0
        self._marks = Marks()

    # The socket below, whose address, options, blocking and time-outs are its own.

    def fileno(self) -> int:
        return self._raw.fileno()

    def getsockname(self) -> tuple[str, int]:
        """The socket's, the first two parts."""
        host, port = self._raw.getsockname()[:2]
        return str(host), int(port)

    def getpeername(self) -> tuple[str, int]:
        """The socket's, the first two parts."""
        host, port = self._raw.getpeername()[:2]
        return str(host), int(port)

    @overload
    def getsockopt(self, level: int, option: int) -> int: ...

    @overload
    def getsockopt(self, level: int, option: int, size: int) -> bytes: ...

    def getsockopt(self, level: int, option: int, size: int = 0) -> bytes | int:
        return self._raw.getsockopt(level, option, size) if size else self._raw.getsockopt(level, option)

    def setsockopt(self, level: int, option: int, value: int | bytes) -> None:
        self._raw.setsockopt(level, option, value)

    def setblocking(self, blocking: bool) -> None:
        self._raw.setblocking(blocking)

    def settimeout(self, seconds: float | None) -> None:
        self._raw.settimeout(seconds)

    # The handshake.

    def handshake(self, within_s: float, begun: bytes = b"") -> float:
        """Do it within so many seconds; ``begun`` has been read already. How long it took, in ms; then the socket has no time-out.

        TimeoutError; TlsError (ssl.SSLCertVerificationError for a certificate that is none of ours)."""
        started_s = time.monotonic()
        heard = len(begun)
        self._incoming.write(begun)
        while True:
            try:
                self._tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._send_within(started_s + within_s)
            except ssl.SSLError as error:
                try:
                    self._send_within(started_s + within_s)  # the alert, so that the peer knows as well
                except OSError as unsent:
                    error.add_note(f"not told: {unsent}")
                if isinstance(error, ssl.SSLCertVerificationError):
                    raise
                raise TlsError(f"TLS: {_reason(error)}") from error
            more = self._raw.recv(4096)
            if not more:
                raise TlsError("TLS: closed within the handshake")
            heard += len(more)
            if heard > HANDSHAKE_LIMIT_BYTES:
                raise TlsError(f"TLS: more than {HANDSHAKE_LIMIT_BYTES} bytes of handshake")
            self._incoming.write(more)
        self._send_within(started_s + within_s)
        self._raw.settimeout(None)
        return 1000 * (time.monotonic() - started_s)

    def _send_within(self, deadline_s: float) -> None:
        self._collect()
        left_s = deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        self._raw.settimeout(left_s)
        self._raw.sendall(self._unsent)
        self._unsent = memoryview(b"")

    @property
    def version(self) -> str | None:
        """As the library names it."""
        return self._tls.version()

    @property
    def cipher(self) -> str | None:
        cipher = self._tls.cipher()
        return None if cipher is None else cipher[0]

    # Sending.

    def sendmsg(self, pieces: Sequence[memoryview | bytes]) -> int:
        """How much payload was encrypted and begun to be sent, at most ``BATCH_BYTES``; 0 when the kernel took only what was left from
        before. BlockingIOError when it took nothing."""
        if self._unsent:
            self._flush()
            if self._unsent:
                return 0
        given = [memoryview(piece) for piece in pieces if len(piece)]
        # Joined, so that every record but the last one is full, and a small payload is in one with its head.
        batch = given[0] if len(given) == 1 else memoryview(b"".join(piece[:BATCH_BYTES] for piece in given))
        taken = self._encrypt(batch[:BATCH_BYTES])
        try:
            self._flush()
        except BlockingIOError:
            if not taken:
                raise
        return taken

    def send(self, data: bytes | memoryview) -> int:
        """As ``sendmsg``, of one piece."""
        return self.sendmsg([data])

    def sendall(self, data: bytes) -> None:
        self._encrypt(memoryview(data))
        self._raw.sendall(self._unsent)
        self._unsent = memoryview(b"")

    def _encrypt(self, data: memoryview) -> int:
        self._collect()
        taken = 0
        while taken < len(data):
            taken += self._tls.write(data[taken : taken + RECORD_BYTES])
        self._payload += taken
        self._collect()
        return taken

    def shutdown(self, how: int) -> None:
        """Say that no more will be sent, by TLS and then, once the kernel has all, by the socket. ``SHUT_WR`` only."""
        if how != socket.SHUT_WR:
            raise ValueError("only the sending side can be shut")
        with contextlib.suppress(ssl.SSLError):
            # Our message is made in any case. The library waits for the peer's, too, or minds payload that came: both are read as before.
            self._tls.unwrap()
        self._ending = True
        self._collect()
        try:
            self._flush()
        except BlockingIOError:
            return  # ``backlog`` goes on with it
        self._end_when_sent()

    def backlog(self) -> int:
        """Bytes of the stream that the kernel has not taken yet, after another try. OSError when the connection has gone."""
        if self._unsent:
            try:
                self._flush(socket.MSG_DONTWAIT)
            except BlockingIOError:
                return len(self._unsent)
            self._end_when_sent()
        return len(self._unsent)

    def payload_in(self, stream_bytes: int) -> int:
        """How much payload the first so many bytes of our stream hold, in whole records. Never ask for fewer than before."""
        return self._marks.payload_in(stream_bytes)

    def payload_acked(self, unacknowledged_bytes: int) -> int:
        """Payload that has been acknowledged when so many bytes of the stream (``unacknowledged``) are not."""
        return self._marks.payload_in(self._stream - unacknowledged_bytes)

    def _collect(self) -> None:
        """Take what the library wants to have sent, and mark how much payload the stream holds up to there."""
        if self._outgoing.pending:
            made = self._outgoing.read()
            self._stream += len(made)
            self._marks.add(self._stream, self._payload)
            self._unsent = memoryview(bytes(self._unsent) + made) if self._unsent else memoryview(made)

    def _flush(self, flags: int = 0) -> None:
        while self._unsent:
            sent = self._raw.send(self._unsent, flags)
            whole = sent == len(self._unsent)
            self._unsent = self._unsent[sent:]
            if not whole:
                return

    def _end_when_sent(self) -> None:
        if self._ending and not self._unsent:
            self._ending = False
            self._raw.shutdown(socket.SHUT_WR)

    # Receiving.

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As the socket's; of ``flags`` MSG_PEEK and MSG_DONTWAIT."""
        room = bytearray(max(0, size - len(self._kept)) or size)
        if not self._kept:
            self._kept = bytes(memoryview(room)[: self._receive(memoryview(room), flags & ~socket.MSG_PEEK)])
        found = self._kept[:size]
        if not flags & socket.MSG_PEEK:
            self._kept = self._kept[size:]
        return found

    def recv_into(self, buffer: bytearray | memoryview, nbytes: int = 0) -> int:
        room = memoryview(buffer)[: nbytes or len(buffer)]
        if not self._kept:
            return self._receive(room, 0)
        count = min(len(room), len(self._kept))
        room[:count], self._kept = self._kept[:count], self._kept[count:]
        return count

    def _receive(self, room: memoryview, flags: int) -> int:
        timeout_s = self._raw.gettimeout()
        until_s = time.monotonic() + timeout_s if timeout_s else None
        while True:
            count = self._decrypt(room)
            if count is not None:
                return count
            if until_s is not None:
                left_s = until_s - time.monotonic()
                if left_s <= 0:
                    raise TimeoutError("timed out")
                self._raw.settimeout(left_s)
            try:
                more = self._raw.recv(_READ_BYTES, flags)
            finally:
                if until_s is not None:
                    self._raw.settimeout(timeout_s)
            if more:
                self._incoming.write(more)
            else:
                self._incoming.write_eof()
            if until_s is None:
                count = self._decrypt(room)
                if count is None:
                    raise BlockingIOError("no whole record yet")
                return count

    def _decrypt(self, room: memoryview) -> int | None:
        """Payload into ``room``, as much as there is; 0 at the end of TLS, None when there is none yet."""
        count = 0
        try:
            while count < len(room):
                more: Any = self._tls.read(len(room) - count, cast(bytearray, room[count:]))  # into a buffer: how much
                if not more:
                    break
                count += more
        except ssl.SSLWantReadError:
            self._reply()
            return count or None
        except ssl.SSLZeroReturnError:
            pass  # the end, told so once we have told ours
        except ssl.SSLEOFError as error:
            if not count:
                raise TlsError("closed without the end of TLS") from error
        except ssl.SSLError as error:
            if not count:
                raise TlsError(f"TLS: {_reason(error)}") from error
        self._reply()
        return count

    def _reply(self) -> None:
        """What the library answers by itself (new keys, as the peer asked for): not without bound, should the peer not read."""
        self._collect()
        if len(self._unsent) > BATCH_BYTES + _REPLIES_LIMIT_BYTES:
            raise TlsError("TLS: asks for new keys without end")
        self.backlog()


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).lower().replace("_", " ")
