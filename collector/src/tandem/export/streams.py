"""What goes up of a file, made once and kept on disk until the server has it: its stream (the file itself, or its chunks deflated) and the
offer with the hashes."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import BinaryIO

from tandem.export.gateway import Interrupted, Later
from tandem.export.trace_queue import DAMAGED, Wanted
from tandem.schema.trace import Chunk, Encoding, Offer, TraceError, chunk_bytes_of, encoded, is_name, read_offer

_LOOK_S, _LOOK_AGAIN_S = 0.2, 60.0


class UnreadableError(Exception):
    """The file cannot be read; ``gone``: it is not there."""

    def __init__(self, reason: str, *, gone: bool) -> None:
        super().__init__(reason)
        self.gone = gone


class DamagedError(Exception):
    """The file is not what its manifest says. ``offer``: of what it is, under a name of its own; None where that is no name."""

    def __init__(self, reason: str, offer: Offer | None) -> None:
        super().__init__(reason)
        self.offer = offer


class Streams:
    """``folder``: the probe's; ``store``: where streams and offers are kept. For one thread, which deflates half of the time at most, for
    the heat and the battery, and not while ``held`` says that something is measured. ``ended``: whether all ends now; then Interrupted.
    No process of its own is needed: zlib and hashlib leave the interpreter to other threads."""

    def __init__(
        self, folder: Path, store: Path, encoding: Encoding, held: Callable[[], bool], ended: Callable[[], bool]
    ) -> None:
        self._folder, self._store, self._encoding = folder, store, encoding
        self._held, self._ended = held, ended

    def of(self, wanted: Wanted) -> Offer:
        """The offer of a file as it is now; DamagedError when it is not what was promised, UnreadableError, OSError of the store."""
        try:
            file = (self._folder / wanted.name).open("rb")
        except OSError as error:
            raise UnreadableError(error.strerror or str(error), gone=isinstance(error, FileNotFoundError)) from error
        with file:
            state = os.fstat(file.fileno())
            mark = [state.st_size, state.st_mtime_ns, state.st_ino]
            offer = self._read(wanted, mark) or self._make(wanted, mark, file)
        if wanted.sha256 is None or (offer.bytes, offer.sha256) == (wanted.bytes, wanted.sha256):
            return offer
        name = DAMAGED + wanted.name
        found = f"{offer.bytes} bytes, sha256 {offer.sha256[:12]}…; promised {wanted.bytes} and {wanted.sha256[:12]}…"
        again = Offer(name, wanted.run, offer.bytes, offer.sha256, offer.encoding, offer.chunk_bytes, offer.chunks)
        raise DamagedError(found, again if is_name(name) else None)

    def part(self, wanted: Wanted, offer: Offer, offset: int, length: int) -> bytes:
        """``length`` bytes of the stream from ``offset`` on; Later when it is not as it was, and has to be made anew."""
        path = self._folder / wanted.name if offer.encoding == "identity" else self._stream(wanted)
        content = b""
        with contextlib.suppress(OSError), path.open("rb") as file:
            file.seek(offset)
            content = file.read(length)
        if len(content) < length:
            self.forget(wanted)
            raise Later("a file is not read as it was before", _LOOK_AGAIN_S)
        return content

    def forget(self, wanted: Wanted) -> None:
        """It is settled, or has to be made anew."""
        self._offer(wanted).unlink(missing_ok=True)
        self._stream(wanted).unlink(missing_ok=True)

    def keep_only(self, names: Collection[str]) -> None:
        """Remove what is left of files that no longer wait."""
        stems = {_stem(name) for name in names}
        for file in self._store.glob("*"):
            if file.name.partition(".")[0] not in stems:
                file.unlink(missing_ok=True)

    def _make(self, wanted: Wanted, mark: list[int], file: BinaryIO) -> Offer:
        try:
            offer = self._encode(wanted, mark[0], file, self._encoding)
        except OSError as error:
            if error.errno != errno.ENOSPC or self._encoding == "identity":
                raise
            self.forget(wanted)
            file.seek(0)
            offer = self._encode(wanted, mark[0], file, "identity")  # so that a full disk is emptied all the same
        content = json.dumps({"mark": mark, "asked": self._encoding, "offer": offer.as_json()})
        with contextlib.suppress(OSError):  # it only saves work
            _replace(self._offer(wanted), content.encode())
        return offer

    def _encode(self, wanted: Wanted, size: int, file: BinaryIO, encoding: Encoding) -> Offer:
        whole, total, chunks, chunk_bytes = hashlib.sha256(), 0, list[Chunk](), chunk_bytes_of(size)
        self._store.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            out = None if encoding == "identity" else stack.enter_context(self._stream(wanted).open("wb"))
            for part in self._unhurried(file, chunk_bytes):
                whole.update(part)
                total += len(part)
                stream = encoded(part, encoding)
                chunks.append(Chunk(len(stream), hashlib.sha256(stream).hexdigest()))
                if out is not None:
                    out.write(stream)
            if out is not None:
                out.flush()
                os.fsync(out.fileno())
        offer = Offer(wanted.name, wanted.run, total, whole.hexdigest(), encoding, chunk_bytes, tuple(chunks))
        try:
            return read_offer(offer.as_json())
        except TraceError as error:
            self.forget(wanted)
            raise UnreadableError(f"it cannot be offered: {error}", gone=False) from error

    def _unhurried(self, file: BinaryIO, size: int) -> Iterator[bytes]:
        since_s = time.thread_time()
        while True:
            try:
                part = file.read(size)
            except OSError as error:
                raise UnreadableError(error.strerror or str(error), gone=False) from error
            if not part:
                return
            yield part
            time.sleep(min(1.0, time.thread_time() - since_s))
            since_s = time.thread_time()
            while self._held() and not self._ended():
                time.sleep(_LOOK_S)
            if self._ended():
                raise Interrupted

    def _stream(self, wanted: Wanted) -> Path:
        return self._store / f"{_stem(wanted.name)}.stream"

    def _offer(self, wanted: Wanted) -> Path:
        return self._store / f"{_stem(wanted.name)}.json"

    def _read(self, wanted: Wanted, mark: list[int]) -> Offer | None:
        try:
            kept = json.loads(self._offer(wanted).read_bytes())
            offer = read_offer(kept["offer"])
            whole = offer.encoding == "identity" or self._stream(wanted).stat().st_size == offer.stream_bytes
        except (OSError, ValueError, KeyError, TypeError, RecursionError, TraceError):
            return None  # it is made again
        same = kept.get("mark") == mark and offer.name == wanted.name and offer.run == wanted.run
        return offer if same and whole and kept.get("asked") == self._encoding else None


def _stem(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _replace(path: Path, content: bytes) -> None:
    """Whole or not at all; not synced, since it can be made again."""
    temporary = path.with_suffix(".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)
