"""One request about a trace: within what its path may carry, and broken off at once when something is to be measured."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from tandem.export.encoding import Encoder
from tandem.export.outgoing import Interrupted, Outgoing
from tandem.export.sending import Later
from tandem.export.trace_answers import Receiving, read_state
from tandem.export.trace_paths import TracePaths
from tandem.schema.trace import Offer, Receipt

LEAST_LEFT_BYTES = 256 * 1024
"""A path that may carry less carries nothing: a budget is never met to the byte."""
_ASKING_BYTES = 16 * 1024
"""TLS's handshake, headers and an answer."""
_MOST_OVERHEAD = 1.3
"""Headers, and what goes twice on a link of ordinary losses."""
_UNSEEN_BYTES = 96 * 1024
"""What may go out between two looks at the counters, at most: what the kernel holds unsent."""
_LOOK_AGAIN_S = 60.0


@dataclass(frozen=True, slots=True)
class Permit:
    """Over which ``paths`` traces may go now, in the order of preference; none: why not, for people, and when to ask again. ``left_bytes``:
    what a path may still carry for them, headers included; those that are not in it, as much as there is."""

    paths: tuple[str, ...]
    reason: str
    again_s: float
    left_bytes: dict[str, int]


class Policy(Protocol):
    """Who says when traces may go. Called by the uploader's thread, five times a second while it sends; must not block."""

    def permit(self) -> Permit:
        """As things are now; what is reserved counts as not used."""
        ...

    def held(self) -> bool:
        """Whether something is being measured, or about to be."""
        ...

    def reserve(self, path: str, count: int) -> None:
        """So many bytes are about to go over ``path``. OSError when that cannot be noted."""
        ...

    def settle(self, path: str, used: int) -> None:
        """So many went of what was reserved."""
        ...


@dataclass(frozen=True, slots=True)
class Way:
    """The path of a request; ``left_bytes``: what it may carry, None: as much as there is."""

    path: str
    left_bytes: int | None


class TraceRequests:
    """``folder``: the probe's; ``probe``: its name; ``ended``: whether all ends now. Every request raises Later, Interrupted, and what
    ``read_state`` raises. For one thread."""

    def __init__(
        self, gateway: TracePaths, policy: Policy, encoder: Encoder, folder: Path, probe: str, ended: Callable[[], bool]
    ) -> None:
        self._gateway, self._policy, self._encoder, self._folder = gateway, policy, encoder, folder
        self._probe, self._ended = probe, ended

    def way(self) -> Way:
        """The path to take now. Interrupted when there is none."""
        permit = self._policy.permit()
        if self._ended() or not permit.paths:
            raise Interrupted
        free = [path for path in permit.paths if path not in permit.left_bytes]
        path = self._gateway.choose(free or permit.paths)
        return Way(path, permit.left_bytes.get(path))

    def offer(self, way: Way, offer: Offer) -> Receiving | Receipt:
        """Tell the server what is to come."""
        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
        body = gzip.compress(json.dumps(offer.as_json(), separators=(",", ":")).encode(), 6, mtime=0)
        return self._ask(way, offer, "POST", "/v1/traces", body, headers)

    def state(self, way: Way, offer: Offer) -> Receiving | Receipt:
        """Ask how far it is."""
        return self._ask(way, offer, "GET", f"/v1/traces/{offer.sha256}", b"", {})

    def part(self, way: Way, offer: Offer, file: Path, offset: int, chunks: int) -> Receiving | Receipt:
        """The stream of ``file`` from ``offset`` on to the end of at most ``chunks`` chunks, at most as much as the path may carry."""
        first, begin = _chunk_at(offer, offset)
        end = begin + sum(chunk.bytes for chunk in offer.chunks[first : first + chunks])
        length, left = end - offset, way.left_bytes
        if left is not None:
            length = max(0, min(length, int((left - _ASKING_BYTES) / _MOST_OVERHEAD)))
            if length == 0 and end > offset:
                raise TooLittleError
        before = self._gateway.count(way.path).carried_bytes

        def stopped() -> bool:
            carried = self._gateway.count(way.path).carried_bytes - before
            if left is not None and carried > max(left - _UNSEEN_BYTES, left // 2):
                return True
            return self._ended() or self._policy.held() or way.path not in self._policy.permit().paths

        pieces = self._pieces(file, offer, first, offset - begin, length)
        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}

        def send() -> Receiving | Receipt:
            body = Outgoing(length, pieces, stopped)
            answer = self._gateway.ask(way.path, "PATCH", f"/v1/traces/{offer.sha256}", body, headers)
            return read_state(answer, offer, self._probe)

        return self._counted(way, length, send)

    def _pieces(self, file: Path, offer: Offer, number: int, skip: int, length: int) -> Iterator[bytes]:
        """``length`` bytes of the stream; each chunk is compared with what was offered before any of it goes."""
        while length > 0:
            part = self._encoder.chunk(file, offer, number)
            if hashlib.sha256(part).hexdigest() != offer.chunks[number].sha256:
                raise ChangedError
            piece = part[skip : skip + length]
            yield piece
            length -= len(piece)
            number, skip = number + 1, 0

    def _ask(
        self, way: Way, offer: Offer, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Receiving | Receipt:
        def ask() -> Receiving | Receipt:
            return read_state(self._gateway.ask(way.path, method, url, body, headers), offer, self._probe)

        return self._counted(way, len(body), ask)

    def _counted(self, way: Way, length: int, act: Callable[[], Receiving | Receipt]) -> Receiving | Receipt:
        """Do it. Over a path with a budget its bytes are noted beforehand, so that no crash makes them forgotten."""
        if way.left_bytes is None:
            return act()
        reserved = int(length * _MOST_OVERHEAD) + _ASKING_BYTES
        if reserved > way.left_bytes + _MOST_OVERHEAD:
            raise TooLittleError
        before = self._gateway.count(way.path).carried_bytes
        self._policy.reserve(way.path, reserved)
        try:
            return act()
        finally:
            self._policy.settle(way.path, self._gateway.count(way.path).carried_bytes - before)


class ChangedError(Later):
    """A chunk is not what it was when it was offered: the file changed, or what deflates was brought up to date."""

    def __init__(self) -> None:
        super().__init__("a file is not read as it was before", _LOOK_AGAIN_S)


class TooLittleError(Later):
    """A path may carry less than the next request takes."""

    def __init__(self) -> None:
        super().__init__("what uploads may cost the SIM today is less than the next part takes", _LOOK_AGAIN_S)


def _chunk_at(offer: Offer, offset: int) -> tuple[int, int]:
    """The chunk in which byte ``offset`` of the stream lies, and where it begins."""
    begin = 0
    for number, chunk in enumerate(offer.chunks):
        if offset < begin + chunk.bytes:
            return number, begin
        begin += chunk.bytes
    return len(offer.chunks), begin
