"""One request about a trace: within what its path may carry, broken off at once when something is to be measured, its answer read
(docs/reference/probe-api.md, "Traces")."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from tandem.export.gateway import UNKNOWN_WAIT_S, Answer, Interrupted, Later, Outgoing, not_now
from tandem.export.paths import AnyPath
from tandem.export.streams import Streams
from tandem.export.trace_queue import Wanted
from tandem.schema.trace import Offer, Receipt, TraceError, read_receipt

LEAST_LEFT_BYTES = 256 * 1024
"""A path that may carry less carries nothing: a budget is never met to the byte."""
_ASKING_BYTES = 16 * 1024
"""TLS's handshake, headers and an answer."""
_MOST_OVERHEAD = 1.3
"""Headers, and what goes twice on a link of ordinary losses."""
_UNSEEN_BYTES = 96 * 1024
"""What may go out between two looks at the counters, at most: what the kernel holds unsent."""
_LOOK_AGAIN_S = 60.0
PART_BYTES = 1 << 20
"""In one request at most: more gains little, and what a server holds when a connection breaks is sent in vain."""
_CAREFUL_BYTES = 256 * 1024
_CAREFUL_AFTER_FAULT_BYTES, _CAREFUL_AFTER_BREAK_BYTES = 64 * _CAREFUL_BYTES, 16 * _CAREFUL_BYTES
"""For so long no request is larger, after bytes that were corrupted or a connection that broke: what happened once happens again."""


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


@dataclass(frozen=True, slots=True)
class Receiving:
    """Send from byte ``offset`` of the stream on. ``fault``: what was not as offered, None when nothing was."""

    offset: int
    fault: str | None = None


class UnknownError(Exception):
    """The server has no such offer: make it again."""


class RefusedError(Exception):
    """The server will not take this file, whenever it is sent; one line."""


def read_state(answer: Answer, offer: Offer, probe: str) -> Receiving | Receipt:
    """What an answer to an offer, to a part of the stream or to a question means. UnknownError, RefusedError, or Later when it settles
    nothing. A receipt that comes back is one for this file of this probe: its name, bytes and hash are the offer's."""
    content = answer.content if isinstance(answer.content, dict) else {}
    if answer.status in (200, 409, 422) and content.get("state") == "receiving":
        return Receiving(_offset(content.get("offset"), offer), None if answer.status == 200 else answer.error)
    if answer.status == 200 and content.get("state") == "received":
        return _receipt(content.get("receipt"), offer, probe)
    if answer.status == 404:
        raise UnknownError
    if answer.status in (400, 409, 413):
        raise RefusedError(answer.error)
    if answer.status == 200:
        raise Later("an answer that does not say how far a trace is", UNKNOWN_WAIT_S)
    raise not_now(answer)


def _offset(offset: object, offer: Offer) -> int:
    if type(offset) is not int or not 0 <= offset <= offer.stream_bytes:
        raise Later(f"an offset that {offer.name} has not", UNKNOWN_WAIT_S)
    return offset


def _receipt(content: object, offer: Offer, probe: str) -> Receipt:
    try:
        receipt = read_receipt(content)
    except TraceError as error:
        raise Later(f"a receipt that cannot be read: {error}", UNKNOWN_WAIT_S) from error
    if (receipt.probe, receipt.name, receipt.bytes, receipt.sha256) != (probe, offer.name, offer.bytes, offer.sha256):
        raise Later(f"a receipt that is not for {offer.name}", UNKNOWN_WAIT_S)
    return receipt


class TraceRequests:
    """``probe``: its name; ``ended``: whether all ends now. Every request raises Later, Interrupted, and what
    ``read_state`` raises. For one thread."""

    def __init__(
        self, gateway: AnyPath, policy: Policy, streams: Streams, probe: str, ended: Callable[[], bool]
    ) -> None:
        self._gateway, self._policy, self._streams = gateway, policy, streams
        self._probe, self._ended = probe, ended
        self._careful_bytes = _CAREFUL_BYTES

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

    def part(self, way: Way, wanted: Wanted, offer: Offer, offset: int) -> Receiving | Receipt:
        """The stream from ``offset`` on, as much of it as goes into one request and the path may carry."""
        most = PART_BYTES if self._careful_bytes == 0 else _CAREFUL_BYTES
        length, left = min(most, offer.stream_bytes - offset), way.left_bytes
        if left is not None:
            length = min(length, int((left - _ASKING_BYTES) / _MOST_OVERHEAD))
            if length <= 0:
                raise TooLittleError
        content = self._streams.part(wanted, offer, offset, length)
        before = self._gateway.count(way.path).carried_bytes

        def stopped() -> bool:
            carried = self._gateway.count(way.path).carried_bytes - before
            if left is not None and carried > max(left - _UNSEEN_BYTES, left // 2):
                return True
            return self._ended() or self._policy.held() or way.path not in self._policy.permit().paths

        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}

        def send() -> Receiving | Receipt:
            body = Outgoing(content, stopped)
            answer = self._gateway.ask_over(way.path, "PATCH", f"/v1/traces/{offer.sha256}", body, headers)
            return read_state(answer, offer, self._probe)

        try:
            answer = self._counted(way, len(content), send)
        except TooLittleError:
            raise
        except Later:
            self._careful_bytes = max(self._careful_bytes, _CAREFUL_AFTER_BREAK_BYTES)
            raise
        if isinstance(answer, Receiving) and answer.fault is not None:
            self._careful_bytes = _CAREFUL_AFTER_FAULT_BYTES
        else:
            self._careful_bytes = max(0, self._careful_bytes - length)
        return answer

    def _ask(
        self, way: Way, offer: Offer, method: str, url: str, body: bytes, headers: dict[str, str]
    ) -> Receiving | Receipt:
        def ask() -> Receiving | Receipt:
            return read_state(self._gateway.ask_over(way.path, method, url, body, headers), offer, self._probe)

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


class TooLittleError(Later):
    """A path may carry less than the next request takes."""

    def __init__(self) -> None:
        super().__init__("what uploads may cost the SIM today is less than the next part takes", _LOOK_AGAIN_S)
