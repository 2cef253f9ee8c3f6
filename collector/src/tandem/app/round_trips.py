"""Round trips over every path, once a second: what became of the questions, the session that answers them, the thread that asks."""

from __future__ import annotations

import errno
import logging
import os
import select
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tandem.app.config import Config
from tandem.app.config_schema import PathConfig
from tandem.app.daemon.accounts import Account
from tandem.app.daemon.paths import NetworkPaths
from tandem.app.runs.context import RunObserver
from tandem.app.runs.request import Plan
from tandem.experiment import reflector
from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.parameters import CommonParameters, ParameterError, read_common
from tandem.experiment.reflector import Reflector, reflector_of
from tandem.mptcp import sockets
from tandem.schema.manifest import ROUND_TRIPS_RUN
from tandem.schema.metrics import ROUND_TRIP_MEASURED
from tandem.schema.record import Record
from tandem.stream.arrival import arrival_ns, stamp

log = logging.getLogger(__name__)


# ---------------------------------------------------------------------------------------------------------------------
# What became of one path's questions, one an instant. Pure: times come in, outcomes go out; all are CLOCK_MONOTONIC
# ns.


LATE_NS = 2_000_000_000
"""An answer that takes longer is late."""

LOST_NS = 10_000_000_000
"""A question without an answer for so long is lost, whatever comes afterwards."""

AGAIN_NS = 60_000_000_000
"""While a path is not measured, one record in so long says why."""

_FINE_NS = 100_000_000
_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question, as a ``round_trip`` record has it; ``instant_ns``: the record's time. Absent is None."""

    instant_ns: int
    sequence: int
    outcome: str
    beside_run: bool
    rtt_ms: float | None = None
    sent_after_ms: float | None = None
    duplicates: int | None = None
    too_late: int | None = None


@dataclass(frozen=True, slots=True)
class _Question:
    instant_ns: int
    sent_ns: int
    beside_run: bool


class Questions:
    """One path's. ``sequence`` rises from call to call of ``sent`` and ``not_sent``."""

    def __init__(self) -> None:
        self._open: dict[int, _Question] = {}
        self._closed: OrderedDict[int, str] = OrderedDict()
        self._duplicates = self._too_late = 0
        self._standing: tuple[str, int] | None = None

    def sent(self, sequence: int, instant_ns: int, sent_ns: int, *, beside_run: bool) -> None:
        self._open[sequence] = _Question(instant_ns, sent_ns, beside_run)
        self._standing = None

    def down(self, sequence: int, instant_ns: int, *, beside_run: bool) -> Outcome:
        """None could be sent: the path was not up."""
        self._standing = None
        return Outcome(instant_ns, sequence, "down", beside_run)

    def not_sent(self, sequence: int, instant_ns: int, why: str, *, beside_run: bool) -> Outcome | None:
        """None was sent, and that says nothing of the path. None: that was reported less than a minute ago."""
        if self._standing is not None and self._standing[0] == why and instant_ns - self._standing[1] < AGAIN_NS:
            return None
        self._standing = why, instant_ns
        return Outcome(instant_ns, sequence, why, beside_run)

    def heard(self, sequence: int, arrived_ns: int, server_ns: int) -> Outcome | None:
        """An answer came; ``server_ns``: how long the server had it. None where its question is decided, or was never asked."""
        question = self._open.get(sequence)
        if question is None:
            became = self._closed.get(sequence)
            self._duplicates += became in ("answered", "late")
            self._too_late += became == "lost"
            return None
        took_ns = arrived_ns - question.sent_ns
        if took_ns > LOST_NS:
            self._too_late += 1
            return self._close(sequence, "lost")
        rtt_ms = round(max(0, took_ns - max(0, server_ns)) / 1e6, 3)
        return self._close(sequence, "late" if took_ns > LATE_NS else "answered", rtt_ms)

    def overdue(self, now_ns: int) -> list[Outcome]:
        lost = [sequence for sequence, question in self._open.items() if now_ns - question.sent_ns > LOST_NS]
        return [self._close(sequence, "lost") for sequence in lost]

    def unserved(self, before_ns: int) -> list[Outcome]:
        """The server had nobody for those that went out before and are not decided: they tell nothing of the path."""
        nobodys = [sequence for sequence, question in self._open.items() if question.sent_ns < before_ns]
        return [self._close(sequence, "unserved") for sequence in nobodys]

    @property
    def oldest_ns(self) -> int | None:
        """When the oldest question that waits for an answer went out; None when none does."""
        return min((question.sent_ns for question in self._open.values()), default=None)

    def _close(self, sequence: int, outcome: str, rtt_ms: float | None = None) -> Outcome:
        question = self._open.pop(sequence)
        self._closed[sequence] = outcome
        if len(self._closed) > _REMEMBERED:
            self._closed.popitem(last=False)
        after_ns = question.sent_ns - question.instant_ns
        decided = Outcome(
            question.instant_ns,
            sequence,
            outcome,
            question.beside_run,
            rtt_ms,
            round(after_ns / 1e6, 3) if after_ns > _FINE_NS else None,
            self._duplicates or None,
            self._too_late or None,
        )
        self._duplicates = self._too_late = 0
        return decided


