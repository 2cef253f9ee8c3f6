"""What becomes of offers and bytes of traces: registry, streams on disk and the store brought together. Knows no HTTP.

A stream on disk is one file, one lock, one writer; the length that a probe learns is synced and true. Several processes work on one folder,
so all truth is on disk. ``SHA256.lock`` is locked (flock) for each step, never while bytes are awaited, and names the writer: the newest
request that sends wins, and one on a dead connection finds out at its next step.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import logging
import os
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tandem.schema.trace import MOST_BYTES, Chunk, Encoding, Offer, Receipt
from tandem_server.durable import sync
from tandem_server.http.body import Busy
from tandem_server.http.rates import DAY_S, DaySpent, NoRoom, Reserve
from tandem_server.registry import NameTaken, PendingUploads, Registry, TooManyUnfinished, TraceRow, Unfinished
from tandem_server.uploads.store import NotTheFile, TraceStore, check_stream, make_folder

_LOG = logging.getLogger("tandem.traces")
_WRITER_BYTES = 16
_TRY_S = 0.02
_READ_BYTES = 1024 * 1024
NOBODY = bytes(_WRITER_BYTES)
CHECKPOINT_BYTES = 8 * 1024 * 1024
"""After so many bytes at the latest they are synced, and the registry written."""


BUSY_S = 5


class WrongOffset(ValueError):  # noqa: N818  (an answer, no accident)
    """The bytes are not those that come next; ``offset`` is where the stream ends."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"the stream ends at byte {offset}")
        self.offset = offset


class BadBytes(WrongOffset):
    """A chunk, or the whole, is not what was offered; the stream was cut to ``offset``."""

    def __init__(self, offset: int, why: str) -> None:
        super().__init__(offset)
        self.why, self.args = why, (f"{why}; {self}",)


class TooLong(ValueError):  # noqa: N818  (an answer, no accident)
    """More bytes came than the stream has."""


class NoOffer(KeyError):  # noqa: N818  (an answer, no accident)
    """This probe has nothing on its way under this hash."""


