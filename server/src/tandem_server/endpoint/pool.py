"""The processes that serve the accepted connections: handed over one by one, to whichever has the fewest. Sessions stay in the first.

Each process has a channel, over which it gets accepted sockets; with each socket goes one end of a wire of its own, over which it
requests what ``BudgetLease`` has. A process that dies takes its connections along, no session: the clients see a reset, the sessions go
on, and another process is started in its place. First the endpoint's side of channel and wires, then a process's.
"""

from __future__ import annotations

import json
import logging
import os
import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tandem_server.endpoint.flows import PathPeer
from tandem_server.endpoint.http1 import BadRequest, Claim, Transfer
from tandem_server.endpoint.listener import Entered
from tandem_server.endpoint.sessions import Session, SessionTable
from tandem_server.endpoint.sockets import Options

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


_MEMBER_LOG = logging.getLogger("tandem.endpoint.pool_member")
_FIRST_PART_BYTES = 1 << 20
_LARGEST_PART_BYTES = 1 << 24
_LAST_S = 3.0


class SessionBroker:
    """Admits one connection over its wire; ``ConnectionError`` from every call when the endpoint's first process has gone."""

    def __init__(self, wire: socket.socket) -> None:
        self._wire = wire

    def admit(self, claim: Claim, transfer: Transfer, tls: bool) -> BudgetLease:  # noqa: ARG002  (the other end has it with the connection)
        """A part in the session that it claims, for one connection, with TLS or without, for this transfer; BadRequest says why not."""
        request = {"request": "admit", "claim": asdict(claim), **asdict(transfer)}
        self._wire.send(json.dumps(request).encode())
        terms = json.loads(_receive(self._wire))
        if "status" in terms:
            raise BadRequest(terms["status"], terms["reason"])
        return BudgetLease(self._wire, terms)


class BudgetLease:
    """One connection's part in an open session. The budget is taken in parts, greater ones as the transfer goes on;
    what is left goes back at the end."""

    def __init__(self, wire: socket.socket, terms: Mapping[str, Any]) -> None:
        self._wire = wire
        self.probe: str = terms["probe"]
        self.run: str = terms["run"]
        self.kind: str = terms["kind"]
        self.path: str | None = terms["path"]
        self.paths: Mapping[str, PathPeer] = {name: PathPeer(*peer) for name, peer in terms["paths"].items()}
        self.options = Options(**terms["options"])
        self._deadline_s: float = terms["deadline_s"]  # CLOCK_MONOTONIC is the same in every process
        self._ended: bool = terms["ended"]
        self._held: int = terms["taken"]
        self._part = _FIRST_PART_BYTES
        self._poll = select.poll()
        self._poll.register(wire, select.POLLIN)

    def over(self) -> bool:
        """Whether the connection must end now. Looks for what has come without waiting."""
        if not self._ended and self._poll.poll(0):
            _receive(self._wire)  # nothing comes unrequested but the end
            self._ended = True
        return self._ended or time.monotonic() > self._deadline_s

    def take(self, wanted_bytes: int) -> int:
        """Reserve up to so much of the budget; how much it is, 0 when nothing is left. Requests more only when what is held does not do: a
        transfer of known size holds it all from the beginning."""
        if self._held < wanted_bytes:
            needed = wanted_bytes - self._held
            self._held += int(self._call({"request": "take", "needed": needed, "wanted": self._part})["taken"])
            self._part = min(2 * self._part, _LARGEST_PART_BYTES)
        taken = min(wanted_bytes, self._held)
        self._held -= taken
        return taken

    def give_back(self, unused_bytes: int) -> None:
        """Return what was reserved and not carried: kept for the next ``take``."""
        self._held += unused_bytes

    def leave(self, summary: dict[str, Any] | None) -> None:
        """The connection has ended, with what became of it. Once."""
        self._call({"request": "leave", "unused": self._held, "summary": summary})

    def _call(self, request: dict[str, Any]) -> dict[str, Any]:
        self._wire.send(json.dumps(request).encode())
        while True:
            answer: dict[str, Any] = json.loads(_receive(self._wire))
            if "stop" not in answer:
                return answer
            self._ended = True


Serve = Callable[[SessionBroker, socket.socket, str, int, threading.Event, bool], None]
"""Serves one connection: its broker, the socket, the peer's address and port, what says that the endpoint stops, whether to speak TLS."""


def serve_channel(channel: socket.socket, serve: Serve) -> None:
    """Say that this process is ready, and serve what comes over ``channel``, a thread a connection, until the other side closes it;
    then tell the connections, and wait for them up to 3 s."""
    stopped, quiet = threading.Event(), threading.Condition()
    alive: set[threading.Thread] = set()

    def run(connection: socket.socket, wire: socket.socket, address: str, port: int, tls: bool) -> None:
        try:
            with wire, connection:
                serve(SessionBroker(wire), connection, address, port, stopped, tls)
        except OSError as error:
            _MEMBER_LOG.info("%s: %s", address, error)
        except Exception:  # noqa: BLE001  (logged with its trace: one connection's fault must not end the others)
            _MEMBER_LOG.exception("%s: a fault of the endpoint", address)
        finally:
            with quiet:
                alive.discard(threading.current_thread())
                quiet.notify_all()

    channel.send(b"ready")
    while True:
        message, descriptors, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 2)
        if not message:
            break
        terms = json.loads(message)
        whose = (terms["address"], terms["port"], terms["tls"])
        if len(descriptors) < 2:
            # This process has as many open as it may: the kernel has dropped what did not fit. The other connections go on.
            _MEMBER_LOG.warning("%s: no descriptor is left for the connection", terms["address"])
            for number in descriptors:
                os.close(number)
            continue
        connection, wire = (socket.socket(fileno=number) for number in descriptors)
        thread = threading.Thread(target=run, args=(connection, wire, *whose), daemon=True)
        with quiet:
            alive.add(thread)
        try:
            thread.start()
        except RuntimeError as error:  # no thread to be had
            _MEMBER_LOG.warning("%s: %s", terms["address"], error)
            with quiet:
                alive.discard(thread)
            with wire, connection:
                pass
    stopped.set()
    with quiet:
        quiet.wait_for(lambda: not alive, _LAST_S)


def _receive(wire: socket.socket) -> bytes:
    message = wire.recv(MESSAGE_BYTES)
    if not message:
        raise ConnectionError("the endpoint's first process has gone")
    return message
