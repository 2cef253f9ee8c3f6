"""Open sessions: who may download how much until when, and what was sent. In memory; the registry keeps the account."""

from __future__ import annotations

import hmac
import logging
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tandem_server.endpoint.capture import Capture, peers_of
from tandem_server.endpoint.flows import PathPeer
from tandem_server.endpoint.http1 import BadRequest, Claim, Transfer
from tandem_server.endpoint.sockets import Options
from tandem_server.http.rates import RateShare
from tandem_server.registry import Registry

_NUMBERS = 1024
"""So far may a connection's number lie behind the highest of its session."""

_LOG = logging.getLogger("tandem.endpoint.sessions")


class Refused(RuntimeError):  # noqa: N818  (an answer, no accident)
    """Not now, or not that much: the probe gets the reason with status 429."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one endpoint. Bytes are payload."""

    session_bytes: int = 2_000_000_000
    sessions_per_probe: int = 8
    probe_bytes_per_day: int = 200_000_000_000
    session_s: float = 3600.0
    session_idle_s: float = 120.0
    stall_s: float = 30.0
    connections_per_session: int = 4
    page_connections_per_session: int = 48
    head_s: float = 10.0


@dataclass(frozen=True, slots=True)
class Share(RateShare):
    """What one probe may have where it differs from ``Limits``; None: as ``Limits`` has it. Bytes are payload, both ways; those
    ``_per_minute`` are what is sent to gateway or control channel."""

    bytes_per_day: int | None = None
    sessions_at_once: int | None = None


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """A request for a session, checked. At most one of ``payload_bytes`` and ``seconds`` is set; ``budget_bytes`` never with
    ``payload_bytes``."""

    run: str
    kind: str
    path: str | None
    paths: Mapping[str, PathPeer]
    payload_bytes: int | None = None
    seconds: float | None = None
    budget_bytes: int | None = None
    options: Options = Options()  # noqa: RUF009  (frozen)
    capture: bool = False
    tls: bool = False


@dataclass(slots=True)
class Day:
    """What a probe has left of its 24 hours, for the sessions that it has open at once together."""

    left_bytes: int
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, wanted_bytes: int) -> int:
        """As much as there is of it."""
        with self._lock:
            taken = max(0, min(wanted_bytes, self.left_bytes))
            self.left_bytes -= taken
            return taken

    def give_back(self, unused_bytes: int) -> None:
        """Return what was not carried; below zero: bytes that came without being taken."""
        with self._lock:
            self.left_bytes += unused_bytes


