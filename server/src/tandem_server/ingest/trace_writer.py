"""One request that sends bytes of a trace: onto disk as they come, each chunk checked at its last byte, a bad one cut off again."""

from __future__ import annotations

import errno
import hashlib
import os

from tandem.schema.trace import Offer
from tandem_server.door import NoRoom
from tandem_server.ingest.trace_stream import Stream, Streams, hash_of
from tandem_server.registry.trace_offers import TraceOffers
from tandem_server.store.trace_folder import sync

CHECKPOINT_BYTES = 8 * 1024 * 1024
"""After so many bytes at the latest they are synced, and the registry told of them."""


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


def found(stream: Stream, offers: TraceOffers, probe: str, sha256: str) -> tuple[Offer, int]:
    """The offer of a held stream, and where it ends: on disk, checked, and no further told than it is. NoOffer."""
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

    def __init__(self, streams: Streams, offers: TraceOffers, probe: str, sha256: str, offset: int) -> None:
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
        """Sync what came, and write down how much is checked: from here on the offset is safe to be told. The probe's bytes of today."""
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
