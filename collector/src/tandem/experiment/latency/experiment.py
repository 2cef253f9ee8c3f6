"""The latency run as an experiment: for each path, idle and beside a download, in random order, a stream of probes."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from tandem.experiment.base import STOPPED, Outcome, Output, Stop, StoppedError, phase
from tandem.experiment.common_parameters import COMMON, CommonParameters, ProbePath, extended, read_common
from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.environment import environment
from tandem.experiment.interfaces import interface_bytes
from tandem.experiment.latency import clocks
from tandem.experiment.latency.datagram import LONGEST, SHORTEST
from tandem.experiment.latency.figures import figures
from tandem.experiment.latency.load import Load
from tandem.experiment.latency.probing import Plan, Stream, probe
from tandem.experiment.latency.reflector import Reflector, reflector_of
from tandem.experiment.parameters import Parameter
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

PARAMETERS = (
    *COMMON,
    Parameter("seconds", "float", "of each phase", "s", default=10.0, minimum=0.5, maximum=3600),
    Parameter("interval_ms", "float", "between questions", "ms", default=20.0, minimum=1, maximum=10_000),
    Parameter("size", "int", "of a question and its answer, UDP payload", "B", default=100, minimum=SHORTEST, maximum=LONGEST),
    Parameter("load", "str", "phases beside a download on the same path", default="both", choices=("none", "only", "both")),
    Parameter("settle_s", "float", "of download before a phase under load begins", "s", default=2.0, minimum=0, maximum=60),
    Parameter("linger_s", "float", "for answers after the last question", "s", default=2.0, minimum=0.1, maximum=60),
    Parameter("connect_timeout_s", "float", "for the download", "s", default=10.0, minimum=0.1, maximum=120),
    Parameter("seed", "int", "of the random order of phases", "seed", default=1, minimum=0, maximum=2**53),
    Parameter("deadline_s", "float", "the whole run", "s", default=600.0, minimum=1, maximum=86_400),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Request(CommonParameters):
    """A latency run, checked."""

    seconds: float
    interval_ms: float
    size: int
    load: str
    settle_s: float
    linger_s: float
    connect_timeout_s: float
    seed: int
    deadline_s: float

    @property
    def loads(self) -> tuple[bool, ...]:
        """The phases of each path: with a download (True), without."""
        return {"none": (False,), "only": (True,), "both": (False, True)}[self.load]


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one; ParameterError when they contradict each other."""
    return extended(Request, read_common(parameters), parameters)


_SESSION_SPARE_S = 30.0
_FAREWELL_S = 2.0
"""For closing a session when told to stop: who stops us waits."""


class Latency:
    """See ``tandem.experiment.base.Experiment``."""

    name = "latency"
    version = 1
    quiet = True
    parameters: tuple[Parameter, ...] = PARAMETERS
    phases = (
        ("idle", "probes over a path"),
        ("loaded", "probes over a path beside a download on it"),
    )
    results: tuple[Parameter, ...] = (
        Parameter("streams", "list", "each path, idle or loaded: loss, round-trip and one-way times"),
        Parameter("clock", "object", "whether one-way times are absolute, and their error"),
        Parameter("bytes", "int", "received: answers and load", "B"),
        Parameter("duration_s", "float", "of the whole", "s"),
        Parameter("bytes_by_path", "object", "payload of UDP and of the load"),
        Parameter("interface_bytes_by_path", "object", "all that the interface counted, headers and other traffic too"),
    )

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """See ``tandem.experiment.base.Experiment``."""
        run = _Run(read(parameters), output, stop)
        failure: Failure | None = None
        try:
            run.run()
        except ControlError as error:
            failure = error.failure
        except StoppedError:
            failure = STOPPED
        if failure is None and stop.requested:
            failure = STOPPED
        elif failure is None and run.late():
            failure = Failure(reason="deadline passed", retry=True)
        elif failure is None and not any(s["received"] for s in run.streams):
            failure = Failure(reason="no answer over any path", retry=True)
        return run.outcome(failure)