# ---------------------------------------------------------------------------------------------------------------------
# Who answers: a session at the endpoint, opened anew in time, and the server's address as each path finds it. What asks
# the network does so in a thread of its own that lives as long as that takes: questions go out at their instants
# meanwhile.


SILENT_NS = 3_000_000_000
"""No answer over any path for so long: perhaps the server forgot the session."""

_AGE_NS, _LIFE_NS = 3000 * 10**9, 3550 * 10**9
"""When a session is followed by another, and when it is used no more, of an hour that the endpoint grants. What is under way when the
next takes over is still answered."""

_PAUSE_NS, _LONG_PAUSE_NS, _SOON_NS = 3 * 10**9, 60 * 10**9, 3600 * 10**9
_FAREWELL_S = 1.0
_IDLE_S = 120

Leaving = Mapping[str, tuple[str, str | None]]
"""By path that is up, its interface and own address."""


@dataclass(frozen=True, slots=True)
class Served:
    """An open session. ``idle_ns``: half of the time after which the server forgets it when nothing comes."""

    session: Session
    reflector: Reflector
    opened_ns: int
    idle_ns: int


class Serving:
    """``parameters_of`` makes what a session is opened with, of the paths as they are now: ParameterError where it cannot;
    ``budget_bytes``: of one session. All but ``_renew`` by one thread."""

    def __init__(self, parameters_of: Callable[[Leaving], CommonParameters], budget_bytes: int) -> None:
        self._make, self._budget_bytes = parameters_of, budget_bytes
        self.served: Served | None = None
        self.earlier: Served | None = None
        """The one before, whose answers may still be under way."""
        self._forgotten_ns: int | None = None
        self._found: dict[str, tuple[tuple[str, str | None], tuple[str, int]]] = {}
        self._last_sent_ns = self._last_heard_ns = 0
        self._needed_since_ns: int | None = None
        self._not_before_ns = 0
        self._worker: threading.Thread | None = None
        self._trouble = ""

    def usable(self, now_ns: int) -> Served | None:
        """The session to ask in now; None while there is none that the server surely knows."""
        served = self.served
        if served is None or now_ns - served.opened_ns > _LIFE_NS:
            return None
        return served if now_ns - max(self._last_sent_ns, served.opened_ns) <= served.idle_ns else None

    def server(self, path: str) -> tuple[str, int] | None:
        """Where the reflector is reached over ``path``; None while that is not known."""
        found, served = self._found.get(path), self.served
        return None if found is None or served is None else (found[1][0], served.reflector.port)

    def sent(self, now_ns: int) -> None:
        self._last_sent_ns = now_ns

    def heard(self, now_ns: int) -> None:
        self._last_heard_ns = now_ns

    def forgotten_ns(self) -> int | None:
        """When the session before this one was followed by it, if the server said that it did not know it: once."""
        was, self._forgotten_ns = self._forgotten_ns, None
        return was

    def look(self, now_ns: int, leaving: Leaving, oldest_ns: int | None) -> None:
        """Have done what is due; returns at once. ``oldest_ns``: when the oldest question that waits for an answer went out."""
        served, silent = self.served, False
        if served is not None and oldest_ns is not None:
            since_ns = max(oldest_ns, served.opened_ns)
            silent = self._last_heard_ns < since_ns and now_ns - since_ns > SILENT_NS
        open_anew = (
            self.usable(now_ns) is None or silent or (served is not None and now_ns - served.opened_ns > _AGE_NS)
        )
        unknown = {path for path, way in leaving.items() if path not in self._found or self._found[path][0] != way}
        if not leaving or not (open_anew or unknown):
            self._needed_since_ns = None
            return
        if self._needed_since_ns is None:
            self._needed_since_ns = now_ns
        if now_ns < self._not_before_ns or (self._worker is not None and self._worker.is_alive()):
            return
        self._worker = threading.Thread(
            target=self._renew, args=(dict(leaving), open_anew, silent), name="round-trips-session", daemon=True
        )
        self._worker.start()

    def _renew(self, leaving: Leaving, open_anew: bool, silent: bool) -> None:
        pause_ns, trouble = 0, ""
        try:
            parameters = self._make(leaving)
            if open_anew:
                pause_ns = self._open(Control(parameters), silent)
            for path, way in leaving.items():
                try:
                    self._found[path] = (
                        way,
                        sockets.resolve(parameters.measurement.host, parameters.measurement.port, way[0]),
                    )
                except OSError as error:  # of this path alone
                    pause_ns, trouble = _PAUSE_NS, f"{path}: {describe(error)}"
        except (ControlError, ParameterError) as error:
            again = isinstance(error, ControlError) and bool(error.failure["retry"])
            trouble = str(error.failure["reason"]) if isinstance(error, ControlError) else str(error)
            needed_ns = time.monotonic_ns() - (self._needed_since_ns or time.monotonic_ns())
            pause_ns = _PAUSE_NS if again and needed_ns < _SOON_NS else _LONG_PAUSE_NS
        if trouble and trouble != self._trouble:
            log.warning("round trips: %s", trouble)
        self._trouble = trouble
        self._not_before_ns = time.monotonic_ns() + pause_ns

    def _open(self, control: Control, silent: bool) -> int:
        """A new session; how long to wait before the next, ns. Where all was silent the old one is ended: if the server has none, its
        questions were nobody's. Not before the new one serves, so that what is under way meets a session; and not when the old one was
        heard meanwhile."""
        since_ns = self._last_heard_ns
        # As TCP, though it has no connection: one that may begin Multipath TCP keeps runs with a controller of their own waiting on the
        # v0.94 kernel.
        session = control.open("tcp", {}, budget_bytes=self._budget_bytes)
        expires_s = session.answer.get("expires_s")
        idle_s = (
            expires_s
            if isinstance(expires_s, int | float) and not isinstance(expires_s, bool) and expires_s > 0
            else _IDLE_S
        )
        made = Served(session, reflector_of(session), time.monotonic_ns(), int(idle_s * 1e9 / 2))
        self.earlier, self.served = self.served, made
        if not silent or self.earlier is None or self._last_heard_ns != since_ns:
            return 0
        status, _ = control.end(self.earlier.session, _FAREWELL_S * 3)
        if status == 404:
            self._forgotten_ns = made.opened_ns
            return 0
        return _LONG_PAUSE_NS  # it knew the session: what is silent is the way of UDP, and stays so with another

    def close(self, leaving: Leaving) -> None:
        """End the session, where the server was heard of just now."""
        served = self.served
        if served is not None and leaving and time.monotonic_ns() - self._last_heard_ns < SILENT_NS:
            try:
                Control(self._make(leaving)).close(served.session, _FAREWELL_S)
            except (ControlError, ParameterError) as error:
                log.info("round trips: the session is left to lapse: %s", error)


