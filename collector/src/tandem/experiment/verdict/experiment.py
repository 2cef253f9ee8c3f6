"""The verdict as an experiment: each path as the primary one, then each as one that joins a connection over a native path."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass, replace
from typing import Any

from tandem.experiment.base import (
    Outcome,
    Output,
    Span,
    Stop,
    StoppedError,
    phase,
    record,
)
from tandem.experiment.control import Control, Session, attempt
from tandem.experiment.parameters import CommonParameters, Parameter, ProbePath, parameter, parameters_of, read_request
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, environment
from tandem.experiment.verdict import looking
from tandem.experiment.verdict.judging import Join, Primary, between, dropped, judge_join, judge_primary
from tandem.mptcp import kernels, sockets
from tandem.schema.manifest import Failure
from tandem.schema.metrics import VERDICTS


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
        """Look at each path."""
        look = _Look(read_request(Request, parameters), output, stop)
        failure = attempt(look.run)
        if failure is None and all(found["primary"]["verdict"] == "unreachable" for found in look.found.values()):
            failure = Failure(reason="the server is reached over no path", retry=True)
        return look.outcome(failure)


class _Look:
    """One run's findings, as they grow."""

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
            except looking.LookError as error:
                seen = replace(seen, error=str(error))
        seen = replace(seen, counters=looking.risen(before))
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
                counters=looking.risen(before),
            )
            if seen.handshake or dropped(seen.counters, one.connect_s):
                break
        return seen

    def _ask(self, path: ProbePath, kind: sockets.Kind, session: Session) -> looking.Exchange:
        with self._stop.interruptible():
            return looking.ask(self._r, path, kind, self._r.connect_timeout_s, session)

    def _plain(self, path: ProbePath, session: Session) -> tuple[dict[str, Any], bool | None]:
        """Plain TCP over the path, several times: the fastest of each figure, and whether something sits between."""
        here, there, exchanges = list[float](), list[float](), list[float]()
        reason = None
        for _ in range(self._r.asks):
            try:
                one = self._ask(path, "tcp", session)
            except looking.LookError as error:
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
        own = looking.Watched(sockets.interface_addresses(path.interface))
        payload = self._download(path, session, own, wait_s=0)
        # A subflow with a wrong end leaves the connection, or falls back when it is the only one.
        whole = payload.error is None and payload.last is not None
        fell = payload.last is not None and payload.last.fallback
        data = False if fell else True if whole else None
        return replace(seen, data=data, alive=own.alive or payload.received >= self._r.bytes, error=payload.error)

    def _join(self, control: Control, path: ProbePath, over: ProbePath | None) -> dict[str, Any]:
        before = kernels.here().counters()
        seen = Join(over=None if over is None else over.name)
        if over is not None:
            own = looking.Watched(sockets.interface_addresses(path.interface))
            try:
                with control.session(self._stop, "mptcp", bytes=self._r.bytes, seconds=None) as session:
                    error = self._download(over, session, own, self._r.join_wait_s).error
            except looking.LookError as failed:
                error = str(failed)
            kept = {key: getattr(own, key) for key in ("seen", "repeated", "established", "alive", "bytes_received")}
            seen = replace(seen, **kept, error=error, counters=looking.risen(before))
        return {**asdict(judge_join(seen)), "seen": asdict(seen)}

    def _download(self, path: ProbePath, session: Session, watched: looking.Watched, wait_s: float) -> looking.Payload:
        """A connection by Multipath TCP that begins on ``path``, its payload. LookError."""
        r = self._r
        with self._stop.interruptible():
            made = looking.connected(r, path, "mptcp", r.connect_timeout_s)
        with made.socket:
            request = looking.request(r, f"/v1/download?bytes={r.bytes}", session)
            addresses = {p.name: sockets.interface_addresses(p.interface) for p in r.paths}
            payload = looking.download(made, request, r.bytes, wait_s, r.stall_s, watched, self.span.over)
        self._received += payload.received
        for subflow in payload.last.subflows if payload.last is not None else ():
            host = subflow.local.host if subflow.local is not None else None
            for name, own in addresses.items():
                self._bytes[name] += (subflow.tcp.bytes_received or 0) if host in own else 0
        return payload

    def outcome(self, failure: Failure | None) -> Outcome:
        """What there is."""
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