class _Run:
    """One run's streams, as they come."""

    def __init__(self, request: Request, output: Output, stop: Stop) -> None:
        self._r, self._output, self._stop = request, output, stop
        self._began_ns = time.monotonic_ns()
        self._counted = {p.name: interface_bytes(p.interface) for p in request.paths}
        self._bytes = {p.name: {"received": 0, "sent": 0} for p in request.paths}
        self._comparison = clocks.Comparison(False, None, None)
        self.streams: list[dict[str, Any]] = []

    def late(self) -> bool:
        """Whether the deadline has passed."""
        return time.monotonic_ns() - self._began_ns > self._r.deadline_s * 1e9

    def _over(self) -> bool:
        return self._stop.requested or self.late()

    def run(self) -> None:
        """All phases. ControlError, StoppedError; ``streams`` keeps what there is."""
        control = Control(self._r)
        phases = [(path, loaded) for path in self._r.paths for loaded in self._r.loads]
        random.Random(self._r.seed).shuffle(phases)
        for number, (path, loaded) in enumerate(phases, start=1):
            if self._over():
                return
            name = f"{'loaded' if loaded else 'idle'} {path.name}"
            phase(self._output, name, number, len(phases))
            self._phase(control, path, loaded, number)

    def _phase(self, control: Control, path: ProbePath, loaded: bool, number: int) -> None:
        r = self._r
        with self._session(control) as session:
            reflector = reflector_of(session)
            self._comparison = clocks.compare(clocks.tell(), reflector.clock)
            lasts_s = r.settle_s + r.seconds + r.linger_s
            load = Load(r, path, session, lasts_s + 5, r.connect_timeout_s) if loaded else None
            with load or nullcontext():
                if load is not None and load.error is None:
                    self._stop.wait(r.settle_s)
                stream = self._stream(path, session, reflector, number)
        row = {"path": path.name, "operator": path.operator, "loaded": loaded, **figures(stream, self._comparison)}
        row["load_goodput_bit_per_s"] = None if load is None else load.goodput_bit_per_s
        row["load_error"] = None if load is None else load.error
        self.streams.append(row)
        self._bytes[path.name]["sent"] += stream.sent_bytes
        self._bytes[path.name]["received"] += stream.received_bytes + (0 if load is None else load.received)

    def _stream(self, path: ProbePath, session: Session, reflector: Reflector, number: int) -> Stream:
        r = self._r
        plan = Plan(r.interval_ms / 1000, r.size, r.seconds, r.linger_s)
        try:
            with self._stop.interruptible():
                host = sockets.resolve(r.measurement.host, reflector.port, path.interface)
            return probe(path.interface, host, session.key, reflector.owner, number % 256, plan, self._over)
        except OSError as error:
            return Stream(error=describe(error))  # the path is down: a stream of nothing

    @contextmanager
    def _session(self, control: Control) -> Iterator[Session]:
        r = self._r
        with self._stop.interruptible():
            lasts_s = r.settle_s + r.seconds + r.linger_s + _SESSION_SPARE_S
            session = control.open("tcp", {}, bytes=None, seconds=lasts_s)
        try:
            yield session
        finally:
            control.close(session, _FAREWELL_S if self._stop.requested else r.control_timeout_s)

    def outcome(self, failure: Failure | None) -> Outcome:
        """What there is."""
        clock = {"absolute": self._comparison.absolute, "error_ms": self._comparison.error_ms}
        result = {
            "streams": self.streams,
            "clock": {**clock, "ours": asdict(clocks.tell())},
            "bytes": sum(b["received"] for b in self._bytes.values()),
            "duration_s": (time.monotonic_ns() - self._began_ns) / 1e9,
            "bytes_by_path": self._bytes,
            "interface_bytes_by_path": {
                p.name: interface_bytes(p.interface, since=self._counted[p.name]) for p in self._r.paths
            },
        }
        return Outcome(result, failure, environment(self._r))


EXPERIMENT = Latency()
