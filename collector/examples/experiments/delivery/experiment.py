"""When bytes arrive over one modem that is hardly used and, at the same time and place, over one that is loaded: what CellReplay
(Sentosa et al., NSDI 2025) replays a network from."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tandem.experiment import http_head
from tandem.experiment.base import STOPPED, Outcome, Output, Stop, StoppedError, phase
from tandem.experiment.control import Control, ControlError, Session, describe
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import COMMON, CommonParameters, Parameter, ParameterError, ProbePath, read_common
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, environment
from tandem.schema.manifest import Failure
from tandem.stream.arrival import arrival_ns, stamp

PACKET_BYTES = 1448
"""Payload of a packet of 1500 bytes: IPv4 and TCP with its time stamps."""

_SESSION_SPARE_S = 30.0
_CONNECTING = 2
"""The load's first payload comes within so many times ``timeout_s``, or it has failed."""


@dataclass(slots=True)
class Fetched:
    """``arrivals``: (CLOCK_MONOTONIC ns, bytes of payload) of each read, a packet each where the reader keeps up. ``connect_ms`` None:
    no connection; ``error``: why it is not whole, None when it is."""

    arrivals: list[tuple[int, int]] = field(default_factory=list)
    received: int = 0
    connect_ms: float | None = None
    error: str | None = "stopped"

    def fetch(
        self,
        common: CommonParameters,
        path: ProbePath,
        session: Session,
        target: str,
        timeout_s: float,
        over: Callable[[], bool],
    ) -> None:
        """A download by a TCP connection of its own, to its end or until ``over``."""
        try:
            made = connect(common, "tcp", path, timeout_s)
            with made.socket as socket:
                self.connect_ms = made.connect_ms
                stamp(socket)
                socket.settimeout(timeout_s)
                headers = {"X-Tandem-Session": session.claim(target)}
                socket.sendall(http_head.request(target, common.measurement.authority, headers))
                start, head = b"", None
                while not over():
                    raw, ancillary, _, _ = socket.recvmsg(PACKET_BYTES, 256)
                    if not raw:
                        break
                    arrived_ns, count = arrival_ns(ancillary), len(raw)
                    if head is None:
                        start += raw
                        head = http_head.parse(start)
                        if head is None:
                            continue
                        if head.status != 200:
                            self.error = f"HTTP {head.status}"
                            return
                        count = len(start) - head.size
                    self.received += count
                    self.arrivals.append((arrived_ns, count))
                whole = head is not None and (head.length is None or self.received >= head.length)
                self.error = None if whole else "closed early"
        except http_head.HeadError as error:
            self.error = str(error)
        except OSError as error:
            self.error = describe(error)


