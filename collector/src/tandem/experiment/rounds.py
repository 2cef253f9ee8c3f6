"""Experiments of rounds: their parameters beside the common ones; the sequence, drawn by a seed, which is the same on every machine; each
round awaited, the public addresses looked up, its steps measured one after the other; and what their results have alike.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from tandem.experiment.base import (
    STOPPED,
    MissingRequirementError,
    Outcome,
    Output,
    Span,
    Stop,
    StoppedError,
    at_once,
    phase,
    record,
)
from tandem.experiment.control import whoami
from tandem.experiment.measured_connection import MeasuredConnection, Terms
from tandem.experiment.parameters import (
    COMMON,
    SOCKET_OPTIONS,
    Parameter,
    ParameterError,
    SocketOptions,
    read_common,
)
from tandem.experiment.results import BYTES_BY_PATH, bytes_by_path, environment
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

Spacing = Literal["periodic", "poisson"]
Mode = Literal["oneway", "reqresp"]


class Step(NamedTuple):
    """One way of moving the bytes: ``tcp`` over ``path`` alone, ``tcp-all`` over each path at once, ``mptcp`` with ``path`` as the
    primary."""

    kind: Literal["tcp", "tcp-all", "mptcp"]
    path: str | None

    @property
    def name(self) -> str:
        return self.kind if self.path is None else f"{self.kind} {self.path}"


@dataclass(frozen=True, slots=True)
class Round:
    """Every step once, in ``order``: what the papers call an experiment. ``gap_s``: from the start of the round before to the start of
    this one (0 for the first). ``bytes``: of each transfer, None where they are timed."""

    number: int
    gap_s: float
    order: tuple[Step, ...]
    bytes: int | None = None

    def to_dict(self) -> dict[str, object]:
        size = {} if self.bytes is None else {"bytes": self.bytes}
        return {**size, "gap_s": self.gap_s, "order": [step.name for step in self.order]}


def steps(paths: Sequence[str], primaries: Sequence[str], *, together: bool) -> tuple[Step, ...]:
    """TCP over each path, TCP over all at once if ``together``, MPTCP with each of ``primaries``."""
    all_at_once = (Step("tcp-all", None),) if together else ()
    return (*(Step("tcp", p) for p in paths), *all_at_once, *(Step("mptcp", p) for p in primaries))


def rounds(
    ways: Sequence[Step],
    count: int,
    seed: int,
    spacing: Spacing,
    interval_s: float,
    sizes: tuple[int, int] | None = None,
) -> tuple[Round, ...]:
    """``count`` rounds, each with an order and a size of its own. ``interval_s``: between two starts, always (``periodic``) or on the
    average of an exponential distribution (``poisson``). ``sizes``: least and greatest number of bytes, both may be drawn."""
    drawn = random.Random(f"tandem rounds {seed}")
    made = []
    for number in range(1, count + 1):
        gap_s = 0.0
        if number > 1 and interval_s > 0:
            gap_s = interval_s if spacing == "periodic" else drawn.expovariate(1 / interval_s)
        size = None if sizes is None else log_uniform(drawn.random(), *sizes)
        order = list(ways)
        drawn.shuffle(order)
        made.append(Round(number, gap_s, tuple(order), size))
    return tuple(made)


def log_uniform(at: float, least: int, greatest: int) -> int:
    """The whole number at ``at`` (0 to 1) of a log-uniform distribution from ``least`` to ``greatest``."""
    value = round(math.exp(math.log(least) + at * (math.log(greatest) - math.log(least))))
    return max(least, min(greatest, value))


ROUNDS = (
    *COMMON,
    Parameter("mode", "str", "oneway: upload; reqresp: download", default="reqresp", choices=("oneway", "reqresp")),
    Parameter("primary", "str", "MPTCP's primary path; by default each path in turn, a step of its own"),
    Parameter("repetitions", "int", "rounds, each with every step once", "rounds", default=1, minimum=1, maximum=5000),
    Parameter("seed", "int", "of the random order and, where drawn, spacing and sizes", "1", default=1, minimum=0, maximum=2**53),
    Parameter("spacing", "str", "of rounds: always the same, or exponential", default="periodic", choices=("periodic", "poisson")),
    Parameter("interval_s", "float", "between starts of rounds; the paper: 300", "s", default=0.0, minimum=0, maximum=86400),
    Parameter("whoami", "bool", "ask for each path's public address before each round", default=True),
    *SOCKET_OPTIONS,
    Parameter("connect_timeout_s", "float", "for a measured connection", "s", default=8.0, minimum=0.1, maximum=120),
    Parameter("stall_s", "float", "so long without progress a transfer has failed", "s", default=10.0, minimum=0.5, maximum=600),
    Parameter("deadline_s", "float", "the whole run; by default what all rounds may take", "s", minimum=1, maximum=2_592_000),
)  # fmt: skip
"""An experiment's own parameters come after these."""