class Streams:
    """The files of unfinished traces in ``folder``, by probe and hash."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, probe: str, sha256: str) -> Path:
        """The stream's file. Both names were checked: a probe's, a hash."""
        return self.folder / probe / f"{sha256}.stream"

    def size(self, probe: str, sha256: str) -> int:
        """Bytes in the file, checked or not; 0 without one."""
        try:
            return self.path(probe, sha256).stat().st_size
        except FileNotFoundError:
            return 0

    def all(self) -> Iterator[tuple[str, str]]:
        """Probe and hash of everything that has a file here."""
        for lock in sorted(self.folder.glob("*/*.lock")):
            yield lock.parent.name, lock.stem

    @contextlib.contextmanager
    def locked(self, probe: str, sha256: str, wait_s: float = 2.0) -> Iterator[Stream]:
        """The stream, held; Busy after ``wait_s``."""
        lock = self.path(probe, sha256).with_suffix(".lock")
        make_folder(lock.parent)
        descriptor = _held(lock, time.monotonic() + wait_s)
        try:
            yield Stream(self.path(probe, sha256), lock, descriptor)
        finally:
            os.close(descriptor)


def _held(lock: Path, deadline_s: float) -> int:
    """A locked descriptor of the file that has this name: one that was removed while we waited holds nothing."""
    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), lock.stat()):
                    return descriptor
        except BlockingIOError:
            if time.monotonic() > deadline_s:
                os.close(descriptor)
                raise Busy("it is being put into the store", BUSY_S, spread=False) from None
            time.sleep(_TRY_S)  # flock knows no bound of time
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


class Stream:
    """One stream while it is held."""

    def __init__(self, file: Path, lock: Path, descriptor: int) -> None:
        self.file, self._lock, self._descriptor = file, lock, descriptor

    @property
    def size(self) -> int:
        """Bytes in the file."""
        try:
            return self.file.stat().st_size
        except FileNotFoundError:
            return 0

    def taken_over(self) -> bytes:
        """Name a new writer; whoever wrote before is none any more."""
        writer = secrets.token_bytes(_WRITER_BYTES)
        os.pwrite(self._descriptor, writer, 0)
        return writer

    def written_by(self, writer: bytes) -> bool:
        """Whether this is still the writer."""
        return os.pread(self._descriptor, _WRITER_BYTES, 0) == writer

    def begin_anew(self) -> None:
        """Forget all bytes. A new file: the old one may already be linked into the store."""
        self.taken_over()
        self.file.unlink(missing_ok=True)

    def remove(self) -> None:
        """The end of it: file and lock."""
        os.pwrite(self._descriptor, NOBODY, 0)
        self.file.unlink(missing_ok=True)
        self._lock.unlink(missing_ok=True)

    def recovered(self, offer: Offer, checked_bytes: int) -> tuple[int, int]:
        """Length and checked length of what is there, on disk: chunks that nobody has checked yet are checked, what is none of
        the offer is cut off. Fewer bytes than were once on disk are trusted no more than unchecked ones."""
        size = self.size
        if size == 0:
            return 0, 0
        if size < checked_bytes:
            _LOG.warning(
                "%s: %d bytes are there, %d were on disk; all are checked again", self.file, size, checked_bytes
            )
            checked_bytes = 0
        good, size = checked_bytes, min(size, offer.stream_bytes)
        with self.file.open("rb") as there:
            for begin, chunk in chunks_between(offer, checked_bytes, size):
                if hash_of(there, begin, chunk.bytes).hexdigest() != chunk.sha256:
                    _LOG.warning("%s: the chunk at %d is not what was offered; cut off", self.file, begin)
                    size = begin
                    break
                good = begin + chunk.bytes
        self.cut(size)
        return self.size, min(good, self.size)

    def cut(self, size: int) -> None:
        """Leave ``size`` bytes, on disk when this returns; none when the file is in the store, whose bytes nobody cuts."""
        if self.size == 0:
            return
        descriptor = os.open(self.file, os.O_RDONLY if self.size == size else os.O_RDWR)
        try:
            if os.fstat(descriptor).st_size != size:
                if os.fstat(descriptor).st_nlink > 1:
                    self.file.unlink()
                    return
                os.ftruncate(descriptor, size)
            os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def chunks_between(offer: Offer, begin: int, end: int) -> Iterator[tuple[int, Chunk]]:
    """Chunks that lie between the two offsets as a whole, each with its own."""
    at = 0
    for chunk in offer.chunks:
        if at + chunk.bytes > end:
            return
        if at >= begin:
            yield at, chunk
        at += chunk.bytes


def hash_of(file: BinaryIO, begin: int, length: int) -> hashlib._Hash:
    """SHA-256 of a part of ``file``, to go on with; of what is there when it ends before."""
    digest = hashlib.sha256()
    file.seek(begin)
    while length and (piece := file.read(min(length, _READ_BYTES))):
        digest.update(piece)
        length -= len(piece)
    return digest


def found(stream: Stream, offers: PendingUploads, probe: str, sha256: str) -> tuple[Offer, int]:
    """The offer of a held stream, and where it ends: on disk and checked. NoOffer."""
    known = offers.offered(probe, sha256)
    if known is None:
        raise NoOffer(sha256)
    one, offer = known
    size, checked_bytes = stream.recovered(offer, one.checked_bytes)
    if checked_bytes < one.checked_bytes:
        offers.checked(probe, sha256, checked_bytes, 0)
    return offer, size


class Writer:
    """The one writer of a stream, until a later one takes over. Not for two threads at once."""

    def __init__(self, streams: Streams, offers: PendingUploads, probe: str, sha256: str, offset: int) -> None:
        """Take over at ``offset``; NoOffer, WrongOffset when the stream does not end there."""
        self._streams, self._offers, self._probe, self._sha256 = streams, offers, probe, sha256
        self._taken, self._file = 0, -1
        with streams.locked(probe, sha256) as stream:
            self._offer, self.offset = found(stream, offers, probe, sha256)
            if offset != self.offset:
                raise WrongOffset(self.offset)
            self._writer = stream.taken_over()
            self._at, self._begin = self._chunk_of(self.offset)
            if not self.complete:
                self._open(stream)

    def _chunk_of(self, offset: int) -> tuple[int, int]:
        """Number and beginning of the chunk that ``offset`` is in."""
        begin = 0
        for number, chunk in enumerate(self._offer.chunks):
            if offset < begin + chunk.bytes:
                return number, begin
            begin += chunk.bytes
        return len(self._offer.chunks), begin

    def _open(self, stream: Stream) -> None:
        self._file = os.open(stream.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        sync(stream.file.parent)
        with stream.file.open("rb") as there:
            self._digest = hash_of(there, self._begin, self.offset - self._begin)

    @property
    def complete(self) -> bool:
        """Whether all bytes are there, each chunk as offered."""
        return self.offset == self._offer.stream_bytes

    @property
    def due(self) -> bool:
        """Whether a checkpoint is."""
        return self._taken >= CHECKPOINT_BYTES

    def append(self, piece: bytes) -> None:
        """Take what came next. WrongOffset when another writer took over, BadBytes (the chunk is cut off), TooLong, NoRoom."""
        rest = memoryview(piece)
        with self._streams.locked(self._probe, self._sha256) as stream:
            self._mine(stream)
            while rest:
                if self.complete:
                    raise TooLong(f"more came than the {self._offer.stream_bytes} bytes of the stream")
                chunk = self._offer.chunks[self._at]
                part = rest[: self._begin + chunk.bytes - self.offset]
                self._write(part)
                rest = rest[len(part) :]
                if self.offset == self._begin + chunk.bytes:
                    self._ended(stream, chunk.sha256)

    def _mine(self, stream: Stream) -> None:
        if not stream.written_by(self._writer) or stream.size != self.offset:
            raise WrongOffset(stream.size)

    def _write(self, part: memoryview) -> None:
        done = 0
        try:
            while done < len(part):
                done += os.pwrite(self._file, part[done:], self.offset + done)
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise NoRoom(error.errno, error.strerror) from error
            raise
        finally:  # what is on the disk counts, also of a write that failed
            self._digest.update(part[:done])
            self.offset += done
            self._taken += done

    def _ended(self, stream: Stream, sha256: str) -> None:
        """The chunk's last byte came."""
        if self._digest.hexdigest() != sha256:
            number, self.offset = self._at, self._begin
            stream.cut(self._begin)
            self._digest = hashlib.sha256()
            raise BadBytes(self._begin, f"chunk {number} is not what was offered")
        self._at, self._begin, self._digest = self._at + 1, self.offset, hashlib.sha256()

    def checkpoint(self) -> int:
        """Sync what came, and write down how much is checked: from here on a probe may learn the offset. Its bytes of today."""
        taken, self._taken = self._taken, 0
        with self._streams.locked(self._probe, self._sha256) as stream:
            if not stream.written_by(self._writer) or stream.size != self.offset:
                return self._offers.count(self._probe, taken)
            if self._file >= 0:
                os.fdatasync(self._file)
            return self._offers.checked(self._probe, self._sha256, self._begin, taken)

    def close(self) -> None:
        """Let go of the file."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


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
                gone = self._offers.expire(one)
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