class Delivery:
    """As ``tandem.experiment.base.Experiment`` has it."""

    name = "delivery"
    version = 1
    parameters: tuple[Parameter, ...] = (
        *COMMON,
        Parameter("path", "str", "the path that is hardly used; the other one is loaded; default: the first"),
        Parameter("seconds", "float", "of the recording", "s", default=60.0, minimum=1, maximum=120),
        Parameter("settle_s", "float", "of load before the recording", "s", default=2.0, minimum=0, maximum=30),
        Parameter("interval_ms", "float", "between the beginnings of two trains", "ms", default=200.0, minimum=50, maximum=10_000),
        Parameter("train_bytes", "int", "of a train, by default ten packets", "B", default=14_000, minimum=3000, maximum=14_000),
        Parameter("most_bytes", "int", "the recording ends when the load has had so many", "B",
                  default=500_000_000, minimum=100_000, maximum=1_500_000_000),
        Parameter("timeout_s", "float", "of a connection without a byte", "s", default=8.0, minimum=0.5, maximum=60),
    )  # fmt: skip
    phases = (
        ("load", "a download begins over one path"),
        ("record", "and goes on, beside trains over the other"),
    )
    results: tuple[Parameter, ...] = (
        *FIGURES,
        BYTES_BY_PATH,
        Parameter("light", "object",
                  "path, rtt_ms (the least handshake), trains (µs of first and last arrival, bytes after the first), failed"),
        Parameter("loaded", "object", "path, packets of 1448 bytes that had come in each millisecond"),
    )  # fmt: skip

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure."""
        common = read_common(parameters, parameters["path"])
        if len(common.paths) != 2:
            raise ParameterError(f"parameter 'paths': {len(common.paths)} paths; one is hardly used and one loaded")
        if common.measurement.scheme != "http":
            raise ParameterError(
                "parameter 'server': arrivals are read in the clear; hint: a measurement URL with http"
            )
        run = _Run(common, parameters, output, stop)
        failure: Failure | None = None
        try:
            failure = run.record()
        except ControlError as error:
            failure = error.failure
        except StoppedError:
            failure = STOPPED
        return Outcome(run.result(), STOPPED if stop.requested else failure, environment(common))


class _Run:
    """One recording. ``began_ns`` and ``ended_ns``: between them arrivals are taken; None before."""

    def __init__(self, common: CommonParameters, parameters: dict[str, Any], output: Output, stop: Stop) -> None:
        self._common, self._p, self._output, self._stop = common, parameters, output, stop
        self._light_path, self._load_path = common.paths
        self._over = threading.Event()
        self._load, self._trains = Fetched(), list[Fetched]()
        self._began_ns = self._ended_ns = time.monotonic_ns()

    def record(self) -> Failure | None:
        """Load one path, send trains over the other. ControlError, StoppedError."""
        p, control = self._p, Control(self._common)
        lasts_s = p["settle_s"] + p["seconds"]
        trains = int(p["seconds"] * 1000 / p["interval_ms"]) + 1
        budget = p["most_bytes"] + trains * p["train_bytes"]
        # What is on its way when the load has had its bytes still counts against the session's budget.
        with self._stop.interruptible():
            session = control.open("any", {}, budget_bytes=budget + 50_000_000, seconds=lasts_s + _SESSION_SPARE_S)
        try:
            return self._between(session, f"/v1/download?seconds={lasts_s + p['timeout_s']:g}")
        finally:
            self._over.set()
            control.close(session, 2.0 if self._stop.requested else self._common.control_timeout_s)

    def _between(self, session: Session, target: str) -> Failure | None:
        p = self._p
        timeout_s = p["timeout_s"]
        arguments = (self._common, self._load_path, session, target, timeout_s, self._loaded)
        load = threading.Thread(target=self._load.fetch, args=arguments, name="load", daemon=True)
        phase(self._output, "load", 1, 2)
        load.start()
        until_s = time.monotonic() + _CONNECTING * timeout_s
        while not self._load.arrivals and load.is_alive() and time.monotonic() < until_s:
            if self._stop.wait(0.01):
                return STOPPED
        if not self._load.arrivals:
            return Failure(reason=f"load: {'timeout' if load.is_alive() else self._load.error}", retry=True)
        self._stop.wait(p["settle_s"])
        phase(self._output, "record", 2, 2)
        self._began_ns = time.monotonic_ns()
        try:
            self._send_trains(session, load)
        finally:
            self._ended_ns = time.monotonic_ns()
        early = None if load.is_alive() or self._load.received >= p["most_bytes"] else self._load.error or "ended early"
        self._over.set()
        load.join(2 * timeout_s)
        if early is not None:
            return Failure(reason=f"load: {early}", retry=True)
        if all(train.error for train in self._trains):
            return Failure(reason=f"trains: {self._trains[-1].error if self._trains else 'none'}", retry=True)
        return None

    def _send_trains(self, session: Session, load: threading.Thread) -> None:
        """Until the time is over or the load has ended. StoppedError."""
        p = self._p
        target = f"/v1/download?bytes={p['train_bytes']}"
        for number in itertools.count():
            after_ns = int(number * p["interval_ms"] * 1e6)
            due_s = (self._began_ns + after_ns - time.monotonic_ns()) / 1e9
            if after_ns >= p["seconds"] * 1e9 or (due_s > 0 and self._stop.wait(due_s)) or not load.is_alive():
                return
            train = Fetched()
            self._trains.append(train)
            with self._stop.interruptible():
                train.fetch(
                    self._common, self._light_path, session, target, p["timeout_s"], lambda: self._stop.requested
                )

    def _loaded(self) -> bool:
        return self._over.is_set() or self._stop.requested or self._load.received >= self._p["most_bytes"]

    def result(self) -> dict[str, Any]:
        """What there is."""
        within = [(at, n) for at, n in self._load.arrivals if self._began_ns <= at <= self._ended_ns]
        seconds = (self._ended_ns - self._began_ns) / 1e9
        handshakes = [t.connect_ms for t in self._trains if t.connect_ms is not None]
        light, loaded = self._light_path.name, self._load_path.name
        count = sum(n for _, n in within)
        return {
            "bytes": count,
            "duration_s": seconds,
            "goodput_bit_per_s": count * 8 / seconds if seconds else None,
            "bytes_by_path": {
                light: {"received": sum(t.received for t in self._trains), "sent": None},
                loaded: {"received": self._load.received, "sent": None},
            },
            "light": {
                "path": light,
                "rtt_ms": min(handshakes, default=None),
                "trains": [self._train(t) for t in self._trains if t.error is None],
                "failed": sum(t.error is not None for t in self._trains),
            },
            "loaded": {
                "path": loaded,
                "packets": packets([((at - self._began_ns) // 1_000_000, n) for at, n in within]),
            },
        }

    def _train(self, train: Fetched) -> list[int]:
        (first_ns, first), (last_ns, _) = train.arrivals[0], train.arrivals[-1]
        return [(first_ns - self._began_ns) // 1000, (last_ns - self._began_ns) // 1000, train.received - first]


def packets(arrivals: list[tuple[int, int]]) -> list[int]:
    """How many packets' worth of payload had come whole in each millisecond, from (millisecond, bytes) in order of arrival."""
    out: list[int] = []
    received = 0
    for at_ms, count in arrivals:
        out += [0] * (at_ms + 1 - len(out))
        before, received = received, received + count
        out[-1] += received // PACKET_BYTES - before // PACKET_BYTES
    return out


EXPERIMENT = Delivery()
