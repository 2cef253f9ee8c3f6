"""Takes one upload and throws it away: counts, times, and cuts what lies about its length, stalls or never ends."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from typing import Literal

from tandem.stream import Stream
from tandem_server.endpoint.download import SAMPLE_PERIOD_S, Budget
from tandem_server.endpoint.request import Transfer
from tandem_server.endpoint.sampler import Sampler, Snapshot

_ROOM_BYTES = 1 << 18

End = Literal["complete", "too short", "too long", "budget", "stalled", "over time", "stopped", "client gone"]


class Upload:
    """One request body on one connected socket.

    ``on_sample`` gets each snapshot and the payload received so far. ``stop()`` true ends it within 0.1 s. After ``run``,
    ``received_bytes`` is the payload that came, ``duration_s`` from its first to its last byte as this process got them (None: none).
    """

    def __init__(
        self,
        connection: Stream,
        sampler: Sampler,
        transfer: Transfer,
        budget: Budget,
        on_sample: Callable[[Snapshot, int], None],
        stop: Callable[[], bool],
        stall_s: float,
    ) -> None:
        self._socket, self._sampler, self._transfer, self._budget = connection, sampler, transfer, budget
        self._on_sample, self._stop, self._stall_s = on_sample, stop, stall_s
        self._first_s = self._last_s = 0.0
        self.received_bytes = 0

    @property
    def duration_s(self) -> float | None:
        """First to last byte."""
        return self._last_s - self._first_s if self.received_bytes else None

    def run(self, begun: bytes) -> End:
        """Take the body, of which ``begun`` came with the head. Says how it ended; raises nothing."""
        self._socket.setblocking(False)
        try:
            end = self._take(begun)
        except OSError:
            end = "client gone"
        self._sample()
        return end

    def _take(self, begun: bytes) -> End:
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
                self._sample()
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

    def _count(self, count: int, now_s: float) -> End | None:
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

    def _sample(self) -> None:
        snapshot = self._sampler.read()
        if snapshot is not None:
            self._on_sample(snapshot, self.received_bytes)