@dataclass(slots=True)
class Session:
    """One session. Its budget is shared by all its connections; use ``take`` and ``give_back`` only. ``key``: what its probe signs with.
    ``ended_why``: None while it takes connections. ``unwritten``: its end could not be written down."""

    id: str
    probe: str
    run: str
    kind: str
    path: str | None
    paths: Mapping[str, PathPeer]
    budget_bytes: int
    deadline_s: float
    idle_s: float
    connections_limit: int
    page_connections_limit: int
    day: Day
    options: Options = Options()  # noqa: RUF009  (frozen)
    used_bytes: int = 0
    live: int = 0
    idle_since_s: float = field(default_factory=time.monotonic)
    ended: threading.Event = field(default_factory=threading.Event)
    summaries: list[dict[str, Any]] = field(default_factory=list)
    tls: bool = False
    capture: Capture | None = None
    captured: dict[str, Any] | None = None
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    on_cut: set[Callable[[], None]] = field(default_factory=set)
    ended_why: str | None = None
    unwritten: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _numbers: set[int] = field(default_factory=set)
    _highest: int = 0

    def owns(self, claim: Claim) -> bool:
        """Whether who has the key made ``claim``, and it is shown for the first time."""
        mac = hmac.digest(self.key, claim.signed, "sha256")[:16].hex()
        if not hmac.compare_digest(mac, claim.mac):
            return False
        with self._changed:
            if claim.number in self._numbers or claim.number <= self._highest - _NUMBERS:
                return False
            self._highest = max(self._highest, claim.number)
            self._numbers.add(claim.number)
            if len(self._numbers) > 2 * _NUMBERS:
                self._numbers = {number for number in self._numbers if number > self._highest - _NUMBERS}
            return True

    def cut(self) -> None:
        """End its connections now: they see it by ``over``, or are called (``on_cut``)."""
        self.ended.set()
        for call in tuple(self.on_cut):
            call()

    def over(self) -> bool:
        """Whether its connections must end now."""
        return self.ended.is_set() or time.monotonic() > self.deadline_s

    def enter(self, *, many: bool = False) -> None:
        """One connection more (``many``: a browser's); Refused when there are too many."""
        with self._changed:
            if self.live >= (self.page_connections_limit if many else self.connections_limit):
                raise Refused(f"the session has {self.live} connections already")
            self.live += 1

    def leave(self, summary: dict[str, Any] | None) -> None:
        """One connection fewer, with what became of it."""
        with self._changed:
            self.live -= 1
            self.idle_since_s = time.monotonic()
            if summary is not None:
                self.summaries.append(summary)
            self._changed.notify_all()

    def take(self, wanted_bytes: int) -> int:
        """Reserve up to ``wanted_bytes`` of the budget; how many were left to have, 0 when none."""
        with self._changed:
            taken = self.day.take(max(0, min(wanted_bytes, self.budget_bytes - self.used_bytes)))
            self.used_bytes += taken
            return taken

    def give_back(self, unused_bytes: int) -> None:
        """Return what was reserved and not sent."""
        with self._changed:
            self.used_bytes -= unused_bytes
            self.day.give_back(unused_bytes)

    def end_capture(self) -> None:
        """End its capture, if one runs, and keep what came of it."""
        capture, self.capture = self.capture, None
        if capture is not None:
            self.captured = capture.finish(peers_of(self.summaries))

    def charge(self, carried_bytes: int) -> None:
        """Count bytes that came otherwise (a result): against the probe's day, whatever is left of the session's budget."""
        with self._changed:
            self.used_bytes += carried_bytes
            self.day.give_back(-carried_bytes)

    def await_quiet(self, timeout_s: float) -> bool:
        """Wait until no connection is left; whether that came true in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self.live == 0, timeout_s)

    def open(self) -> bool:
        """Whether it takes connections."""
        return self.ended_why is None and not self.lapsed(time.monotonic())

    def lapsed(self, now_s: float) -> bool:
        """Past its deadline, or unused for too long. ``now_s``: time.monotonic()."""
        return now_s > self.deadline_s or (self.live == 0 and now_s - self.idle_since_s > self.idle_s)


class SessionTable:
    """All sessions of this endpoint whose end is not written down; safe to use from any thread.

    What admits connections looks into memory alone and waits for no disk: that would be measured. So ``_lock`` is held for moments, and
    ``_accounts`` while a row is read or written, so that each byte is either in the registry's sums or in a session's here."""

    def __init__(
        self,
        registry: Registry,
        limits: Limits,
        shares: Mapping[str, Share] | None = None,
        choose: Callable[[str | None], None] | None = None,
    ) -> None:
        """``choose``: sets the controller that connections of Multipath TCP begin with, on a kernel where it is one for all sessions
        (``listener.Controllers``); OptionsError when it cannot."""
        self._registry, self.limits, self._shares = registry, limits, dict(shares or {})
        self._choose = choose
        self._sessions: dict[str, Session] = {}
        self._lock, self._accounts = threading.Lock(), threading.Lock()

    def open(self, probe: str, request: SessionRequest) -> Session:
        """Open a session, or Refused with the reason; sqlite3.Error when it cannot be written down (a full disk), and then there is
        none. The budget is what is requested (``payload_bytes`` or ``budget_bytes``), or the endpoint's bound."""
        limits, share = self.limits, self._shares.get(probe, Share())
        sessions_at_once = share.sessions_at_once or limits.sessions_per_probe
        bytes_per_day = share.bytes_per_day or limits.probe_bytes_per_day
        wanted = request.payload_bytes if request.payload_bytes is not None else request.budget_bytes
        if wanted is not None and wanted > limits.session_bytes:
            raise Refused(f"{wanted} bytes asked for, a session may have {limits.session_bytes}")
        if request.seconds is not None and request.seconds > limits.session_s:
            raise Refused(f"{request.seconds:g} s asked for, a session may last {limits.session_s:g} s")
        budget = wanted if wanted is not None else limits.session_bytes
        with self._accounts:
            mine = [s for s in self._all() if s.probe == probe]
            count = sum(s.open() for s in mine)
            if count >= sessions_at_once:
                raise Refused(f"{probe} has {count} open sessions already")
            day_ago_ns = time.time_ns() - 86_400 * 10**9
            used = self._registry.sessions.sent_since(probe, day_ago_ns) + sum(s.used_bytes for s in mine)
            budget = min(budget, bytes_per_day - used)
            if budget <= 0 or (wanted is not None and budget < wanted):
                raise Refused(f"{probe} has used {used} of its {bytes_per_day} bytes of 24 hours")
            if self._choose is not None and request.kind != "tcp":
                self._begin_with(request.options.congestion_control, self._choose)
            # One for all that are there at once: each of them by itself could have what is left of the day.
            day = mine[0].day if mine else Day(bytes_per_day - used)
            session = Session(
                self._registry.sessions.open(probe, request.run, request.kind, budget, limits.session_s),
                probe,
                request.run,
                request.kind,
                request.path,
                request.paths,
                budget,
                time.monotonic() + limits.session_s,
                limits.session_idle_s,
                limits.connections_per_session,
                limits.page_connections_per_session,
                day,
                request.options,
                tls=request.tls,
            )
            with self._lock:
                self._sessions[session.id] = session
            return session

    def _begin_with(self, name: str | None, choose: Callable[[str | None], None]) -> None:
        others = {s.options.congestion_control for s in self._all() if s.kind != "tcp" and s.open()} - {name}
        if others:
            other = ", ".join(one or "the system's own" for one in sorted(others, key=str))
            raise Refused(
                f"on this kernel all sessions have one congestion controller at a time, which is {other} now; hint: try again"
            )
        choose(name)

    def get(self, session_id: str) -> Session | None:
        """The open session with this id; None when unknown, ended or lapsed."""
        with self._lock:
            session = self._sessions.get(session_id)
        return session if session is not None and session.open() else None

    def admit(self, claim: Claim, transfer: Transfer, tls: bool) -> Session:
        """The session that is claimed, for one connection, with TLS or without, and this transfer; entered: call its ``leave``
        afterwards. BadRequest says why not."""
        session = self.get(claim.session)
        if session is None or not session.owns(claim):
            raise BadRequest(403, "no open session; open one at the control channel")
        if session.tls != tls:
            raise BadRequest(403, "the session is for TLS" if session.tls else "the session is not for TLS")
        left = session.budget_bytes - session.used_bytes
        if transfer.payload_bytes is not None and transfer.payload_bytes > left:
            raise BadRequest(429, f"{left} bytes are left of the session's budget")
        if transfer.seconds is not None and transfer.seconds > session.deadline_s - time.monotonic():
            raise BadRequest(429, "longer than the session lasts")
        try:
            session.enter(many=transfer.many)
        except Refused as refusal:
            raise BadRequest(429, str(refusal)) from None
        return session

    def end(self, session_id: str, probe: str, wait_s: float = 2.0) -> Session | None:
        """End the probe's session; None when it has none of this id. Connections may finish for ``wait_s``, then are cut."""
        with self._lock:
            session = self._sessions.get(session_id)
            if session is None or session.probe != probe or session.ended_why is not None:
                return None
            session.ended_why = "closed"
        if not session.await_quiet(wait_s):
            session.cut()
            session.await_quiet(wait_s)
        self._write_end(session)
        return session

    def sweep(self) -> None:
        """End the sessions that have lapsed and those of revoked probes, and write down the ends that could not be written before. For
        one thread, which may have to wait for a capture's end."""
        now_s = time.monotonic()
        self._cut([s for s in self._all() if s.lapsed(now_s)], "expired")
        try:
            probes = {s.probe for s in self._all() if s.ended_why is None}
            revoked = {probe for probe in probes if not self._registry.probes.active(probe)}
            self._cut([s for s in self._all() if s.probe in revoked], "revoked")
        except sqlite3.Error as error:
            _LOG.warning("the registry does not say which probes are revoked: %s", error)
        for session in self._all():
            if session.unwritten:
                self._write_end(session)

    def end_all(self) -> None:
        """End every session: the endpoint stops."""
        self._cut(self._all(), "endpoint stopped", within_s=1.0)
        self.sweep()

    def _all(self) -> list[Session]:
        with self._lock:
            return list(self._sessions.values())

    def _cut(self, sessions: list[Session], why: str, within_s: float = 0.0) -> None:
        """End those of them that are open; their connections have ``within_s`` each to say what became of them."""
        with self._lock:
            mine = [session for session in sessions if session.ended_why is None]
            for session in mine:
                session.ended_why = why
        for session in mine:
            session.cut()
        for session in mine:
            session.await_quiet(within_s)
            self._write_end(session)

    def _write_end(self, session: Session) -> None:
        """Into the registry, or, when that cannot be written (a full disk), kept for the next ``sweep``: the probe gets its answer.
        What was never written is ended by the next start (``end_abandoned``), without its bytes."""
        session.end_capture()
        why = session.ended_why or "closed"
        try:
            with self._accounts:
                self._registry.sessions.end(session.id, session.used_bytes, why)
                with self._lock:
                    self._sessions.pop(session.id, None)
        except sqlite3.Error as error:
            if not session.unwritten:  # it is tried again every second
                message = "session %s: its end (%s, %d bytes) is not written: %s"
                _LOG.warning(message, session.id, why, session.used_bytes, error)
            session.unwritten = True
