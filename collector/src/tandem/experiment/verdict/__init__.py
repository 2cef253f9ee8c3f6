"""The verdict as an experiment: each path as the primary one, then each as one that joins a connection over a native path."""

from __future__ import annotations

import json
import random
import socket
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from tandem import mptcp_abi as abi
from tandem.experiment import http_head
from tandem.experiment.base import Outcome, Output, Span, Stop, StoppedError, phase, record
from tandem.experiment.control import Control, Session, attempt, describe, whole
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import CommonParameters, Parameter, ProbePath, parameter, parameters_of, read_request
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, environment
from tandem.experiment.verdict.judging import DROPPED, Join, Primary, between, dropped, judge_join, judge_primary
from tandem.mptcp import kernels, sockets
from tandem.mptcp_abi import SubflowSample
from tandem.mptcp_abi.reader import ConnectionSample, Reader, StatisticsError
from tandem.schema.manifest import Failure
from tandem.schema.metrics import VERDICTS
from tandem.stream import Stream

# ---------------------------------------------------------------------------------------------------------------------
# Look at one path: plain TCP beside Multipath TCP, what both ends saw of the handshake, the kernel's counters, and a
# join.


_LONGEST_ANSWER = 4096
_LOOK_S = 0.02


class LookError(Exception):
    """The network failed while looking; one line."""


def risen(before: dict[str, int]) -> dict[str, int]:
    """What rose since ``before``, and, where the kernel has them, those whose 0 says something."""
    now = kernels.here().counters()
    always = ("MPCapableSYNTX", "MPJoinSynTx", DROPPED)
    return {k: v - before.get(k, 0) for k, v in now.items() if v > before.get(k, 0) or (before and k in always)}


@dataclass(frozen=True, slots=True)
class Exchange:
    """One whoami. ``sample``: the connection before the request (Multipath TCP only); ``here_ms``: the handshake's round-trip time here;
    ``there``: what the server says, as it came."""

    sample: ConnectionSample | None
    connect_s: float
    here_ms: float | None
    exchange_ms: float
    there: dict[str, Any]

    @property
    def syns(self) -> int | None:
        """How many SYNs with MP_CAPABLE the server had had by then; None when it does not say."""
        return whole(self.there.get("multipath_syns"))


def ask(common: CommonParameters, path: ProbePath, kind: sockets.Kind, timeout_s: float, session: Session) -> Exchange:
    made = connected(common, path, kind, timeout_s)
    with made.socket as connection:
        info = abi.decode_tcp_info(connection.getsockopt(socket.IPPROTO_TCP, abi.TCP_INFO, abi.TCP_INFO_BYTES))
        sample = read(Reader(connection)) if kind == "mptcp" else None
        started = time.monotonic_ns()
        raw, first_ns = _answer(made.stream, request(common, "/v1/whoami", session), timeout_s)
        try:
            there = json.loads(raw)
        except ValueError as error:
            raise LookError("whoami: the answer is no JSON") from error
    if not isinstance(there, dict):
        raise LookError("whoami: the answer is no object")
    here = None if info.rtt_us is None else info.rtt_us / 1000
    return Exchange(sample, made.connect_ms / 1000, here, (first_ns - started) / 1e6, there)


def connected(common: CommonParameters, path: ProbePath, kind: sockets.Kind, timeout_s: float) -> sockets.Connected:
    """A connection over ``path`` to the measurement listener; LookError."""
    try:
        return connect(common, kind, path, timeout_s)
    except OSError as error:
        raise LookError(f"connect: {describe(error)}") from error


def request(common: CommonParameters, target: str, session: Session) -> bytes:
    """A GET of ``target`` at the measurement listener."""
    return http_head.request(target, common.measurement.authority, {"X-Tandem-Session": session.claim(target)})


def read(reader: Reader) -> ConnectionSample | None:
    """The connection now; None when it can no longer be read."""
    try:
        return reader.read()
    except StatisticsError:
        return None


