"""Downloads and uploads: never blocking in the kernel, so that statistics are read on time and every deadline is kept."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from typing import Literal

from tandem.schema.line_protocol import Point
from tandem.stream import Stream, backlog, unacknowledged
from tandem_server.endpoint.flows import FlowAccount, Sampler
from tandem_server.endpoint.http1 import Transfer
from tandem_server.endpoint.pool import BudgetLease

_BLOCK_BYTES = 1 << 20
_BLOCK = os.urandom(_BLOCK_BYTES)
PAYLOAD = memoryview(_BLOCK + _BLOCK)
"""Random, so that nothing on the way can compress it. The block twice, so that a whole one follows every offset."""

SAMPLE_PERIOD_S = 0.1
_FIRST_SAMPLE_S = 0.001
_DRAIN_S = 5.0
_CLOSED_S = 2.0
_LAST_LOOK_S = 0.005
_FINEST_LOOK_S = 0.0002
_LOOKS = 200
"""How often acknowledgements are looked for at the end: so many times in as long as the whole took, within the two bounds."""

DownloadEnd = Literal["complete", "budget", "stalled", "stopped", "client gone", "not acknowledged"]


class Measured:
    """A connection while it is measured. ``budget``: what it may carry; ``record`` gets the records of each reading; ``stop()`` true ends
    its transfer within 0.1 s, and so do ``stall_s`` without progress."""

    def __init__(
        self,
        stream: Stream,
        budget: BudgetLease,
        account: FlowAccount,
        record: Callable[[list[Point]], None],
        stop: Callable[[], bool],
        stall_s: float,
    ) -> None:
        self.budget, self.account, self._record, self.stop, self.stall_s = budget, account, record, stop, stall_s
        self.go_on_over(stream)

    def go_on_over(self, stream: Stream) -> None:
        """``stream`` is what is read and written from now on."""
        self.stream, self._sampler = stream, Sampler(stream)

    def sample(self, received_bytes: int | None = None) -> None:
        """Read the statistics. ``received_bytes``: of an upload so far."""
        snapshot = self._sampler.read()
        if snapshot is not None:
            self._record(self.account.take(snapshot, received_bytes))


class Download:
    """One response on one connected socket.

    After ``run``, ``sent_bytes`` is the payload handed to the kernel; ``first_sent_at_s`` when its first was (time.monotonic(); None:
    never); ``acked_at_s`` when all of it was acknowledged (None: never) and ``look_s`` how long before that it was not yet.
    """

    def __init__(self, measured: Measured, transfer: Transfer) -> None:
        self._measured, self._socket, self._transfer = measured, measured.stream, transfer
        self._budget, self._stop, self._stall_s = measured.budget, measured.stop, measured.stall_s
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLOUT | select.POLLRDHUP)
        self._next_sample_s = self._handed_s = 0.0
        self._asked_at_s = time.monotonic()
        self.sent_bytes = 0
        self.first_sent_at_s: float | None = None
        self.acked_at_s: float | None = None
        self.look_s: float | None = None

    def run(self, head: bytes) -> DownloadEnd:
        """Send ``head`` and the payload, and wait until all of it is acknowledged. Says how it ended; raises nothing."""
        self._socket.setblocking(False)
        try:
            end = self._send(head)
            if end in ("complete", "budget") and not self._drain():
                end = "not acknowledged"
        except OSError:
            end = "client gone"
        self._measured.sample()
        return end

    def _send(self, head: bytes) -> DownloadEnd:
        pending = memoryview(head)
        started_s = progress_s = time.monotonic()
        # The payload first: a small transfer's time must not hold a reading of ours.
        self._next_sample_s = started_s + _FIRST_SAMPLE_S
        over_s = started_s + self._transfer.seconds if self._transfer.seconds is not None else float("inf")
        offset = 0
        while True:
            now_s = time.monotonic()
            if now_s >= self._next_sample_s:
                self._measured.sample()
                self._next_sample_s = max(self._next_sample_s + SAMPLE_PERIOD_S, now_s)
                if self._stop():
                    return "stopped"
            if now_s >= over_s:
                return "complete"
            if now_s - progress_s > self._stall_s:
                return "stalled"
            wanted = _BLOCK_BYTES
            if self._transfer.payload_bytes is not None:
                wanted = min(wanted, self._transfer.payload_bytes - self.sent_bytes)
            all_given = wanted == 0 and not pending
            if all_given and not backlog(self._socket):
                return "complete"  # before looking whether the client has closed: one that has all may
            events = self._poll.poll(1000 * max(0.0, min(self._next_sample_s, over_s) - now_s))
            if not events:
                continue
            if events[0][1] & select.POLLRDHUP:
                # A Multipath TCP client that closes with nothing unread sends no reset, and its kernel takes data for a
                # minute more. Nobody who still wants the payload closes, so this is the end.
                # It may have closed by its own clock, too, and we notice it late, on a busy machine.
                return "complete" if time.monotonic() >= over_s else "client gone"
            allowed = self._budget.take(wanted)
            if allowed == 0 and not pending and not all_given:
                return "budget"
            count = of_head = 0
            try:
                self._handed_s = time.monotonic()
                if self.first_sent_at_s is None:
                    self.first_sent_at_s = self._handed_s
                # Head and payload in one call: Nagle's algorithm would keep a small payload back until the head is acknowledged.
                went = self._socket.sendmsg([pending, PAYLOAD[offset : offset + allowed]])
                of_head = min(went, len(pending))
                count = went - of_head
                progress_s = now_s
            except BlockingIOError:
                pass  # the room that poll saw is gone again; nothing was sent
            finally:
                self._budget.give_back(allowed - count)
            pending = pending[of_head:]
            self.sent_bytes += count
            offset = (offset + count) % _BLOCK_BYTES

    def _drain(self) -> bool:
        """Wait until the peer has acknowledged everything, so that the last sample's counters are whole."""
        left = unacknowledged(self._socket)
        progress_s = looked_s = time.monotonic()
        by_progress = self._transfer.payload_bytes is not None
        if not left:
            self.acked_at_s, self.look_s = progress_s, progress_s - self._handed_s
        patience_s = self._stall_s if by_progress else _DRAIN_S
        while left:
            now_s = time.monotonic()
            if now_s >= self._next_sample_s:
                self._measured.sample()
                self._next_sample_s = max(self._next_sample_s + SAMPLE_PERIOD_S, now_s)
            if self._stop():
                return False
            # No event tells of acknowledgements, so look often: the client's clock does not wait for this.
            time.sleep(min(_LAST_LOOK_S, max(_FINEST_LOOK_S, (now_s - self._asked_at_s) / _LOOKS)))
            before, left = left, unacknowledged(self._socket)
            earlier_s, looked_s = looked_s, time.monotonic()
            if not left:
                self.acked_at_s, self.look_s = looked_s, looked_s - earlier_s
            if left < before and by_progress:
                progress_s = looked_s
            if left and patience_s != _CLOSED_S and self._peer_closed():
                if not by_progress:
                    # A timed download: the client has closed by its own clock, and what is queued has no reader any more.
                    return True
                by_progress, progress_s, patience_s = False, looked_s, _CLOSED_S
            # Last, and by the time of this look: on a busy machine the thread may have slept while the client closed.
            if left and looked_s - progress_s > patience_s:
                return False
        return True

    def _peer_closed(self) -> bool:
        """Whether the peer has closed: its last acknowledgements are on the way then, or nobody waits any more. A reset is an error
        while bytes are owed; at the end of a timed download it is how a client that had unread bytes closes."""
        closed = False
        for _, event in self._poll.poll(0):
            if event & (select.POLLERR | select.POLLNVAL):
                if self._transfer.payload_bytes is None:
                    return True
                raise ConnectionError("reset by the peer")
            closed = bool(event & select.POLLRDHUP)
        return closed


