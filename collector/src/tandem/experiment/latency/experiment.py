"""The latency run as an experiment: for each path, idle and beside a download, in random order, a stream of probes."""

from __future__ import annotations

import random
import threading
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from tandem.experiment import http_head
from tandem.experiment.base import STOPPED, Outcome, Output, Span, Stop, phase
from tandem.experiment.control import Control, Session, attempt, describe
from tandem.experiment.latency.probing import Plan, Stream, figures, probe
from tandem.experiment.latency.reflector import APART, LONGEST, SHORTEST, Reflector, compare, our_clock, reflector_of
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import CommonParameters, Parameter, ProbePath, parameter, parameters_of, read_request
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, environment
from tandem.experiment.transfer import Transfer
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A latency run, checked."""

    # fmt: off
    seconds: float = parameter("of each phase", "s", default=10.0, minimum=0.5, maximum=3600)
    interval_ms: float = parameter("between questions", "ms", default=20.0, minimum=1, maximum=10_000)
    size: int = parameter("of a question and its answer, UDP payload", "B", default=100, minimum=SHORTEST, maximum=LONGEST)
    load: str = parameter("phases beside a download on the same path", default="both", choices=("none", "only", "both"))
    settle_s: float = parameter("of download before a phase under load begins", "s", default=2.0, minimum=0, maximum=60)
    linger_s: float = parameter("for answers after the last question", "s", default=2.0, minimum=0.1, maximum=60)
    connect_timeout_s: float = parameter("for the download", "s", default=10.0, minimum=0.1, maximum=120)
    seed: int = parameter("of the random order of phases", "seed", default=1, minimum=0, maximum=2**53)
    deadline_s: float = parameter("the whole run", "s", default=600.0, minimum=1, maximum=86_400)
    # fmt: on

    @property
    def loads(self) -> tuple[bool, ...]:
        """The phases of each path: with a download (True), without."""
        return {"none": (False,), "only": (True,), "both": (False, True)}[self.load]

    @property
    def phase_s(self) -> float:
        """How long a phase lasts."""
        return self.settle_s + self.seconds + self.linger_s


_SESSION_SPARE_S, _LOAD_SPARE_S = 30.0, 5.0


class Latency:
    """Probes over each path."""

    name = "latency"
    version = 1
    quiet = True
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    phases = (("idle", "probes over a path"), ("loaded", "probes over a path beside a download on it"))
    results: tuple[Parameter, ...] = (
        Parameter("streams", "list", "each path, idle or loaded: loss, round-trip and one-way times"),
        Parameter("clock", "object", "whether one-way times are absolute, and their error"),
        Parameter("bytes", "int", "received: answers and load", "B"),
        Parameter("duration_s", "float", "of the whole", "s"),
        Parameter("bytes_by_path", "object", "payload of UDP and of the load"),
        INTERFACE_BYTES,
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure all phases."""
        run = _Run(read_request(Request, parameters), output, stop)
        failure = attempt(run.run)
        if failure is None and not any(s["received"] for s in run.streams):
            failure = Failure(reason="no answer over any path", retry=True)
        return run.outcome(failure)


class _Load:
    """``with _Load(…) as load``: a TCP download over ``path`` until the end of the block; its bytes are counted, never looked at.
    ``error``: why it ended before, or never began."""

    def __init__(self, request: Request, path: ProbePath, session: Session) -> None:
        self._request, self._path, self._session = request, path, session
        self._stop = Stop()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.transfer = Transfer()
        self.error: str | None = None
        self._ended_ns = 0

    def __enter__(self) -> _Load:
        """Returns when the first payload is here, or it has failed."""
        self._thread.start()
        until_s = time.monotonic() + 2 * self._request.connect_timeout_s
        while self._thread.is_alive() and not self.transfer.received and time.monotonic() < until_s:
            time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.request()
        self._thread.join(2 * self._request.connect_timeout_s)

    def _run(self) -> None:
        r, seconds = self._request, self._request.phase_s + _LOAD_SPARE_S
        target = f"/v1/download?seconds={seconds:g}"
        try:
            made = connect(r, "tcp", self._path, r.connect_timeout_s)
            with made.socket:
                head = http_head.request(
                    target, r.measurement.authority, {"X-Tandem-Session": self._session.claim(target)}
                )
                deadline_ns = time.monotonic_ns() + int(2 * seconds * 1e9)
                ended = self.transfer.run(
                    made.stream, head, None, seconds, r.connect_timeout_s, 0.0, deadline_ns, self._stop
                )
                self.error = None if ended in (None, STOPPED) else ended["reason"]
        except OSError as error:
            self.error = describe(error)
        finally:
            self._ended_ns = time.monotonic_ns()

    @property
    def goodput_bit_per_s(self) -> float | None:
        """From the first payload to the end; None without any."""
        lasted_ns = self._ended_ns - (self.transfer.first_byte_ns or self._ended_ns)
        return self.transfer.received * 8e9 / lasted_ns if lasted_ns > 0 else None