def _answer(connection: Stream, request: bytes, timeout_s: float) -> tuple[bytes, int]:
    """The body of a small answer with status 200, and when its first byte came; LookError."""
    ends_s, arrivals, size = time.monotonic() + timeout_s, list[int](), 0

    def receive() -> bytes:
        nonlocal size
        left_s = ends_s - time.monotonic()
        if left_s <= 0 or size > _LONGEST_ANSWER:
            raise LookError("whoami: no answer in time" if left_s <= 0 else "whoami: an endless answer")
        connection.settimeout(left_s)
        more = connection.recv(_LONGEST_ANSWER)
        arrivals.append(time.monotonic_ns())
        size += len(more)
        return more

    try:
        connection.sendall(request)
        head, raw = http_head.read(receive)
        whole = head.size + (head.length or 0)
        while len(raw) < whole:
            more = receive()
            if not more:
                raise LookError("whoami: closed before the answer was whole")
            raw += more
    except (OSError, http_head.HeadError) as error:
        raise LookError(f"whoami: {describe(error)}") from error
    if head.status != 200:
        raise LookError(f"whoami: HTTP {head.status}")
    return raw[head.size : whole], arrivals[0]


@dataclass(slots=True)
class Watched:
    """The subflow from ``addresses``, a path's, while a connection lives. ``found``: what was seen of it."""

    addresses: list[str]
    found: Join

    def look(self, subflows: tuple[SubflowSample, ...]) -> None:
        own, found = [s for s in subflows if s.local is not None and s.local.host in self.addresses], self.found
        found.alive = any(s.alive for s in own)
        for s in own:
            found.seen = True
            found.repeated = found.repeated or (s.tcp.state == abi.SYN_SENT and s.tcp.retransmits > 0)
            found.established = found.established or s.established
            found.bytes_received = max(found.bytes_received, s.tcp.bytes_received or 0)


@dataclass(slots=True)
class Payload:
    """What came of a download: ``received`` bytes of the body; the connection's last sample with living subflows."""

    received: int = 0
    last: ConnectionSample | None = None
    error: str | None = None


def download(
    made: sockets.Connected,
    request: bytes,
    expected: int,
    wait_s: float,
    stall_s: float,
    watched: Watched,
    over: Callable[[], bool],
) -> Payload:
    """Send the first line of ``request``, wait up to ``wait_s`` until ``watched`` has joined, then send the rest and read ``expected``
    bytes, watching all the while.

    The kernel lets subflows join once data were acknowledged, and a short download is over before that.
    """
    connection, payload, reader = made.stream, Payload(), Reader(made.socket)

    def look() -> None:
        sample = read(reader)
        if sample is not None:
            payload.last = sample
            watched.look(sample.subflows)

    first, rest = request.split(b"\r\n", 1)
    raw, head = b"", None
    try:
        connection.settimeout(stall_s)
        connection.sendall(first + b"\r\n")
        ends_s = time.monotonic() + wait_s
        while time.monotonic() < ends_s and not over():
            look()
            if watched.found.established or (payload.last is not None and payload.last.fallback):
                break
            time.sleep(_LOOK_S)
        connection.sendall(rest)
        connection.settimeout(_LOOK_S)
        heard_s = time.monotonic()
        while payload.received < expected and not over():
            look()
            try:
                more = connection.recv(65536)
            except TimeoutError:
                if time.monotonic() - heard_s > stall_s:
                    payload.error = f"stalled: no byte for {stall_s:g} s"
                    break
                continue
            heard_s = time.monotonic()
            if not more:
                payload.error = f"closed after {payload.received} of {expected} bytes"
                break
            if head is None:
                raw += more
                head = http_head.parse(raw)
                more = b"" if head is None else raw[head.size :]
                if head is not None and head.status != 200:
                    payload.error = f"HTTP {head.status}"
                    break
            payload.received += len(more)
        look()
    except (OSError, http_head.HeadError) as error:
        payload.error = describe(error)
    return payload


