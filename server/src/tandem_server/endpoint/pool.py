"""The processes that serve the accepted connections: handed over one by one, to whichever has the fewest. Sessions stay here.

Each process has a channel, over which it gets accepted sockets; with each socket goes one end of a wire of its own, over which it
requests what ``broker.BudgetLease`` has (``pool_member.py``). A process that dies takes its connections along, no session: the clients
see a reset, the sessions go on, and another process is started in its place.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tandem_server.endpoint.http1 import BadRequest
from tandem_server.endpoint.listener import Entered
from tandem_server.endpoint.request import Claim, Transfer
from tandem_server.endpoint.sessions import Session, SessionTable

_LOG = logging.getLogger("tandem.endpoint.pool")
MESSAGE_BYTES = 1 << 17
"""The longest message on a wire or channel: a summary has less than 8 KiB."""

_START_S = 180.0
"""Until a process must have said that it is there: an emulated processor may take over a minute for its imports. One that ends is noticed
at once."""
_STOP_S = 12.0
_SHORT_LIFE_S = 5.0
_LONGEST_PAUSE_S = 30.0


_LOST: dict[str, Any] = {
    "request": None,
    "tls": None,
    "bytes_sent": None,
    "bytes_acked": None,
    "end": "process died",
    "subflows": [],
}
"""A connection whose process died: its figures went with it."""


class PoolError(RuntimeError):
    """No process could be started; one line."""


@dataclass(slots=True)
class _Member:
    process: subprocess.Popen[bytes]
    channel: socket.socket
    started_s: float
    connections: int = 0


class Pool:
    """``processes`` processes, each started by ``command`` with its channel's descriptor appended. PoolError when one of them does not
    start. ``serve`` is for ``listener.Acceptor``."""

    def __init__(self, command: Sequence[str], processes: int, sessions: SessionTable) -> None:
        self._command, self._sessions = tuple(command), sessions
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._members: dict[int, _Member] = {}
        self._keepers: list[threading.Thread] = []
        try:
            for place in range(processes):
                self._members[place] = self._start()
            for member in self._members.values():
                _await_ready(member)
        except PoolError:
            self.stop()
            raise
        for place in range(processes):
            keeper = threading.Thread(target=self._keep, args=(place,), name=f"keeper {place}", daemon=True)
            self._keepers.append(keeper)
            keeper.start()

    @property
    def pids(self) -> list[int]:
        """Of the processes alive."""
        with self._lock:
            return [member.process.pid for member in self._members.values()]

    def serve(
        self,
        connection: socket.socket,
        address: str,
        port: int,
        stopped: threading.Event,
        entered: Entered,
        *,
        tls: bool = False,
    ) -> None:
        """Hand the connection over and answer for its session until it has ended. OSError when no process takes it. ``tls``: it came
        to the port that speaks it."""
        wire, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with wire:
            with theirs, self._lock:
                terms = json.dumps({"address": address, "port": port, "tls": tls}).encode()
                takers = [] if stopped.is_set() else sorted(self._members.values(), key=lambda m: m.connections)
                member = _hand_over(takers, terms, [connection.fileno(), theirs.fileno()])
                member.connections += 1

            def enter(probe: str) -> bool:
                if not entered(probe):
                    return False
                # Until now it could be ended from here. Its last descriptor ends it, and that must be the other process's.
                connection.close()
                return True

            try:
                _Answering(wire, self._sessions, enter, tls).run()
            finally:
                with self._lock:
                    member.connections -= 1

    def stop(self) -> None:
        """End the processes, each as soon as its connections have ended; what is left after 12 s is killed."""
        self._stopping.set()
        with self._lock:
            members, self._members = list(self._members.values()), {}
        for member in members:
            _shut(member.channel)
        deadline_s = time.monotonic() + _STOP_S
        for member in members:
            _end(member, deadline_s)
        for keeper in self._keepers:
            keeper.join(_STOP_S)

    def _start(self) -> _Member:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                # A session of its own: Ctrl-C in a terminal is for this process, which ends the others.
                process = subprocess.Popen(
                    [*self._command, str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
            except OSError as error:
                ours.close()
                raise PoolError(f"a measurement process: {error.strerror}") from error
        return _Member(process, ours, time.monotonic())

    def _keep(self, place: int) -> None:
        """Start another process whenever this place's has died."""
        pause_s = 0.1
        member: _Member | None = self._members.get(place)
        while member is not None:
            status = member.process.wait()
            member.channel.close()
            if self._stopping.is_set():
                return
            with self._lock:
                self._members.pop(place, None)
            _LOG.warning("measurement process %d ended (status %d); another is started", member.process.pid, status)
            pause_s = 0.1 if time.monotonic() - member.started_s > _SHORT_LIFE_S else min(2 * pause_s, _LONGEST_PAUSE_S)
            member = None
            while member is None and not self._stopping.wait(pause_s):
                member = self._start_again()
                pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            if member is None:
                return
            with self._lock:
                stopping = self._stopping.is_set()
                if not stopping:
                    self._members[place] = member
            if stopping:
                _shut(member.channel)
                _end(member, time.monotonic() + _STOP_S)
                return

    def _start_again(self) -> _Member | None:
        try:
            member = self._start()
            _await_ready(member)
        except PoolError as error:
            _LOG.warning("%s", error)
            return None
        return member