SEQUENCE = (
    Parameter("mode", "str", "oneway or reqresp, as requested"),
    Parameter("seed", "int", "of the sequence", "1"),
    Parameter("sequence", "list", "each round as it was drawn: order, gap_s and, where drawn, bytes"),
    Parameter("bytes", "int", "payload of all transfers", "B"),
    Parameter("duration_s", "float", "of all transfers, one after the other", "s"),
    BYTES_BY_PATH,
)
"""The keys of the result that ``run_rounds`` makes itself."""


@dataclass(frozen=True, slots=True)
class RoundsParameters:
    """``seconds``: of each transfer, None where they have sizes; ``step_s``: what a transfer may take; ``deadline_s`` as given, or what all
    rounds may take at most."""

    terms: Terms
    mode: Mode
    rounds: tuple[Round, ...]
    seed: int
    whoami: bool
    seconds: float | None
    step_s: float
    deadline_s: float


def read_rounds(
    p: dict[str, Any],
    *,
    together: bool,
    step_s: float,
    sample_hz: float | None = None,
    seconds: float | None = None,
    sizes: tuple[int, int] | None = None,
) -> RoundsParameters:
    """From parameters that are checked one by one; ParameterError when they contradict each other. ``together``: with a step of TCP
    over all paths at once."""
    common = read_common(p, p["primary"])
    names = [path.name for path in common.paths]
    if len(names) < 2:
        raise ParameterError("parameter 'paths': two or more are compared; hint: name another path")
    ways = steps(names, names if p["primary"] is None else [p["primary"]], together=together)
    made = rounds(ways, p["repetitions"], p["seed"], cast("Spacing", p["spacing"]), p["interval_s"], sizes)
    terms = Terms(
        common=common,
        direction="upload" if p["mode"] == "oneway" else "download",
        connect_timeout_s=p["connect_timeout_s"],
        stall_s=p["stall_s"],
        sample_hz=sample_hz,
        read_pause_s=0.004 if sample_hz is not None else 0.0,  # only a long, sampled transfer is read unhurriedly
        options=SocketOptions(p["receive_buffer_bytes"], p["send_buffer_bytes"], p["congestion_control"] or None),
    )
    # a control exchange before and after, over each path at worst; and the connect
    around_s = 2 * common.control_timeout_s * len(names) + p["connect_timeout_s"]
    longest_s = sum(r.gap_s for r in made) + len(made) * len(ways) * (step_s + around_s)
    deadline_s = p["deadline_s"] or longest_s
    return RoundsParameters(terms, cast("Mode", p["mode"]), made, p["seed"], p["whoami"], seconds, step_s, deadline_s)


@dataclass(slots=True)
class Measured:
    """A step that was measured: one connection, or one a path (``tcp-all``). ``number`` counts the run's phases from 1."""

    step: Step
    number: int
    begun_monotonic_ns: int
    connections: list[MeasuredConnection]

    @property
    def failure(self) -> Failure | None:
        return next((connection.failure for connection in self.connections if connection.failure is not None), None)


@dataclass(slots=True)
class Done:
    round: Round
    begun_monotonic_ns: int
    measured: list[Measured] = field(default_factory=list)