# ---------------------------------------------------------------------------------------------------------------------
# The thread that asks.


_CONTROL_S = 4.0
_UP = ("up", "ipv6_only_unusable")
"""States of a path over which UDP may go: what Multipath TCP cannot use, it can."""


@dataclass(frozen=True, slots=True)
class Way:
    """Where questions leave and where they go. ``address``: the interface's own, which the kernel binds a connected socket to: with
    another one it takes another socket."""

    interface: str
    address: str | None
    server: tuple[str, int]


class Asking:
    """The socket of one path; by one thread. ``refused`` is set when the server's host said that nobody listens there (ICMP), until
    somebody takes it back."""

    def __init__(self) -> None:
        self._way: Way | None = None
        self._socket: socket.socket | None = None
        self.refused = False

    def fileno(self) -> int:
        """For select; -1 while there is no socket."""
        return -1 if self._socket is None else self._socket.fileno()

    def send(self, raw: bytes, way: Way) -> bool:
        """Send over ``way``; False when this machine could not: no interface, no address, no route."""
        try:
            made = self._made(way)
            try:
                made.send(raw)
            except ConnectionRefusedError:  # the answer to an earlier one, told now; this one was not sent
                self.refused = True
                made.send(raw)
        except OSError:
            self.close()  # an interface that comes back is another one
            return False
        return True

    def hear(self) -> Iterator[tuple[bytes, int]]:
        """The datagrams that lie there, with their arrival by the kernel's stamp, CLOCK_MONOTONIC ns."""
        while self._socket is not None:
            try:
                raw, ancillary, _, _ = self._socket.recvmsg(2048, 256)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno == errno.ECONNREFUSED:
                    self.refused = True
                    continue
                self.close()
                return
            yield raw, arrival_ns(ancillary)

    def close(self) -> None:
        """Give the socket up; what is under way to it is not heard."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._way = None

    def _made(self, way: Way) -> socket.socket:
        if self._socket is not None and self._way == way:
            return self._socket
        self.close()
        made = socket.socket(socket.AF_INET6 if ":" in way.server[0] else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, way.interface.encode() + b"\0")
            stamp(made)
            made.setblocking(False)
            made.connect(way.server)
        except OSError:
            made.close()
            raise
        self._socket, self._way = made, way
        return made


class _Line:
    """One path: its questions and its socket. ``number``: the stream."""

    def __init__(self, path: PathConfig, number: int) -> None:
        self.path, self.number = path, number
        self.questions, self.asking = Questions(), Asking()
        self.last: Outcome | None = None


class RoundTrips(RunObserver):
    """``emit`` takes records, from the thread. ``group_started`` and ``group_ended``, ``status``: from any thread."""

    def __init__(
        self, config: Config, paths: NetworkPaths, account: Account, emit: Callable[[list[Record]], None]
    ) -> None:
        self._config, self._paths, self._account, self._emit = config, paths, account, emit
        self._period_ns = round(config.round_trip.period_s * 1e9)
        self._lines = [_Line(path, number) for number, path in enumerate(config.paths)]
        budget = 2 * len(self._lines) * reflector.SHORTEST * int(3600 / config.round_trip.period_s + 1)
        self._serving = Serving(self._common_parameters, budget)
        self._plan: Plan | None = None
        self._closed: list[tuple[_Line, Outcome]] = []
        self._ended = threading.Event()
        self._wake = os.eventfd(0)
        self._thread = threading.Thread(target=self._run, name="round-trips", daemon=True)

    # --- from any thread ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End; TimeoutError when it has not ended in ``timeout`` seconds. Questions that are not decided leave no record."""
        self._ended.set()
        os.eventfd_write(self._wake, 1)
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError("round trips: the thread has not ended")
        os.close(self._wake)

    def group_started(self, plan: Plan) -> None:
        """From now on what is asked is beside runs, or nothing is where they want quiet."""
        self._plan = plan

    def group_ended(self, plan: Plan) -> None:  # noqa: ARG002 the observer's signature
        self._plan = None

    def status(self) -> dict[str, Any]:
        """By path, the newest ``outcome`` that is decided and its ``rtt_ms``, both None before the first."""
        lasts = {line.path.name: line.last for line in self._lines}
        return {
            name: {"outcome": last and last.outcome, "rtt_ms": last and last.rtt_ms} for name, last in lasts.items()
        }

    # --- the thread --------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        due_ns = (time.monotonic_ns() // self._period_ns + 1) * self._period_ns
        while self._hear_until(due_ns):
            # Instants that passed while nobody looked (a suspended machine) are left out: nothing was asked.
            sequence = time.monotonic_ns() // self._period_ns
            self._instant(sequence)
            due_ns = (sequence + 1) * self._period_ns
        self._say()
        self._serving.close(self._leaving())
        for line in self._lines:
            line.asking.close()

    def _hear_until(self, due_ns: int) -> bool:
        """Take answers as they come until ``due_ns``; False when told to end."""
        while not self._ended.is_set():
            left_ns = due_ns - time.monotonic_ns()
            if left_ns <= 0:
                return True
            able = {line.asking.fileno(): line for line in self._lines if line.asking.fileno() >= 0}
            for ready in select.select([self._wake, *able], [], [], left_ns / 1e9)[0]:
                if ready in able:
                    self._hear(able[ready])
        return False

    def _hear(self, line: _Line) -> None:
        sessions = [one for one in (self._serving.served, self._serving.earlier) if one is not None]
        for raw, arrived_ns in line.asking.hear():
            for one in sessions:
                answer = reflector.read_answer(one.session.key, one.reflector.owner, raw)
                if answer is not None and answer.stream == line.number:
                    self._serving.heard(arrived_ns)
                    took_ns = answer.returned_ns - answer.received_ns
                    self._tell(line, line.questions.heard(answer.sequence, arrived_ns, took_ns))
                    break
        self._refused(line)

    def _refused(self, line: _Line) -> None:
        if line.asking.refused:
            line.asking.refused = False
            self._unserved(line, time.monotonic_ns())

    def _unserved(self, line: _Line, before_ns: int) -> None:
        for outcome in line.questions.unserved(before_ns):
            self._tell(line, outcome)

    def _instant(self, sequence: int) -> None:
        """Ask over all paths, as nearly at once as one thread can; then what may take its time."""
        instant_ns, plan, leaving = sequence * self._period_ns, self._plan, self._leaving()
        served = self._serving.usable(time.monotonic_ns())
        beside, quiet = plan is not None, plan is not None and plan.request.quiet
        spent = {line.path.name for line in self._lines if self._spent(line.path)}
        for line in self._lines:
            name = line.path.name
            why = "paused" if quiet else "budget" if name in spent else None
            server = self._serving.server(name)
            if why is not None:
                outcome = line.questions.not_sent(sequence, instant_ns, why, beside_run=beside)
            elif name not in leaving:
                outcome = line.questions.down(sequence, instant_ns, beside_run=beside)
            elif served is None or server is None:
                outcome = line.questions.not_sent(sequence, instant_ns, "unserved", beside_run=beside)
            else:
                outcome = self._ask(line, sequence, instant_ns, served, Way(*leaving[name], server), beside)
            self._tell(line, outcome)
        now_ns, forgotten_ns = time.monotonic_ns(), self._serving.forgotten_ns()
        for line in self._lines:
            if forgotten_ns is not None:
                self._unserved(line, forgotten_ns)
            for lost in line.questions.overdue(now_ns):
                self._tell(line, lost)
        if not quiet:
            wanted = {name: way for name, way in leaving.items() if name not in spent}
            waiting = [at_ns for line in self._lines if (at_ns := line.questions.oldest_ns) is not None]
            self._serving.look(now_ns, wanted, min(waiting, default=None))
        self._say()

    def _ask(
        self, line: _Line, sequence: int, instant_ns: int, served: Served, way: Way, beside: bool
    ) -> Outcome | None:
        """Send one question; what is decided at once: that it could not be sent."""
        number, size = sequence % 2**32, reflector.SHORTEST
        raw = reflector.question(served.session.key, served.reflector.owner, line.number, number, instant_ns, size)
        sent_ns = time.monotonic_ns()
        if not line.asking.send(raw, way):
            return line.questions.down(sequence, instant_ns, beside_run=beside)
        self._refused(line)  # of those before
        line.questions.sent(number, instant_ns, sent_ns, beside_run=beside)
        self._serving.sent(sent_ns)
        return None

    def _leaving(self) -> dict[str, tuple[str, str | None]]:
        states = self._paths.states
        return {
            name: (interface, states[name]["address"])
            for name, interface in self._paths.interfaces.items()
            if interface is not None and states.get(name, {}).get("state") in _UP
        }

    def _spent(self, path: PathConfig) -> bool:
        """Whether its SIM has nothing left for today, or of its plan."""
        left = self._account.left_today(path)
        return left is not None and left <= 0

    def _tell(self, line: _Line, outcome: Outcome | None) -> None:
        if outcome is not None:
            line.last = outcome
            self._closed.append((line, outcome))

    def _say(self) -> None:
        if self._closed:
            self._emit([_record(line.path, outcome) for line, outcome in self._closed])
            self._closed = []

    def _common_parameters(self, leaving: Leaving) -> CommonParameters:
        paths = [
            {"name": name, "operator": self._config.operators[name], "interface": interface, "address": address}
            for name, (interface, address) in leaving.items()
        ]
        server = self._config.server.parameter
        return read_common({"run": ROUND_TRIPS_RUN, "paths": paths, "server": server, "control_timeout_s": _CONTROL_S})


def _record(path: PathConfig, outcome: Outcome) -> Record:
    names = ("outcome", "sequence", "rtt_ms", "sent_after_ms", "beside_run", "duplicates", "too_late")
    fields = {name: getattr(outcome, name) for name in names}
    if outcome.outcome in ROUND_TRIP_MEASURED:
        fields["unanswered"] = int(outcome.rtt_ms is None)
    return Record.make("round_trip", {"path": path.name, "operator": path.operator}, fields, outcome.instant_ns)
