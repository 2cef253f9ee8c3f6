"""What becomes of offers and bytes of traces: registry, streams on disk and the store brought together. Knows no HTTP."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

from tandem.schema.trace import MOST_BYTES, Encoding, Offer, Receipt
from tandem_server.http.rates import DAY_S, DaySpent, Reserve
from tandem_server.registry import NameTaken, Registry, TooManyUnfinished, TraceRow, Unfinished
from tandem_server.uploads.folder import make_folder
from tandem_server.uploads.store import NotTheFile, TraceStore, check_stream
from tandem_server.uploads.stream import BadBytes, Busy, NoOffer, Stream, Streams, Writer, found

_LOG = logging.getLogger("tandem.traces")
MOST_FAILED = 3
_DAY_NS = 86_400 * 10**9


@dataclass(frozen=True, slots=True)
class UploadLimits:
    """``trace_bytes``: the largest file taken. ``probe_bytes_per_day`` (UTC): of streams, looked at each 8 MiB. ``reserve_bytes``: what
    is left free on the disk. ``unfinished_days``: after which an offer that nothing came for is given up."""

    trace_bytes: int = MOST_BYTES
    probe_bytes_per_day: int = 20_000_000_000
    unfinished_per_probe: int = 16
    unfinished_days: float = 14.0
    reserve_bytes: int = 1_000_000_000


class TooLarge(ValueError):  # noqa: N818  (an answer, no accident)
    """The file is larger than this server takes."""


class Refused(ValueError):  # noqa: N818  (an answer, no accident)
    """An offer that cannot be fulfilled."""


@dataclass(frozen=True, slots=True)
class State:
    """``receipt``: it was received; else ``offset`` is where the stream goes on."""

    offset: int = 0
    receipt: Receipt | None = None


class UploadService:
    """``folder``: where streams are put together. Several services, also of several processes, may share it."""

    def __init__(self, registry: Registry, store: TraceStore, folder: Path, limits: UploadLimits) -> None:
        make_folder(folder)
        self._traces, self._offers, self._store, self._limits = registry.traces, registry.pending_uploads, store, limits
        self._streams, self._reserve = Streams(folder), Reserve([folder], limits.reserve_bytes)

    def offer(self, probe: str, offer: Offer) -> State:
        """Take an offer. NameTaken, TooManyUnfinished, TooLarge, Refused, DaySpent, NoRoom, Busy."""
        if offer.bytes > self._limits.trace_bytes:
            raise TooLarge(f"this server takes files of up to {self._limits.trace_bytes} bytes")
        with self._streams.locked(probe, offer.sha256) as stream:
            try:
                return self._taken(probe, offer, stream)
            finally:
                if self._offers.known(probe, offer.sha256) is None:
                    stream.remove()  # not a lock file for each offer that is refused

    def _taken(self, probe: str, offer: Offer, stream: Stream) -> State:
        before = self._offers.offered(probe, offer.sha256)
        try:
            answer = self._offers.offer(probe, offer, self._limits.unfinished_per_probe)
        except TooManyUnfinished:
            # What a probe lost, or forgot, must not keep it from sending for as long as leftovers are kept.
            oldest = self._offers.unfinished(probe)[0]
            if oldest.touched_utc_ns > time.time_ns() - _DAY_NS or not self._given_up(oldest):
                raise
            answer = self._offers.offer(probe, offer, self._limits.unfinished_per_probe)
        if isinstance(answer, TraceRow):
            return State(receipt=answer.receipt)
        if answer.failed >= MOST_FAILED:
            raise Refused("these chunks came whole, again and again, and are not this file; hint: offer it anew")
        if before is None or (before[1].chunks, before[1].encoding) != (offer.chunks, offer.encoding):
            stream.begin_anew()
        size = found(stream, self._offers, probe, offer.sha256)[1]
        if size < offer.stream_bytes:
            self._reserve.check(offer.stream_bytes - size)
            self._check_day(self._offers.today_bytes(probe))
        return State(size)

    def state(self, probe: str, sha256: str) -> State:
        """How far it is; NoOffer, Busy."""
        if (received := self._traces.of_content(probe, sha256)) is not None:
            return State(receipt=received.receipt)
        try:
            self._check_offered(probe, sha256)
            with self._streams.locked(probe, sha256) as stream:
                return State(found(stream, self._offers, probe, sha256)[1])
        except NoOffer:
            # An offer ends when the trace is received: that may have been between the two looks.
            if (received := self._traces.of_content(probe, sha256)) is None:
                raise
            return State(receipt=received.receipt)

    def complete(self, probe: str, sha256: str) -> bool:
        """Whether all bytes are there and only ``settle`` is left."""
        known = self._offers.known(probe, sha256)
        return known is not None and self._streams.size(probe, sha256) >= known.stream_bytes

    def begin(self, probe: str, sha256: str, offset: int) -> Writer:
        """The writer of what comes from ``offset`` on; NoOffer, WrongOffset, DaySpent, NoRoom, Busy."""
        self._check_offered(probe, sha256)
        self._check_day(self._offers.today_bytes(probe))
        self._reserve.check()
        return Writer(self._streams, self._offers, probe, sha256, offset)

    def checkpoint(self, writer: Writer) -> None:
        """Sync and write down what came; DaySpent, NoRoom when no more may come."""
        today = writer.checkpoint()
        if not writer.complete:
            self._check_day(today)
            self._reserve.check()

    def _check_offered(self, probe: str, sha256: str) -> None:
        """Also one that failed too often is none: the answer to its next offer says why."""
        known = self._offers.known(probe, sha256)
        if known is None or known.failed >= MOST_FAILED:
            raise NoOffer(sha256)

    def _check_day(self, today_bytes: int) -> None:
        if today_bytes >= self._limits.probe_bytes_per_day:
            raise DaySpent(-time.time() % DAY_S)

    def settle(self, probe: str, sha256: str) -> State:
        """What is left to do when all bytes are there: verify the whole, put it into the store, write it down; the receipt.
        May take long. NoOffer, BadBytes, NameTaken, TraceStoreDown, TraceStoreFull, Busy."""
        received = self._traces.of_content(probe, sha256)
        if received is not None:
            return State(receipt=received.receipt)
        self._check_offered(probe, sha256)
        with self._streams.locked(probe, sha256) as stream:
            offer, size = found(stream, self._offers, probe, sha256)
            if size < offer.stream_bytes:
                return State(size)
            return State(receipt=self._settled(probe, offer, stream).receipt)

    def _settled(self, probe: str, offer: Offer, stream: Stream) -> TraceRow:
        stream.taken_over()
        if not offer.stream_bytes:
            stream.file.touch(0o600)
        try:
            with stream.file.open("rb") as whole:
                check_stream(whole, offer)
        except NotTheFile as error:
            _LOG.warning("%s: %s: %s", probe, offer.name, error)
            self._offers.failed(probe, offer.sha256)
            stream.begin_anew()
            raise BadBytes(0, str(error)) from None
        taken = self._traces.named(probe, offer.name)
        if taken is not None and taken.sha256 != offer.sha256:
            self._offers.forget(probe, offer.sha256)
            stream.remove()
            raise NameTaken(f"another content was received as {offer.name!r}, and stays")
        encoding: Encoding = offer.encoding if offer.bytes else "identity"  # no member at all is no gzip file
        stored = self._store.put(stream.file, probe, offer.name, offer.sha256, encoding)
        row = self._offers.finish(probe, offer, stored.place, encoding, stored.stored_bytes)
        stream.remove()
        _LOG.info("%s: received %s, %d bytes, %s", probe, offer.name, offer.bytes, row.place)
        return row

    def sweep(self) -> int:
        """Give up what nothing came for in ``unfinished_days``, and remove files that belong to no offer; how many offers were given up."""
        oldest_utc_ns = time.time_ns() - int(self._limits.unfinished_days * _DAY_NS)
        given_up = 0
        for one in self._offers.unfinished():
            if one.touched_utc_ns < oldest_utc_ns:
                given_up += self._given_up(one)
        for probe, sha256 in self._streams.all():
            if self._offers.known(probe, sha256) is None:
                self._cleared(probe, sha256)
        return given_up

    def _given_up(self, one: Unfinished) -> bool:
        try:
            with self._streams.locked(one.probe, one.sha256, 0.0) as stream:
                had_bytes = stream.size
                gone = self._offers.expire(one, had_bytes)
                if gone:
                    stream.remove()
                    _LOG.warning(
                        "%s: gave up %s: nothing came for %.1f days; it had %d of %d bytes",
                        one.probe, one.name, (time.time_ns() - one.touched_utc_ns) / _DAY_NS, had_bytes, one.stream_bytes,
                    )  # fmt: skip
        except Busy:
            return False
        return gone

    def _cleared(self, probe: str, sha256: str) -> None:
        try:
            with self._streams.locked(probe, sha256, 0.0) as stream:
                if self._offers.known(probe, sha256) is None:
                    stream.remove()
        except Busy:
            _LOG.debug("%s: %s is being used", probe, sha256)
