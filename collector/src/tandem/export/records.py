"""Records to the gateway: numbered records become lines, a batch of lines goes up whatever the gateway answers, and manifests beside them;
nothing while a clock is doubtful."""

from __future__ import annotations

import gzip
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.export.gateway import CLOCK_WAIT_S, UNKNOWN_WAIT_S, Answer, Ask, Later, not_now
from tandem.export.manifests import PendingManifests, timed
from tandem.export.times import Comparison, NotYet, Stamp, Times
from tandem.schema.line_protocol import encode
from tandem.schema.record import RecordError
from tandem.spool import Batch, Item, Spool

log = logging.getLogger(__name__)

LINES = 1000
HELD_LINES = 200
"""While what is not urgent is held off: a second's records at the busiest, so that people still see now."""
NO_TIME = "the clock is not synchronised: records wait for their time; hint: see tandem status"
HEADERS = {"Content-Type": "text/plain; charset=utf-8", "Content-Encoding": "gzip"}

StampOf = Callable[[str, int], Stamp]
"""From boot and CLOCK_MONOTONIC ns to a time: ``times.Times.stamp``."""

TELL_ERROR_MS = 100.0
"""A time that may be further off than this is told with its error in the record itself; the others' is in the ``clock`` records."""


@dataclass(frozen=True, slots=True)
class Line:
    """One record as text."""

    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Encoded:
    """``lines`` to send; ``refused``: number and reason of records that can be no line; ``untimed``: records without time."""

    lines: tuple[Line, ...]
    refused: tuple[tuple[int, str], ...]
    untimed: int


def encode_items(items: Sequence[Item], probe: str, stamp: StampOf) -> Encoded:
    """``items`` as lines with the common tags. A record gets its time here, by the map of its boot."""
    lines: list[Line] = []
    refused: list[tuple[int, str]] = []
    untimed = 0
    for item in items:
        record = item.record
        try:
            when = stamp(item.boot, record.monotonic_ns)
            error_ms = when.error_ms if when.error_ms is not None and when.error_ms > TELL_ERROR_MS else None
            tags = {"probe": probe, "boot": item.boot}
            lines.append(Line(item.seq, encode(record, tags, item.seq, when.utc_ns, error_ms)))
        except NotYet:
            untimed += 1
        except (RecordError, KeyError, ValueError, TypeError) as error:
            # A spool from another version of the schema: one record must not hold up the others.
            refused.append((item.seq, f"{record.measurement} cannot be a line: {error}"))
    return Encoded(tuple(lines), tuple(refused), untimed)


def body(lines: Sequence[Line]) -> bytes:
    """The lines, gzipped. Level 6 halves what level 1 leaves of the uplink's bytes for 3 ms a thousand lines on a laptop."""
    return gzip.compress("\n".join(line.text for line in lines).encode(), 6, mtime=0)


def send(lines: Sequence[Line], ask: Ask, reject: Callable[[int, str], None]) -> int:
    """Send all ``lines``; ``reject`` is called with number and reason for each that is not wanted. How many were accepted.

    Later when it has to be tried again as a whole: what was accepted until then is accepted again, which changes nothing.
    """
    accepted = 0
    waiting = [tuple(lines)] if lines else []
    while waiting:
        part = waiting.pop()
        answer = ask("POST", "/v1/records", body(part), HEADERS)
        if answer.status == 200:
            refused = _refused(answer.content, len(part))
            for number, reason in refused.items():
                reject(part[number].seq, reason)
            accepted += len(part) - len(refused)
        elif answer.status in (400, 413):
            if len(part) == 1:
                reject(part[0].seq, answer.error)
            else:
                middle = len(part) // 2
                waiting += [part[middle:], part[:middle]]
        else:
            raise not_now(answer)
    return accepted


def _refused(content: Any, sent: int) -> dict[int, str]:  # noqa: ANN401  JSON from outside
    """Line and reason of the rejected; Later unless the answer settles exactly the lines sent."""
    odd = Later("an answer that does not settle the batch", UNKNOWN_WAIT_S)
    if not isinstance(content, dict) or not isinstance(content.get("rejected"), list):
        raise odd
    refused: dict[int, str] = {}
    for entry in content["rejected"]:
        if not isinstance(entry, dict) or type(entry.get("line")) is not int or not 0 <= entry["line"] < sent:
            raise odd
        refused[entry["line"]] = str(entry.get("reason", "no reason given"))[:500]
    if content.get("accepted") != sent - len(refused):
        raise odd
    return refused


class Batches:
    """Used by one thread. ``now_s``: any steady clock."""

    def __init__(
        self,
        spool: Spool,
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
        held = self._times.held()
        self.holding = bool(held)
        try:
            for run in self._manifests.waiting():
                self._send_manifest(run)
        except Later as refused:
            later = refused  # records do not wait for the ledger
        sent = self._send_batch(newest_only, held)
        if later is not None:
            raise later
        return sent

    def _send_batch(self, newest_only: bool, held: Sequence[tuple[int, int | None]]) -> int:
        batch = self._spool.take(HELD_LINES if newest_only else LINES, newest_only=newest_only, held=held)
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
        key, requested_ns = times.map_key(), times.now_ns()
        answer = self._plain_ask(method, url, content, headers)
        self._comparison.saw(answer.date_utc_s, requested_ns, times.now_ns(), self._now_s(), key)
        times.doubted(self._comparison.doubt is not None)
        return answer
