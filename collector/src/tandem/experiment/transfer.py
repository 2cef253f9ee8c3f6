"""The body of one measured transfer. A download is read into one buffer again and again, never looked at, only counted and timed; of an
upload the kernel says when its last byte was acknowledged.

What is not acknowledged yet is SIOCOUTQ of the measured socket: of TCP, the sequence space after the last acknowledgement; of Multipath
TCP (Linux 5.17 and later, and after a fallback as TCP), the data after the last acknowledged data sequence number, whichever subflow
carried it. No event reports acknowledgements, so the kernel is looked at again and again; ``resolution_s`` is the time between the last
two looks: the acknowledgement came within it.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from dataclasses import dataclass

from tandem.experiment import http_head
from tandem.experiment.base import LATE, STOPPED, Stop
from tandem.experiment.control import describe, mapping, parsed, real
from tandem.schema.manifest import Failure
from tandem.stream import Stream, TlsStream, unacknowledged, wake

BUFFER_BYTES = 1 << 20
_UNHURRIED_BYTES = 1 << 20
"""No pauses before so many bytes came, nor when fewer are left: short downloads are timed to the packet."""
_WAKE_S = 0.25


@dataclass(slots=True)
class Transfer:
    """One body being read. ``received`` is payload so far and may be read by another thread. Times are CLOCK_MONOTONIC ns.

    ``over_ns``: when this end stopped reading a timed download: its time was up, or it was given up. An outage at its end counts.
    """

    received: int = 0
    requested_ns: int | None = None
    first_byte_ns: int | None = None
    last_byte_ns: int | None = None
    over_ns: int | None = None

    def run(
        self,
        connection: Stream,
        request: bytes,
        expected_bytes: int | None,
        expected_s: float | None,
        stall_s: float,
        pause_s: float,
        deadline_ns: int,
        stop: Stop,
    ) -> Failure | None:
        """Send ``request`` and read until the body ends, or for ``expected_s`` from its first byte; None when that was reached, else why
        not. What came is kept.

        ``pause_s``: between two reads in mid-stream, so that not every packet wakes the reader, which halves the CPU. It must be
        short against the network's RTT: then neither the window nor the kernel's tuning of the buffer notices.
        """
        wake(connection, _WAKE_S)
        buffer = bytearray(BUFFER_BYTES)
        try:
            self.requested_ns = heard_ns = time.monotonic_ns()
            connection.sendall(request)
            head: http_head.Head | None = None
            start = b""
            while True:
                try:
                    count = connection.recv_into(buffer)
                except BlockingIOError:
                    count = -1
                now = time.monotonic_ns()
                if expected_s is not None:
                    self.over_ns = now
                if stop.requested:
                    return STOPPED
                if now > deadline_ns:
                    return LATE
                if expected_s is not None and self.first_byte_ns and now - self.first_byte_ns >= expected_s * 1e9:
                    # By our own clock, as iperf does: what is queued and still comes would be counted at the pace of the slower
                    # path's tail. The body of a timed download ends by closing, so closing early is no error.
                    self.over_ns = self.first_byte_ns + int(expected_s * 1e9)
                    return None
                if count < 0:
                    if now - heard_ns > stall_s * 1e9:
                        return Failure(reason=f"stalled: no byte for {stall_s:g} s", retry=True)
                    continue
                heard_ns = now
                if head is not None:
                    self._count(count, now)
                elif count > 0:
                    start += buffer[:count]
                    head = http_head.parse(start)
                    if head is None:
                        continue
                    refused = _refused(head, expected_bytes, start[head.size :])
                    if refused is not None:
                        return refused
                    self._count(len(start) - head.size, now)
                if count == 0:
                    return self._ended(head, expected_bytes, expected_s)
                if expected_bytes is not None and self.received >= expected_bytes:
                    return None
                left = _UNHURRIED_BYTES if expected_bytes is None else expected_bytes - self.received
                if self.received > _UNHURRIED_BYTES <= left:
                    time.sleep(pause_s)
        except http_head.HeadError as error:
            return Failure(reason=str(error), retry=False)
        except OSError as error:
            return Failure(reason=describe(error), retry=True)

    def _count(self, count: int, now: int) -> None:
        if count:
            self.first_byte_ns = self.first_byte_ns or now
            self.last_byte_ns = now
            self.received += count

    def _ended(
        self, head: http_head.Head | None, expected_bytes: int | None, expected_s: float | None
    ) -> Failure | None:
        """The peer closed: rightly so only when the whole body is there."""
        if head is None:
            return Failure(reason="closed before any answer", retry=True)
        if expected_bytes is not None:
            return Failure(reason=f"closed after {self.received} of {expected_bytes} bytes", retry=True)
        lasted = ((self.last_byte_ns or 0) - (self.first_byte_ns or 0)) / 1e9
        if expected_s is not None and lasted < 0.8 * expected_s:
            # the server counts from the first byte it sent, and what is in flight at its end still comes
            return Failure(reason=f"closed after {lasted:.1f} of {expected_s:g} s", retry=True)
        return None


def _refused(head: http_head.Head, expected_bytes: int | None, body: bytes) -> Failure | None:
    if head.status != 200:
        return Failure(reason=http_head.refusal(head.status, body), retry=head.status in http_head.WORTH_RETRYING)
    if expected_bytes is not None and head.length != expected_bytes:
        return Failure(reason=f"Content-Length {head.length}, asked for {expected_bytes}", retry=False)
    return None


_FINEST_LOOK_S, _COARSEST_LOOK_S, _LOOKS = 0.0002, 0.002, 1000
"""Between two looks at what is not acknowledged, once everything is written: a thousandth of the time so far, within these bounds. A long
transfer over a slow path drains for many seconds, in which a small computer has better to do than to look."""
_BLOCK_BYTES = 1 << 18
_UPLOAD_WAKE_S = 0.05
_LONGEST_ANSWER = 65536


class _Over(Exception):  # noqa: N818  not an error by itself: how one upload ends early, caught in this module
    def __init__(self, failure: Failure) -> None:
        super().__init__(failure["reason"])
        self.failure = failure


class _Closed(_Over):
    """The server ended the connection with nothing but a part of an answer."""


class Upload:
    """One body being sent. Times are CLOCK_MONOTONIC ns. ``sent``: payload written, ``acked``: of it acknowledged, when last looked;
    both may be read by another thread.

    ``begun_ns``: before the first byte of the request was written. ``acked_ns``: the look that found all of a body of so many bytes
    acknowledged. ``over_ns``, ``acked_in_time``: of a timed one, its end by our own clock and the payload acknowledged until then.
    ``received``, ``receiver_s``: the server's figures.
    """

    def __init__(self) -> None:
        self.sent = self.acked = 0
        self.begun_ns: int | None = None
        self.acked_ns: int | None = None
        self.resolution_s: float | None = None
        self.over_ns: int | None = None
        self.acked_in_time: int | None = None
        self.received: int | None = None
        self.receiver_s: float | None = None

    def run(
        self,
        connection: Stream,
        head: bytes,
        wanted_bytes: int | None,
        wanted_s: float | None,
        stall_s: float,
        deadline_ns: int,
        stop: Stop,
    ) -> Failure | None:
        """Send ``head`` and a body of ``wanted_bytes``, or for ``wanted_s``, and read the answer; None when the server got all of it,
        else why not. What was acknowledged is kept."""
        self._socket, self._head, self._stop = connection, head, stop
        self._stall_ns, self._deadline_ns = int(stall_s * 1e9), deadline_ns
        self._written = 0  # head and payload
        self._heard_ns = time.monotonic_ns()
        self._answer = b""
        block = os.urandom(_BLOCK_BYTES)  # random: nothing on the way can compress it
        self._payload = memoryview(block + block)  # twice, so that a whole block follows every offset
        self._poll = select.poll()
        try:
            self._send(wanted_bytes, wanted_s)
        except _Over as over:
            return over.failure
        except http_head.HeadError as error:
            return Failure(reason=str(error), retry=False)
        except OSError as error:
            return Failure(reason=describe(error), retry=True)
        return None

    def _send(self, wanted_bytes: int | None, wanted_s: float | None) -> None:
        """Send it all and read the answer; _Over when that ends early."""
        self._socket.setblocking(False)
        self._poll.register(self._socket, select.POLLIN | select.POLLOUT)
        self.begun_ns = self._heard_ns = time.monotonic_ns()
        over_ns = None if wanted_s is None else self.begun_ns + int(wanted_s * 1e9)
        while wanted_bytes is None or self.sent < wanted_bytes:
            now = time.monotonic_ns()
            if over_ns is not None and now >= over_ns:
                break
            self._look(now)
            if self.received is not None:
                raise _Over(Failure(reason="answered before the body was whole", retry=False))
            wake_s = _UPLOAD_WAKE_S if over_ns is None else min(_UPLOAD_WAKE_S, (over_ns - now) / 1e9)
            if self._ready(wake_s, select.POLLIN | select.POLLOUT) & select.POLLOUT:
                self._write(None if wanted_bytes is None else wanted_bytes - self.sent)
        if wanted_bytes is not None:
            self._await_last(wanted_bytes)
        elif over_ns is not None:
            self._look(time.monotonic_ns())
            self.over_ns, self.acked_in_time = over_ns, self.acked
            self._socket.shutdown(socket.SHUT_WR)
        self._read_answer()
        expected = wanted_bytes if wanted_bytes is not None else self.sent
        if self.received != expected:
            raise _Over(Failure(reason=f"the server counted {self.received} of {expected} bytes", retry=True))

    def _write(self, left: int | None) -> None:
        start, size = self._written, len(self._head)
        offset = max(0, start - size) % _BLOCK_BYTES
        length = _BLOCK_BYTES if left is None else min(_BLOCK_BYTES, left)
        try:
            # head and first payload in one call, so that a small body leaves in one segment with its head
            pieces = (memoryview(self._head)[start:], self._payload[offset : offset + length])
            self._written += self._socket.sendmsg(pieces)
        except BlockingIOError:
            return  # the room that poll saw is gone again
        except (BrokenPipeError, ConnectionResetError):
            # The server may have said why; at an end without a word the error, which the kernel reports once, says more.
            with contextlib.suppress(_Closed):
                self._ready(0, select.POLLIN)
            raise
        self.sent = max(0, self._written - size)

    def _look(self, now: int) -> int:
        """What is not acknowledged; _Over when that takes too long, or the time is up, or when the run is to stop."""
        left = unacknowledged(self._socket)
        of_all = self._socket.payload_acked(left) if isinstance(self._socket, TlsStream) else self._written - left
        acked = min(max(0, of_all - len(self._head)), self.sent)
        if acked > self.acked:
            self.acked, self._heard_ns = acked, now
        if self._stop.requested:
            raise _Over(STOPPED)
        if now > self._deadline_ns:
            raise _Over(LATE)
        if now - self._heard_ns > self._stall_ns:
            raise _Over(Failure(reason=f"stalled: nothing heard for {self._stall_ns / 1e9:g} s", retry=True))
        return left

    def _ready(self, seconds: float, events: int) -> int:
        """What the socket is ready for within ``seconds``. An answer before the body is whole is a refusal; a reset is an OSError."""
        self._poll.modify(self._socket, events)
        found = self._poll.poll(max(0.0, seconds * 1000))
        event = found[0][1] if found else 0
        if event & select.POLLIN:
            whole = self._read()  # first: a refusal may lie before a reset
            if whole is not None:
                self._take(*whole)
        elif event & (select.POLLERR | select.POLLHUP | select.POLLNVAL):
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                raise OSError(code, os.strerror(code))
            raise _Over(Failure(reason="closed before the answer", retry=True))
        return event

    def _await_last(self, wanted_bytes: int) -> None:
        before = time.monotonic_ns()
        while True:
            now = time.monotonic_ns()
            if self._look(now) == 0:
                break
            before = now
            self._ready(0, select.POLLIN)
            lasted_s = (now - (self.begun_ns or now)) / 1e9
            time.sleep(min(_COARSEST_LOOK_S, max(_FINEST_LOOK_S, lasted_s / _LOOKS)))
        # A socket that was reset has nothing queued either: only the server's answer makes it an acknowledgement.
        self.acked, self.acked_ns = wanted_bytes, now
        self.resolution_s = (now - before) / 1e9

    def _read_answer(self) -> None:
        while self.received is None:
            if not self._ready(_UPLOAD_WAKE_S, select.POLLIN) & select.POLLIN:
                self._look(time.monotonic_ns())
            elif self._stop.requested or time.monotonic_ns() > self._deadline_ns:
                self._look(time.monotonic_ns())  # which says which of the two

    def _read(self) -> tuple[http_head.Head, bytes] | None:
        """More of the answer; its head and body once it is whole."""
        try:
            piece = self._socket.recv(_LONGEST_ANSWER)
        except BlockingIOError:
            return None
        self._answer += piece
        head = http_head.parse(self._answer)
        if head is None or head.length is None or len(self._answer) - head.size < head.length:
            if not piece:
                raise _Closed(Failure(reason="closed before the answer was whole", retry=True))
            if len(self._answer) > _LONGEST_ANSWER or (head and (head.length or 0) > _LONGEST_ANSWER):
                raise _Over(Failure(reason=f"an answer above {_LONGEST_ANSWER} bytes", retry=False))
            return None
        return head, self._answer[head.size :]

    def _take(self, head: http_head.Head, body: bytes) -> None:
        """Take the whole answer; _Over when it refuses."""
        if head.status != 200:
            retry = head.status in http_head.WORTH_RETRYING
            raise _Over(Failure(reason=http_head.refusal(head.status, body), retry=retry))
        answer = mapping(parsed(body))
        received = answer.get("bytes")
        if type(received) is not int or received < 0:
            raise _Over(Failure(reason=f"an answer without the bytes received: {body[:40]!r}", retry=False))
        self.received = received
        self.receiver_s = seconds(answer.get("duration_s"))


def seconds(value: object) -> float | None:
    """A time above 0 by a server; None for anything else."""
    found = real(value)
    return found if found is not None and 0 < found < 1e9 else None
