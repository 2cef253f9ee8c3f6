"""Brings captures and other files of runs to the server, when it may (docs/reference/probe-api.md, "Traces")."""

from __future__ import annotations

import gzip
import json
import logging
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from tandem.export.gateway import UNKNOWN_WAIT_S, Answer, AnyPath, Interrupted, Later, Outgoing, not_now
from tandem.export.streams import DamagedError, Streams, UnreadableError
from tandem.export.trace_queue import FOLDER, TraceQueue, Wanted
from tandem.schema.trace import Encoding, Offer, Receipt, TraceError, read_receipt

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
    """Who says when traces may go. Called by the uploader's thread, five times a second while it sends, and by who calls its ``tick``;
    must not block."""

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


class TooLittleError(Later):
    """A path may carry less than the next request takes."""

    def __init__(self) -> None:
        super().__init__("what uploads may cost the SIM today is less than the next part takes", _LOOK_AGAIN_S)


log = logging.getLogger(__name__)

_FAULTS, _FAULTY_WAIT_S = 5, 600.0
_END_S = 10.0
"""It may be asking a resolver; what it has is on the disk."""
_LONGEST_WAIT_S, _DISK_WAIT_S, _OTHER_WAIT_S = 30.0, 60.0, 60.0

Tell = Callable[[str, str, str | None], None]
"""Kind of the event, its detail, the path."""