class Rounds:
    """Measures ``parameters.rounds``. After ``each`` has ended, ``failure`` says why it ended early, None when it did not; ``failed``
    counts the steps that failed, ``first_failed`` is the first one's failure."""

    def __init__(self, parameters: RoundsParameters, output: Output, stop: Stop) -> None:
        self._p, self._output, self._stop = parameters, output, stop
        self._span = Span(parameters.deadline_s, stop)
        self._addresses: dict[str, str] = {}
        self._number, self._of = 0, sum(len(r.order) for r in parameters.rounds)
        self.failure: Failure | None = None
        self.failed = 0
        self.first_failed: Failure | None = None

    def each(self) -> Iterator[Done]:
        """The rounds as they are done, the last one perhaps only in part. MissingRequirementError when this machine lacks something."""
        begun_ns = time.monotonic_ns()
        for wanted in self._p.rounds:
            if not self._await(begun_ns + int(wanted.gap_s * 1e9)):
                return
            begun_ns = time.monotonic_ns()
            done = Done(wanted, begun_ns)
            try:
                self._look_up()
                for step in wanted.order:
                    if not self._await(begun_ns):
                        break
                    done.measured.append(self._measure(step, wanted.bytes))
                    self._judge(done.measured[-1])
            except sockets.UnsupportedError as error:
                raise MissingRequirementError(str(error)) from error
            yield done
            if self.failure is not None:
                return

    def _await(self, due_ns: int) -> bool:
        """Wait; whether the run goes on."""
        left_ns = min(due_ns, self._span.deadline_ns) - time.monotonic_ns()
        if left_ns > 0:
            self._stop.wait(left_ns / 1e9)
        self.failure = self.failure or self._span.failure()
        return self.failure is None

    def _look_up(self) -> None:
        """The public addresses now; a path that is silent keeps the one it had."""
        if not self._p.whoami:
            return
        common = self._p.terms.common
        try:
            with self._stop.interruptible():
                self._addresses |= whoami(common, common.paths)
        except StoppedError:
            self.failure = STOPPED

    def _measure(self, step: Step, size: int | None) -> Measured:
        self._number += 1
        phase(self._output, step.name, self._number, self._of)
        kind: sockets.Kind = "mptcp" if step.kind == "mptcp" else "tcp"
        paths = [p for p in self._p.terms.common.paths if step.path in (None, p.name)]
        seconds = self._p.seconds if size is None else None
        connections = [MeasuredConnection(self._p.terms, kind, path, size, seconds) for path in paths]
        measured = Measured(step, self._number, time.monotonic_ns(), connections)
        try:
            for connection in connections:
                connection.open(self._addresses, self._stop)
            for connection in connections:
                connection.connect(self._stop)
            deadline_ns = min(self._span.deadline_ns, time.monotonic_ns() + int(self._p.step_s * 1e9))

            def transfer(connection: MeasuredConnection) -> None:
                labels = {"phase": measured.number, "kind": kind, "path": connection.path.name}
                connection.transfer(deadline_ns, self._stop, self._output, labels)

            at_once(connections, transfer)
        finally:
            for connection in connections:
                connection.close(self._stop)
        return measured

    def _judge(self, measured: Measured) -> None:
        """A failure that trying again cannot fix ends the run; others belong to their step."""
        failure = measured.failure
        if failure is None:
            return
        self.failed += 1
        self.first_failed = self.first_failed or failure
        if not failure["retry"]:
            self.failure = failure


Rows = list[dict[str, Any]]


def run_rounds(
    parameters: RoundsParameters,
    row: Callable[[Done], dict[str, Any]],
    aggregations: Callable[[Done, dict[str, Any]], Rows],
    summary: Callable[[Rows], Rows],
    output: Output,
    stop: Stop,
    *,
    beside: Mapping[str, Any] | None = None,
    nothing: Failure | None = None,
) -> Outcome:
    """Measure the rounds. ``row``: one for the result; ``aggregations``: from that the fields of its ``aggregation`` records (each with its
    ``path``); ``summary``: of all rows; ``beside``: further keys of the result; ``nothing``: the failure when nothing failed and there is
    no summary all the same."""
    rounds = Rounds(parameters, output, stop)
    rows, size, lasted_s = Rows(), 0, 0.0
    counted: list[tuple[str | None, int | None, int | None]] = []
    for done in rounds.each():
        rows.append(row(done))
        for fields in aggregations(done, rows[-1]):
            tags = {"path": fields.pop("path"), "mode": parameters.mode}
            begun_ns = done.begun_monotonic_ns
            record(output, "aggregation", {"round": done.round.number, **fields}, monotonic_ns=begun_ns, **tags)
        for measured in done.measured:
            lasted_s += max((connection.lasted_s for connection in measured.connections), default=0.0)
            for connection in measured.connections:
                size += connection.payload_bytes
                for t in connection.series.totals.values():
                    received = t.bytes if parameters.mode == "reqresp" else None
                    counted.append((t.name.path, received, t.bytes_sent))
    summed = summary(rows)
    result = {
        "mode": parameters.mode,
        "seed": parameters.seed,
        "sequence": [r.to_dict() for r in parameters.rounds],
        "bytes": size,
        "duration_s": lasted_s,
        "bytes_by_path": bytes_by_path(counted),
        **(beside or {}),
        "rounds": rows,
        "summary": summed,
    }
    return Outcome(
        json.loads(json.dumps(result)),
        rounds.failure or (None if summed else rounds.first_failed or nothing),
        environment(parameters.terms.common) | parameters.terms.options.to_dict(),
        {"failed_phases": rounds.failed, "first_failed": rounds.first_failed},
    )
