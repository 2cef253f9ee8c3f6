"""Offers that were made once, kept on disk: hashing a capture is work that nobody should do twice."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tandem.export.encoding import Encoder, UnreadableError
from tandem.export.wanted import DAMAGED, Wanted
from tandem.schema.trace import Encoding, Offer, TraceError, is_name, read_offer


class DamagedError(Exception):
    """The file is not what its manifest says. ``offer``: of what it is, under a name of its own; None where that is no name."""

    def __init__(self, reason: str, offer: Offer | None) -> None:
        super().__init__(reason)
        self.offer = offer


class Offers:
    """``folder``: the probe's; ``store``: where offers are kept. For one thread."""

    def __init__(self, folder: Path, store: Path, encoder: Encoder, encoding: Encoding) -> None:
        self._folder, self._store, self._encoder, self._encoding = folder, store, encoder, encoding

    def of(self, wanted: Wanted) -> Offer:
        """The offer of a file as it is now; DamagedError when it is not what was promised, UnreadableError."""
        file = self._folder / wanted.name
        try:
            state = file.stat()
        except OSError as error:
            raise UnreadableError(error.strerror or str(error), gone=isinstance(error, FileNotFoundError)) from error
        mark = [state.st_size, state.st_mtime_ns, state.st_ino]
        offer = self._read(wanted, mark)
        if offer is None:
            offer = self._encoder.offer(file, wanted.name, wanted.run, self._encoding)
            self._write(wanted, mark, offer)
        if wanted.sha256 is None or (offer.bytes, offer.sha256) == (wanted.bytes, wanted.sha256):
            return offer
        name = DAMAGED + wanted.name
        found = f"{offer.bytes} bytes, sha256 {offer.sha256[:12]}…; promised {wanted.bytes} and {wanted.sha256[:12]}…"
        again = Offer(name, wanted.run, offer.bytes, offer.sha256, offer.encoding, offer.chunk_bytes, offer.chunks)
        raise DamagedError(found, again if is_name(name) else None)

    def forget(self, wanted: Wanted) -> None:
        """It is settled, or has to be made anew."""
        self._file(wanted).unlink(missing_ok=True)

    def _file(self, wanted: Wanted) -> Path:
        return self._store / f"{hashlib.sha256(wanted.name.encode()).hexdigest()}.json"

    def _read(self, wanted: Wanted, mark: list[int]) -> Offer | None:
        try:
            told = json.loads(self._file(wanted).read_bytes())
            offer = read_offer(told["offer"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError, TraceError):
            return None  # it is made again
        same = told.get("mark") == mark and offer.name == wanted.name and offer.run == wanted.run
        return offer if same and offer.encoding == self._encoding else None

    def _write(self, wanted: Wanted, mark: list[int], offer: Offer) -> None:
        """Whole or not at all; not synced, since it can be made again."""
        self._store.mkdir(parents=True, exist_ok=True)
        temporary = self._file(wanted).with_suffix(".tmp")
        temporary.write_text(json.dumps({"mark": mark, "offer": offer.as_json()}))
        temporary.replace(self._file(wanted))