class _Answering:
    """Answers one connection's process over its wire, until that closes it."""

    def __init__(self, wire: socket.socket, sessions: SessionTable, entered: Entered, tls: bool) -> None:
        self._wire, self._sessions, self._entered_by, self._tls = wire, sessions, entered, tls
        self._session: Session | None = None
        self._sending = threading.Lock()

    def run(self) -> None:
        try:
            while message := self._wire.recv(MESSAGE_BYTES):
                request: dict[str, Any] = json.loads(message)
                answers: dict[str, Callable[..., dict[str, object]]] = {
                    "admit": self._admit,
                    "take": self._take,
                    "leave": self._leave,
                }
                self._send(answers[request.pop("request")](**request))
        except ConnectionError as error:
            _LOG.debug("a wire broke: %s", error)
        finally:
            if self._session is not None:
                # Its process died: what it had reserved counts as carried, for nobody knows how much was.
                self._session.on_cut.discard(self._cut)
                self._session.leave(_LOST)

    def _admit(
        self, claim: dict[str, Any], payload_bytes: int | None, seconds: float | None, many: bool = False
    ) -> dict[str, object]:
        try:
            mine = self._sessions.admit(Claim(**claim), Transfer(payload_bytes, seconds, many), self._tls)
        except BadRequest as refusal:
            return {"status": refusal.status, "reason": str(refusal)}
        if not self._entered_by(mine.probe):
            mine.leave(None)
            return {"status": 503, "reason": "the endpoint has as many connections as it may, or this probe has"}
        self._session = mine
        mine.on_cut.add(self._cut)
        return {
            "probe": mine.probe,
            "run": mine.run,
            "kind": mine.kind,
            "path": mine.path,
            "paths": {name: [peer.operator, peer.address] for name, peer in mine.paths.items()},
            "options": asdict(mine.options),
            "deadline_s": mine.deadline_s,
            "ended": mine.ended.is_set(),
            # All of a known size at once: no further request stands between the request and its first byte.
            "taken": mine.take(payload_bytes) if payload_bytes is not None else 0,
        }

    def _take(self, needed: int, wanted: int) -> dict[str, object]:
        session = self._entered()
        # The last of a budget is given out in small parts, so that no connection sits on what another could use.
        spare = (session.budget_bytes - session.used_bytes) // 8
        return {"taken": session.take(max(needed, min(wanted, spare)))}

    def _leave(self, unused: int, summary: dict[str, Any] | None) -> dict[str, object]:
        session = self._entered()
        self._session = None
        session.on_cut.discard(self._cut)
        session.give_back(unused)
        session.leave(summary)
        return {}

    def _entered(self) -> Session:
        if self._session is None:
            raise ConnectionError("a process with a request before it was admitted")
        return self._session

    def _cut(self) -> None:
        try:
            self._send({"stop": True})
        except OSError as error:
            _LOG.debug("not stopped: %s", error)  # it has ended meanwhile

    def _send(self, answer: dict[str, object]) -> None:
        with self._sending:
            self._wire.send(json.dumps(answer).encode())


def _hand_over(members: Sequence[_Member], terms: bytes, descriptors: list[int]) -> _Member:
    """The first that takes them: one that has just died, or no longer reads its channel, does not. OSError when none does."""
    for member in members:
        try:
            socket.send_fds(member.channel, [terms], descriptors, socket.MSG_DONTWAIT)
        except OSError as error:
            _LOG.warning("measurement process %d takes no connection: %s", member.process.pid, error)
        else:
            return member
    raise OSError("no process to serve it")


def cores() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0))


def _await_ready(member: _Member) -> None:
    member.channel.settimeout(_START_S)
    try:
        ready = member.channel.recv(16)
    except OSError:
        ready = b""
    if ready != b"ready":
        member.process.kill()
        member.process.wait()
        member.channel.close()
        raise PoolError(f"measurement process {member.process.pid} did not start; hint: see its log above")
    member.channel.settimeout(None)


def _shut(channel: socket.socket) -> None:
    try:
        channel.shutdown(socket.SHUT_RDWR)
    except OSError as error:
        _LOG.debug("channel: %s", error)  # its process has gone before


def _end(member: _Member, deadline_s: float) -> None:
    try:
        member.process.wait(max(0.1, deadline_s - time.monotonic()))
    except subprocess.TimeoutExpired:
        _LOG.warning("measurement process %d did not stop; killed", member.process.pid)
        member.process.kill()
        member.process.wait()
    member.channel.close()