# ---------------------------------------------------------------------------------------------------------------------
# The experiment.


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A verdict on each of ``paths``, checked."""

    # fmt: off
    bytes: int = parameter("payload of each connection", "B", default=500_000, minimum=10_000, maximum=1e9)
    asks: int = parameter("whoami by TCP over each path, of which the fastest counts", "asks", default=5, minimum=1, maximum=50)
    connect_timeout_s: float = parameter("for each connection", "s", default=15.0, minimum=0.1, maximum=120)
    join_wait_s: float = parameter("for subflows to join", "s", default=5.0, minimum=0.1, maximum=9)
    stall_s: float = parameter("without a byte for so long a connection has failed", "s", default=8.0, minimum=0.5, maximum=120)
    seed: int = parameter("of the random order of paths", "seed", default=1, minimum=0, maximum=2**53)
    deadline_s: float = parameter("the whole run", "s", default=300.0, minimum=1, maximum=7200)
    # fmt: on


_TRIES = 4
"""Handshakes by Multipath TCP that came out as TCP: the first shows it, the others say where it was lost."""


class VerdictExperiment:
    """Whether Multipath TCP survives each path, and where it is lost."""

    name = "verdict"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    phases = (("primary", "a path as the one that a connection begins on"), ("join", "a path as one that joins"))
    results: tuple[Parameter, ...] = (
        Parameter("paths", "object", "by path: primary and join, each verdict, where, detail and what was seen; tcp"),
        Parameter("order", "list", "the paths in the order they were looked at"),
        Parameter("bytes", "int", "payload received", "B"),
        Parameter("duration_s", "float", "of the whole", "s"),
        Parameter("bytes_by_path", "object", "payload that the kernel counted on each path's subflows"),
        INTERFACE_BYTES,
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        look = _Look(read_request(Request, parameters), output, stop)
        failure = attempt(look.run)
        if failure is None and all(found["primary"]["verdict"] == "unreachable" for found in look.found.values()):
            failure = Failure(reason="the server is reached over no path", retry=True)
        return look.outcome(failure)


class _Look:
    def __init__(self, request: Request, output: Output, stop: Stop) -> None:
        self._r, self._output, self._stop = request, output, stop
        self.span = Span(request.deadline_s, stop)
        self._order = random.Random(request.seed).sample(request.paths, len(request.paths))
        self._interfaces = InterfaceCounters(request.paths)
        self._bytes = {p.name: 0 for p in request.paths}
        self._received = 0
        self._phases = 0
        self.found: dict[str, dict[str, Any]] = {}

    def run(self) -> Failure | None:
        """All paths, both roles, or why not all. ControlError, StoppedError; ``found`` keeps what there is."""
        control = Control(self._r)
        for path in self._order:
            self._phase(f"primary {path.name}")
            self.found[path.name] = self._primary(control, path)
            self._record("primary", path)
        native = [p for p in self._order if self.found[p.name]["primary"]["verdict"] == "native"]
        for path in self._order:
            over = next((p for p in native if p is not path), None)
            self._phase(f"join {path.name}")
            self.found[path.name]["join"] = self._join(control, path, over)
            self._record("join", path)
        return self.span.failure()

    def _record(self, role: str, path: ProbePath) -> None:
        judged = self.found[path.name][role]
        fields = {
            "verdict_code": VERDICTS.index(judged["verdict"]),
            "over": judged["seen"].get("over"),
            **{k: judged[k] for k in ("where", "detail")},
        }
        record(self._output, "verdict", fields, path=path.name, role=role, verdict=judged["verdict"])

    def _phase(self, name: str) -> None:
        if self._stop.requested:
            raise StoppedError
        self._phases += 1
        phase(self._output, name, self._phases, 2 * len(self._order))

    def _primary(self, control: Control, path: ProbePath) -> dict[str, Any]:
        with control.session(self._stop, "mptcp", bytes=self._r.bytes, seconds=None) as session:
            tcp, proxy = self._plain(path, session)
            before = kernels.here().counters()
            seen = Primary(tcp="error" not in tcp, connected=False, between=proxy)
            try:
                seen = self._handshake(path, session, seen, before)
                if seen.handshake:
                    seen = self._with_payload(path, session, seen)
            except LookError as error:
                seen = replace(seen, error=str(error))
        seen = replace(seen, counters=risen(before))
        return {"tcp": tcp, "primary": {**asdict(judge_primary(seen)), "seen": asdict(seen)}}

    def _handshake(self, path: ProbePath, session: Session, seen: Primary, before: dict[str, int]) -> Primary:
        """Connect by Multipath TCP; where that comes out as TCP, again, beside the server's count of SYNs."""
        for _ in range(_TRIES):
            syns = None
            if seen.connected:
                syns = self._ask(path, "tcp", session).syns
            one = self._ask(path, "mptcp", session)
            there = one.there.get("multipath")
            counted = () if syns is None or one.syns is None else (one.syns - syns,)
            seen = replace(
                seen,
                connected=True,
                connect_s=seen.connect_s or one.connect_s,
                handshake=one.sample is not None and not one.sample.fallback,
                server=there if isinstance(there, str) else None,
                syns=(*seen.syns, *counted),
                counters=risen(before),
            )
            if seen.handshake or dropped(seen.counters, one.connect_s):
                break
        return seen

    def _ask(self, path: ProbePath, kind: sockets.Kind, session: Session) -> Exchange:
        with self._stop.interruptible():
            return ask(self._r, path, kind, self._r.connect_timeout_s, session)

    def _plain(self, path: ProbePath, session: Session) -> tuple[dict[str, Any], bool | None]:
        """Plain TCP over the path, several times: the fastest of each figure, and whether something sits between."""
        here, there, exchanges = list[float](), list[float](), list[float]()
        reason = None
        for _ in range(self._r.asks):
            try:
                one = self._ask(path, "tcp", session)
            except LookError as error:
                reason = str(error)
                break
            exchanges.append(one.exchange_ms)
            rtt = one.there.get("handshake_rtt_ms")
            there += [float(rtt)] if isinstance(rtt, int | float) and rtt > 0 else []
            here += [] if one.here_ms is None else [one.here_ms]
        if not exchanges:
            return {"error": reason}, None
        least = [min(values, default=None) for values in (here, there, exchanges)]
        proxy = between(*least)
        names = ("handshake_ms_here", "handshake_ms_at_server", "exchange_ms")
        return {**dict(zip(names, least, strict=True)), "something_between": proxy}, proxy

    def _with_payload(self, path: ProbePath, session: Session, seen: Primary) -> Primary:
        own = Watched(sockets.interface_addresses(path.interface), Join(over=None))
        payload = self._download(path, session, own, wait_s=0)
        # A subflow with a wrong end leaves the connection, or falls back when it is the only one.
        whole = payload.error is None and payload.last is not None
        fell = payload.last is not None and payload.last.fallback
        data = False if fell else True if whole else None
        return replace(seen, data=data, alive=own.found.alive or payload.received >= self._r.bytes, error=payload.error)

    def _join(self, control: Control, path: ProbePath, over: ProbePath | None) -> dict[str, Any]:
        before = kernels.here().counters()
        seen = Join(over=None if over is None else over.name)
        if over is not None:
            own = Watched(sockets.interface_addresses(path.interface), seen)
            try:
                with control.session(self._stop, "mptcp", bytes=self._r.bytes, seconds=None) as session:
                    seen.error = self._download(over, session, own, self._r.join_wait_s).error
            except LookError as failed:
                seen.error = str(failed)
            seen.counters = risen(before)
        return {**asdict(judge_join(seen)), "seen": asdict(seen)}

    def _download(self, path: ProbePath, session: Session, watched: Watched, wait_s: float) -> Payload:
        """A connection by Multipath TCP that begins on ``path``, its payload. LookError."""
        r = self._r
        with self._stop.interruptible():
            made = connected(r, path, "mptcp", r.connect_timeout_s)
        with made.socket:
            wanted = request(r, f"/v1/download?bytes={r.bytes}", session)
            addresses = {p.name: sockets.interface_addresses(p.interface) for p in r.paths}
            payload = download(made, wanted, r.bytes, wait_s, r.stall_s, watched, self.span.over)
        self._received += payload.received
        for subflow in payload.last.subflows if payload.last is not None else ():
            host = subflow.local.host if subflow.local is not None else None
            for name, own in addresses.items():
                self._bytes[name] += (subflow.tcp.bytes_received or 0) if host in own else 0
        return payload

    def outcome(self, failure: Failure | None) -> Outcome:
        result = {
            "paths": self.found,
            "order": [{"path": p.name} for p in self._order],
            "bytes": self._received,
            "duration_s": self.span.duration_s,
            "bytes_by_path": {name: {"received": count, "sent": 0} for name, count in self._bytes.items()},
            "interface_bytes_by_path": self._interfaces.by_path(),
        }
        return Outcome(result, failure, environment(self._r))


EXPERIMENT = VerdictExperiment()