_ROOM_BYTES = 1 << 18

UploadEnd = Literal["complete", "too short", "too long", "budget", "stalled", "over time", "stopped", "client gone"]


class Upload:
    """One request body on one connected socket.

    After ``run``, ``received_bytes`` is the payload that came, ``duration_s`` from its first to its last byte as this process got them
    (None: none).
    """

    def __init__(self, measured: Measured, transfer: Transfer) -> None:
        self._measured, self._socket, self._transfer = measured, measured.stream, transfer
        self._budget, self._stop, self._stall_s = measured.budget, measured.stop, measured.stall_s
        self._first_s = self._last_s = 0.0
        self.received_bytes = 0

    @property
    def duration_s(self) -> float | None:
        """First to last byte."""
        return self._last_s - self._first_s if self.received_bytes else None

    def run(self, begun: bytes) -> UploadEnd:
        """Take the body, of which ``begun`` came with the head. Says how it ended; raises nothing."""
        self._socket.setblocking(False)
        try:
            end = self._take(begun)
        except OSError:
            end = "client gone"
        self._measured.sample(self.received_bytes)
        return end

    def _take(self, begun: bytes) -> UploadEnd:
        room = memoryview(bytearray(_ROOM_BYTES))
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        wanted = self._transfer.payload_bytes
        next_sample_s = progress_s = time.monotonic()
        # What the client's kernel holds when its time is over still has to cross the path.
        over_s = (
            progress_s + self._transfer.seconds + self._stall_s if self._transfer.seconds is not None else float("inf")
        )
        if begun and (cut := self._count(len(begun), progress_s)):
            return cut
        while wanted is None or self.received_bytes < wanted:
            now_s = time.monotonic()
            if now_s >= next_sample_s:
                self._measured.sample(self.received_bytes)
                next_sample_s = max(next_sample_s + SAMPLE_PERIOD_S, now_s)
                if self._stop():
                    return "stopped"
            if now_s >= over_s:
                return "over time"
            if now_s - progress_s > self._stall_s:
                return "stalled"
            try:
                count = self._socket.recv_into(room)
            except BlockingIOError:
                # Only now: what TLS has decrypted already no poll tells of.
                poll.poll(1000 * max(0.0, next_sample_s - now_s))
                continue
            if count == 0:
                return "complete" if wanted is None else "too short"
            progress_s = time.monotonic()
            if cut := self._count(count, progress_s):
                return cut
        return "too long" if self._more() else "complete"

    def _count(self, count: int, now_s: float) -> UploadEnd | None:
        wanted = self._transfer.payload_bytes
        surplus = wanted is not None and self.received_bytes + count > wanted
        if wanted is not None and surplus:
            count = wanted - self.received_bytes
        allowed = self._budget.take(count)
        if not self.received_bytes:
            self._first_s = now_s
        self.received_bytes += allowed
        self._last_s = now_s
        if allowed < count:
            return "budget"
        return "too long" if surplus else None

    def _more(self) -> bool:
        """Whether something follows the last byte requested."""
        try:
            return bool(self._socket.recv(1))
        except BlockingIOError:
            return False
