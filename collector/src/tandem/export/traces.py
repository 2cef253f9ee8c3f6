"""Brings captures and other files of runs to the server, when it may (docs/reference/probe-api.md, "Traces")."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from tandem.export.gateway import Interrupted, Later
from tandem.export.paths import AnyPath
from tandem.export.streams import DamagedError, Streams, UnreadableError
from tandem.export.trace_queue import FOLDER, TraceQueue, Wanted
from tandem.export.trace_requests import Policy, Receiving, RefusedError, TraceRequests, UnknownError
from tandem.schema.trace import Encoding, Offer, Receipt

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
        self._requests = TraceRequests(gateway, policy, self._streams, probe, lambda: self._stopping)
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._started = False
        self._due_s = float("inf")
        self._faults = 0
        self._faulty: tuple[str, int] | None = None
        self._offered: set[tuple[str, str]] = set()
        self._told: set[tuple[str, str]] = set()
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
        """Something changed: look now."""
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
        wanted, permit = self._queue.next(), self._policy.permit()
        if wanted is None or not permit.paths:
            self._due_s = time.monotonic() + min(_LONGEST_WAIT_S if wanted is None else permit.again_s, _LONGEST_WAIT_S)
            return None
        return wanted

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
        if (kind, wanted.name) not in self._told:
            self._told.add((kind, wanted.name))
            log.warning("%s: %s", wanted.name, what)
            self._tell(kind, f"{wanted.name}: {what}", None)

    def _upload(self, wanted: Wanted, offer: Offer) -> None:
        """Bring it up, whole. Interrupted when it must not go on, Later."""
        began_s, mark = time.monotonic(), (offer.name, offer.sha256)
        state: Receiving | Receipt | None = None
        try:
            while not isinstance(state, Receipt):
                way = self._requests.way()
                offset = 0 if state is None else state.offset
                self.now = {"name": offer.name, "bytes": offer.stream_bytes, "offset": offset, "path": way.path}
                try:
                    if state is not None:
                        state = self._requests.part(way, wanted, offer, offset)
                        self._look_at(wanted, state)
                    elif mark in self._offered:
                        state = self._requests.state(way, offer)
                    else:
                        state = self._requests.offer(way, offer)
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
