"""The latency run as an experiment: for each path, idle and beside a download, in random order, a stream of probes."""

from __future__ import annotations

import random
import select
import socket
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

from tandem.experiment import http_head
from tandem.experiment.base import STOPPED, Outcome, Output, Span, Stop, phase
from tandem.experiment.control import Control, Session, attempt, describe
from tandem.experiment.measured_connection import connect
from tandem.experiment.parameters import CommonParameters, Parameter, ProbePath, parameter, parameters_of, read_request
from tandem.experiment.reflector import (
    APART,
    LONGEST,
    SHORTEST,
    Answer,
    Comparison,
    Reflector,
    compare,
    our_clock,
    question,
    read_answer,
    reflector_of,
)
from tandem.experiment.results import INTERFACE_BYTES, InterfaceCounters, distribution, environment, share
from tandem.experiment.transfer import Transfer
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure
from tandem.stream.arrival import arrival_ns, stamp

# ---------------------------------------------------------------------------------------------------------------------
# Send questions over one path at an even pace and take the answers' times, which the kernel stamps; and from these
# times the figures.
#
# Sent and arrived are on our clock, received and returned on the server's. What both ends' CLOCK_MONOTONIC give
# without being compared is the round-trip time (less the server's own time) and how the one-way times vary, here
# above the least of the stream. Absolute one-way times need two synchronised clocks, and are off by up to their
# errors.


_RECEIVE_BYTES = 2048


@dataclass(slots=True)
class Stream:
    """What came of one path's questions. ``sent_ns`` by sequence, None where the machine could not send (the path was down);
    ``heard``: each answer, and when it came, CLOCK_MONOTONIC ns."""

    sent_ns: list[int | None] = field(default_factory=list)
    heard: dict[int, tuple[Answer, int]] = field(default_factory=dict)
    duplicates: int = 0
    foreign: int = 0
    late_ms_max: float = 0.0
    error: str | None = None
    sent_bytes: int = 0
    received_bytes: int = 0


def probe(
    interface: str,
    address: tuple[str, int],
    key: bytes,
    session: bytes,
    number: int,
    request: Request,
    stopped: Callable[[], bool],
) -> Stream:
    """Ask over ``interface`` as stream ``number``, at ``request``'s pace, and wait for what is under way then. OSError when
    there is no such interface or route."""
    found, interval_s = Stream(), request.interval_ms / 1000
    with socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode() + b"\0")
        stamp(made)
        made.connect(address)
        made.setblocking(False)
        begun = time.monotonic_ns()
        total = max(1, round(request.seconds / interval_s))
        ends = begun + int((request.seconds + request.linger_s) * 1e9)
        while not stopped():
            now = time.monotonic_ns()
            done = len(found.sent_ns) >= total
            if now >= ends or (done and len(found.heard) >= total):
                break
            due = ends if done else begun + int(len(found.sent_ns) * interval_s * 1e9)
            if now >= due:
                found.late_ms_max = max(found.late_ms_max, (now - due) / 1e6)
                _ask(made, key, session, number, request.size, found)
                continue
            if select.select([made], [], [], min(0.2, (due - now) / 1e9))[0]:
                _hear(made, key, session, number, found)
    return found


def _ask(made: socket.socket, key: bytes, session: bytes, number: int, size: int, found: Stream) -> None:
    sent_ns = time.monotonic_ns()
    raw = question(key, session, number, len(found.sent_ns), sent_ns, size)
    try:
        made.send(raw)
    except OSError as error:  # ICMP of an earlier one, or no route just now
        found.error = error.strerror
        found.sent_ns.append(None)
        return
    found.sent_ns.append(sent_ns)
    found.sent_bytes += size


def _hear(made: socket.socket, key: bytes, session: bytes, number: int, found: Stream) -> None:
    try:
        raw, ancillary, _, _ = made.recvmsg(_RECEIVE_BYTES, 256)
    except BlockingIOError:
        return
    except OSError as error:
        found.error = error.strerror  # ICMP: nobody listens there; others may still be answered
        return
    arrived = arrival_ns(ancillary)
    found.received_bytes += len(raw)
    answer = read_answer(key, session, raw)
    if answer is None or answer.stream != number or answer.sequence >= len(found.sent_ns):
        found.foreign += 1
    elif answer.sequence in found.heard:
        found.duplicates += 1
    else:
        found.heard[answer.sequence] = answer, arrived


def figures(stream: Stream, comparison: Comparison) -> dict[str, Any]:
    heard = [stream.heard[n] for n in sorted(stream.heard)]
    sent = sum(at is not None for at in stream.sent_ns)
    rtts, ups, downs, stays = dict[int, float](), dict[int, float](), dict[int, float](), list[float]()
    for a, arrived_ns in heard:
        number = a.sequence
        at = stream.sent_ns[number]
        if at is None:
            continue
        stay = a.returned_ns - a.received_ns
        rtts[number] = (arrived_ns - at - stay) / 1e6
        ups[number], downs[number] = (a.received_ns - at) / 1e6, (arrived_ns - a.returned_ns) / 1e6
        stays.append(stay / 1e6)
    up, down = _lost(stream)
    return {
        "sent": sent,
        "not_sent": len(stream.sent_ns) - sent,
        "received": len(rtts),
        "lost_share": share(sent - len(rtts), sent),
        "lost_up": up,
        "lost_down": down,
        "duplicates": stream.duplicates,
        "reordered": sum(later < earlier for (_, earlier), (_, later) in pairwise(heard)),
        "rtt_ms": distribution(list(rtts.values())),
        "rtt_jitter_ms": distribution(_steps(rtts)),
        "up_variation_ms": distribution(_above(ups)),
        "down_variation_ms": distribution(_above(downs)),
        "up_jitter_ms": distribution(_steps(ups)),
        "down_jitter_ms": distribution(_steps(downs)),
        "up_ms": _absolute(ups, comparison, 1),
        "down_ms": _absolute(downs, comparison, -1),
        "server_ms": distribution(stays),
        "late_ms_max": round(stream.late_ms_max, 3),
        "error": stream.error,
    }


def _lost(stream: Stream) -> tuple[int | None, int | None]:
    """Lost on the way up and on the way down, of what was sent until the last question that was answered; None without an answer.
    The server's count is of what had come by then, so a question that overtook others counts them as lost up."""
    if not stream.heard:
        return None, None
    last, _ = stream.heard[max(stream.heard)]
    sent = sum(at is not None for at in stream.sent_ns[: last.sequence + 1])
    return max(0, sent - last.count), max(0, last.count - len(stream.heard) - stream.duplicates)


def _above(values: dict[int, float]) -> list[float]:
    least = min(values.values(), default=0.0)
    return [v - least for v in values.values()]


def _steps(values: dict[int, float]) -> list[float]:
    """Between neighbours that both came: how much they differ (RFC 3393), without sign."""
    return [abs(values[n + 1] - values[n]) for n in values if n + 1 in values]


def _absolute(values: dict[int, float], comparison: Comparison, sign: int) -> dict[str, Any] | None:
    if not comparison.absolute or comparison.ahead_ns is None:
        return None
    return distribution([v - sign * comparison.ahead_ns / 1e6 for v in values.values()])


# ---------------------------------------------------------------------------------------------------------------------
# The experiment.


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
        try:
            with self._stop.interruptible():
                host = sockets.resolve(r.measurement.host, reflector.port, path.interface)
            return probe(path.interface, host, session.key, reflector.owner, number % 256, r, self.span.over)
        except OSError as error:
            return Stream(error=describe(error))  # the path is down: a stream of nothing

    def outcome(self, failure: Failure | None) -> Outcome:
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