class _Run:
    """One run's streams, as they come."""

    def __init__(self, request: Request, output: Output, stop: Stop) -> None:
        self._r, self._output, self._stop = request, output, stop
        self.span = Span(request.deadline_s, stop)
        self._interfaces = InterfaceCounters(request.paths)
        self._bytes = {p.name: {"received": 0, "sent": 0} for p in request.paths}
        self._comparison = APART
        self.streams: list[dict[str, Any]] = []

    def run(self) -> Failure | None:
        """All phases, or why not all. ControlError, StoppedError; ``streams`` keeps what there is."""
        control = Control(self._r)
        phases = [(path, loaded) for path in self._r.paths for loaded in self._r.loads]
        random.Random(self._r.seed).shuffle(phases)
        for number, (path, loaded) in enumerate(phases, start=1):
            if self.span.over():
                break
            phase(self._output, f"{'loaded' if loaded else 'idle'} {path.name}", number, len(phases))
            self._phase(control, path, loaded, number)
        return self.span.failure()

    def _phase(self, control: Control, path: ProbePath, loaded: bool, number: int) -> None:
        r = self._r
        with control.session(self._stop, "tcp", bytes=None, seconds=r.phase_s + _SESSION_SPARE_S) as session:
            reflector = reflector_of(session)
            self._comparison = compare(our_clock(), reflector.clock)
            load = _Load(r, path, session) if loaded else None
            with load or nullcontext():
                if load is not None and load.error is None:
                    self._stop.wait(r.settle_s)
                stream = self._stream(path, session, reflector, number)
        row = {"path": path.name, "operator": path.operator, "loaded": loaded, **figures(stream, self._comparison)}
        row["load_goodput_bit_per_s"] = None if load is None else load.goodput_bit_per_s
        row["load_error"] = None if load is None else load.error
        self.streams.append(row)
        self._bytes[path.name]["sent"] += stream.sent_bytes
        self._bytes[path.name]["received"] += stream.received_bytes + (0 if load is None else load.transfer.received)

    def _stream(self, path: ProbePath, session: Session, reflector: Reflector, number: int) -> Stream:
        r = self._r
        plan = Plan(r.interval_ms / 1000, r.size, r.seconds, r.linger_s)
        try:
            with self._stop.interruptible():
                host = sockets.resolve(r.measurement.host, reflector.port, path.interface)
            return probe(path.interface, host, session.key, reflector.owner, number % 256, plan, self.span.over)
        except OSError as error:
            return Stream(error=describe(error))  # the path is down: a stream of nothing

    def outcome(self, failure: Failure | None) -> Outcome:
        """What there is."""
        clock = {"absolute": self._comparison.absolute, "error_ms": self._comparison.error_ms}
        result = {
            "streams": self.streams,
            "clock": {**clock, "ours": asdict(our_clock())},
            "bytes": sum(b["received"] for b in self._bytes.values()),
            "duration_s": self.span.duration_s,
            "bytes_by_path": self._bytes,
            "interface_bytes_by_path": self._interfaces.by_path(),
        }
        return Outcome(result, failure, environment(self._r))


EXPERIMENT = Latency()
