"""Read the body of a download: into one buffer again and again, never looked at, only counted and timed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tandem.experiment import http_head
from tandem.experiment.base import STOPPED, Stop
from tandem.experiment.control import describe
from tandem.schema.manifest import Failure
from tandem.stream import Stream, wake

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
                    return Failure(reason="deadline passed", retry=True)
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
        lasted = (
            0.0
            if self.first_byte_ns is None or self.last_byte_ns is None
            else (self.last_byte_ns - self.first_byte_ns) / 1e9
        )
        if expected_s is not None and lasted < 0.8 * expected_s:
            # the server counts from the first byte it sent, and what is in flight at its end still comes
            return Failure(reason=f"closed after {lasted:.1f} of {expected_s:g} s", retry=True)
        return None


def _refused(head: http_head.Head, expected_bytes: int | None, body: bytes) -> Failure | None:
    if head.status != 200:
        return Failure(reason=http_head.refusal(head.status, body), retry=head.status in (429, 500, 502, 503, 504))
    if expected_bytes is not None and head.length != expected_bytes:
        return Failure(reason=f"Content-Length {head.length}, asked for {expected_bytes}", retry=False)
    return None