class TraceUploader:
    """``policy`` says when and where; ``tell`` takes events; ``probe``: its name, which receipts must bear. It has a thread only while
    something waits that may go."""

    def __init__(
        self, queue: TraceQueue, gateway: AnyPath, policy: Policy, tell: Tell, probe: str, encoding: Encoding
    ) -> None:
        self._queue, self._gateway, self._policy, self._tell = queue, gateway, policy, tell
        self._stopping = False
        store = queue.folder / FOLDER / "offers"
        self._streams = Streams(queue.folder, store, encoding, policy.held, lambda: self._stopping)
        self._probe = probe
        self._careful_bytes = _CAREFUL_BYTES
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started = False
        self._due_s = float("inf")
        self._faults = 0
        self._faulty: tuple[str, int] | None = None
        self._offered: set[tuple[str, str]] = set()
        self._reported: set[tuple[str, str]] = set()
        self.on_received: Callable[[], None] = lambda: None
        """Called after each receipt that is on disk, and at the start."""
        self.trouble: str | None = None
        """Why it does not go on though it may."""
        self.now: dict[str, Any] | None = None
        """What goes up just now: ``name``, ``bytes`` of the stream, ``offset``, ``path``."""

    def start(self) -> None:
        """Begin: read what lies there, and bring what may go."""
        self._started = True
        self._go_on(self._scan)

    def wake(self) -> None:
        self._wake.set()
        self._go_on()

    def tick(self) -> None:
        """Once a second: go on when it is time and something may go."""
        if time.monotonic() >= self._due_s and self._next() is not None:
            self._go_on()

    def stop(self) -> None:
        """End at once; what was begun is gone on with at the next start."""
        self._stopping = True
        self._gateway.abort()
        self._wake.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join(_END_S)

    def _go_on(self, first: Callable[[], None] = lambda: None) -> None:
        with self._lock:
            idle = self._thread is None or not self._thread.is_alive()
            if self._started and idle and not self._stopping:
                self._due_s = float("inf")
                self._thread = threading.Thread(target=self._run, args=(first,), name="traces", daemon=True)
                self._thread.start()

    def _next(self) -> Wanted | None:
        """What is to go, if it may now; else it is looked again in a while."""
        wanted = self._queue.next()
        permit = None if wanted is None else self._policy.permit()
        if permit is not None and permit.paths:
            return wanted
        again_s = _LONGEST_WAIT_S if permit is None else min(permit.again_s, _LONGEST_WAIT_S)
        self._due_s = time.monotonic() + again_s
        return None

    # --- the thread ------------------------------------------------------------------------------------------------------

    def _scan(self) -> None:
        try:
            self._queue.scan()
            self._streams.keep_only(self._queue.waiting())
            self.on_received()
        except OSError as error:
            log.error("traces: %s: %s", error.filename, error.strerror)

    def _run(self, first: Callable[[], None]) -> None:
        first()
        while True:
            self._wake.clear()
            wait_s = None if self._stopping else self._turn()
            self.now = None
            if wait_s is not None:
                self._wake.wait(wait_s)
                continue
            self._gateway.close()  # the server closes what is idle long before it is used again
            with self._lock:
                if self._stopping or not self._wake.is_set():  # else somebody woke it meanwhile
                    self._thread = None
                    return

    def _turn(self) -> float | None:
        """One file, as far as it goes; how long to wait until the next turn, None: nothing may go."""
        wanted = self._next()
        if wanted is None:
            self.trouble = None
            return None
        try:
            self._bring(wanted)
            self.trouble = None
        except Interrupted:
            self._gateway.close()
        except Later as later:
            self._say(later.reason)
            return max(later.wait_s, 0.05)
        except OSError as error:
            self._say(f"{error.filename or 'the disk'}: {error.strerror or error}; hint: free disk space")
            return _DISK_WAIT_S
        except Exception:
            # Measuring does not depend on it: say what happened and go on.
            log.exception("traces failed; trying again")
            self.trouble = "failed, see the log"
            return _OTHER_WAIT_S
        return 0.0

    def _say(self, trouble: str) -> None:
        if self.trouble is None and not self._stopping:
            log.warning("traces wait: %s", trouble)
        self.trouble = trouble

    def _bring(self, wanted: Wanted) -> None:
        try:
            self._upload(wanted, self._streams.of(wanted))
        except DamagedError as damaged:
            self._tell_once("trace_damaged", wanted, str(damaged))
            if damaged.offer is None:
                self._queue.put_aside(wanted, "damaged", str(damaged))
            else:
                self._upload(wanted, damaged.offer)
        except UnreadableError as error:
            self._tell_once("trace_missing" if error.gone else "trace_refused", wanted, str(error))
            self._queue.put_aside(wanted, "missing" if error.gone else "refused", str(error))

    def _tell_once(self, kind: str, wanted: Wanted, what: str) -> None:
        if (kind, wanted.name) not in self._reported:
            self._reported.add((kind, wanted.name))
            log.warning("%s: %s", wanted.name, what)
            self._tell(kind, f"{wanted.name}: {what}", None)

    def _upload(self, wanted: Wanted, offer: Offer) -> None:
        """Bring it up, whole. Interrupted when it must not go on, Later."""
        began_s, mark = time.monotonic(), (offer.name, offer.sha256)
        state: Receiving | Receipt | None = None
        try:
            while not isinstance(state, Receipt):
                way = self._way()
                offset = 0 if state is None else state.offset
                self.now = {"name": offer.name, "bytes": offer.stream_bytes, "offset": offset, "path": way.path}
                try:
                    if state is not None:
                        state = self._part(way, wanted, offer, offset)
                        self._look_at(wanted, state)
                    elif mark in self._offered:
                        state = self._ask(way, offer, "GET", b"", 0, {})
                    else:
                        body = gzip.compress(json.dumps(offer.as_json(), separators=(",", ":")).encode(), 6, mtime=0)
                        headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
                        state = self._ask(way, offer, "POST", body, len(body), headers)
                    self._offered.add(mark)
                except UnknownError:
                    if mark not in self._offered:
                        raise Later("the gateway takes no traces: it is of another version", _OTHER_WAIT_S) from None
                    self._offered.discard(mark)
                    state = None
                except Later as later:
                    if later.wait_s > 0:
                        raise
                    state = None  # how much arrived is not known: ask, over whichever path is next
        except RefusedError as refused:
            self._tell_once("trace_refused", wanted, str(refused))
            self._queue.put_aside(wanted, "refused", str(refused))
            self._streams.forget(wanted)
            return
        self._queue.received(wanted, state)
        self._streams.forget(wanted)
        self._offered.discard(mark)
        took = f"{offer.bytes} bytes as {offer.stream_bytes} in {time.monotonic() - began_s:.0f} s"
        self._tell("trace_received", f"{offer.name}, {took}", way.path)
        self.on_received()

    # --- requests: each raises Later, Interrupted, and what ``read_state`` raises ------------------------------------------

    def _way(self) -> Way:
        """The path to take now. Interrupted when there is none."""
        permit = self._policy.permit()
        if self._stopping or not permit.paths:
            raise Interrupted
        free = [path for path in permit.paths if path not in permit.left_bytes]
        path = self._gateway.choose(free or permit.paths)
        return Way(path, permit.left_bytes.get(path))

    def _part(self, way: Way, wanted: Wanted, offer: Offer, offset: int) -> Receiving | Receipt:
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
            return self._stopping or self._policy.held() or way.path not in self._policy.permit().paths

        headers = {"Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}
        try:
            answer = self._ask(way, offer, "PATCH", Outgoing(content, stopped), len(content), headers)
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
        self, way: Way, offer: Offer, method: str, content: bytes | Outgoing, length: int, headers: dict[str, str]
    ) -> Receiving | Receipt:
        """Over a path with a budget its bytes are noted beforehand, so that no crash makes them forgotten. ``length``: of the content."""
        url = "/v1/traces" if method == "POST" else f"/v1/traces/{offer.sha256}"
        with ExitStack() as counted:
            if way.left_bytes is not None:
                reserved = int(length * _MOST_OVERHEAD) + _ASKING_BYTES
                if reserved > way.left_bytes + _MOST_OVERHEAD:
                    raise TooLittleError
                before = self._gateway.count(way.path).carried_bytes
                self._policy.reserve(way.path, reserved)
                counted.callback(
                    lambda: self._policy.settle(way.path, self._gateway.count(way.path).carried_bytes - before)
                )
            answer = self._gateway.ask_over(way.path, method, url, content, headers)
            return read_state(answer, offer, self._probe)

    def _look_at(self, wanted: Wanted, state: Receiving | Receipt) -> None:
        """A chunk may have come as another one. Now and then that happens on the way; always, the file or its stream changed here."""
        if isinstance(state, Receipt) or state.fault is None:
            self.trouble = None
            return
        # A chunk may take several requests: those that bring its beginning say nothing of it.
        place = (wanted.name, state.offset)
        self._faults = self._faults + 1 if place == self._faulty else 1
        self._faulty = place
        log.info("a chunk is sent once more: %s", state.fault)
        if self._faults >= _FAULTS:
            self._faults = 0
            self._streams.forget(wanted)  # and looked at anew
            raise Later(f"{state.fault}, {_FAULTS} times one after the other", _FAULTY_WAIT_S)
