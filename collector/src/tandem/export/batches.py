"""One step of sending: the manifests that wait and a batch of records, each with its time; nothing while a clock is doubtful."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from tandem.export.gateway import Answer
from tandem.export.lines import encode_items
from tandem.export.manifests import PendingManifests, timed
from tandem.export.sending import CLOCK_WAIT_S, Ask, Later, not_now, send
from tandem.export.times import Comparison, NotYet, Times
from tandem.spool import Batch

log = logging.getLogger(__name__)

LINES = 1000
HELD_LINES = 200
"""While what is not urgent is held off: a second's records at the busiest, so that people still see now."""
NO_TIME = "the clock is not synchronised: records wait for their time; hint: see tandem status"


class Source(Protocol):
    """What is needed of the spool."""

    def take(
        self, limit: int, *, newest_only: bool = False, passing: Sequence[tuple[int, int | None]] = ()
    ) -> Batch | None:
        """See ``Spool``."""
        ...

    def acknowledge(self, batch: Batch) -> None:
        """See ``Spool``."""
        ...

    def reject(self, batch: Batch, seq: int, reason: str) -> None:
        """See ``Spool``."""
        ...

    def release(self, batch: Batch) -> None:
        """See ``Spool``."""
        ...


class Batches:
    """Used by one thread. ``now_s``: any steady clock."""

    def __init__(
        self,
        spool: Source,
        manifests: PendingManifests,
        probe: str,
        times: Times,
        ask: Ask,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._spool, self._manifests, self._probe, self._times = spool, manifests, probe, times
        self._plain_ask, self._now_s = ask, now_s
        self._comparison = Comparison()
        self.holding = False
        """Whether records were passed over in the last step because they have no time yet."""

    def step(self, *, newest_only: bool = False) -> int:
        """Send what waits: the manifests and a batch, whose records are counted. Raises Later, with everything kept."""
        later: Later | None = None
        passing = self._times.held()
        self.holding = bool(passing)
        try:
            for run in self._manifests.waiting():
                self._send_manifest(run)
        except Later as refused:
            later = refused  # records do not wait for the ledger
        sent = self._send_batch(newest_only, passing)
        if later is not None:
            raise later
        return sent

    def _send_batch(self, newest_only: bool, passing: Sequence[tuple[int, int | None]]) -> int:
        batch = self._spool.take(HELD_LINES if newest_only else LINES, newest_only=newest_only, passing=passing)
        if batch is None:
            return 0
        try:
            self._compare()
            encoded = encode_items(batch.items, self._probe, self._times.stamp)
            if encoded.untimed:
                raise Later(NO_TIME, 1.0)  # it became known after they were taken
            self._times.keep()  # before they go out: sent again after a power cut, they must have the same times
            for seq, reason in encoded.refused:
                self._spool.reject(batch, seq, reason)
            send(encoded.lines, self._ask, lambda seq, reason: self._rejected(batch, seq, reason))
        except BaseException:
            self._spool.release(batch)
            raise
        self._spool.acknowledge(batch)
        return len(batch.items)

    def _rejected(self, batch: Batch, seq: int, reason: str) -> None:
        """The gateway does not take a line: it is to blame, unless one of the clocks is."""
        if self._comparison.doubt is not None:
            raise Later(self._comparison.doubt, CLOCK_WAIT_S)
        self._spool.reject(batch, seq, reason)

    def _compare(self) -> None:
        """Later when the server's clock and this one are known not to agree; it is asked when that is not known."""
        times = self._times
        if times.now_ns() is None:
            return  # what may go now is of earlier boots, by maps that were compared then
        if not self._comparison.fresh(self._now_s(), times.map_key()) or self._comparison.doubt is not None:
            self._ask("GET", "/v1/health", b"", {})  # whatever it answers, it says when
        if self._comparison.doubt is not None:
            raise Later(self._comparison.doubt, CLOCK_WAIT_S)

    def _send_manifest(self, run: str) -> None:
        content = self._manifests.read(run)
        if content is None:
            log.warning("the manifest of run %s is gone; it is not sent", run)
            self._manifests.done(run)
            return
        try:
            self._compare()
            content = timed(content, self._times.stamp)
        except NotYet:
            self.holding = True  # as its records
            return
        self._times.keep()
        self._manifests.rewrite(run, content)
        answer = self._ask("PUT", f"/v1/runs/{run}", content, {"Content-Type": "application/json"})
        if answer.status in (400, 413):
            log.error("the gateway takes no manifest of run %s: %s; it stays on this disk", run, answer.error)
        elif answer.status != 200:
            raise not_now(answer)
        self._manifests.done(run)

    def _ask(self, method: str, url: str, content: bytes, headers: dict[str, str]) -> Answer:
        """Ask, and note what the answer says of the time."""
        times = self._times
        key, asked = times.map_key(), times.now_ns()
        answer = self._plain_ask(method, url, content, headers)
        self._comparison.saw(answer.date_utc_s, asked, times.now_ns(), self._now_s(), key)
        times.doubted(self._comparison.doubt is not None)
        return answer
