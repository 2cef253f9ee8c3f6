"""Experiments of rounds: their parameters beside the common ones; the sequence, drawn by a seed, which is the same on every machine; each
round awaited, the public addresses looked up, its steps measured one after the other; and what their results have alike.
"""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, cast

from tandem.experiment.base import STOPPED, EnvironmentLackError, Outcome, Output, Stop, StoppedError, phase, record
from tandem.experiment.common_parameters import COMMON, read_common
from tandem.experiment.control import whoami
from tandem.experiment.environment import environment
from tandem.experiment.measured_connection import ConnectionRequest, MeasuredConnection, Terms, deadline_after
from tandem.experiment.parameters import Parameter, ParameterError
from tandem.experiment.results import BYTES_BY_PATH, bytes_by_path
from tandem.experiment.socket_options import SOCKET_OPTIONS, read_socket_options
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

Spacing = Literal["periodic", "poisson"]


class Step(NamedTuple):
    """One way of moving the bytes: ``tcp`` over ``path`` alone, ``tcp-all`` over each path at once, ``mptcp`` with ``path`` as the
    primary."""

    kind: Literal["tcp", "tcp-all", "mptcp"]
    path: str | None

    @property
    def name(self) -> str:
        """As phases and results say it."""
        return self.kind if self.path is None else f"{self.kind} {self.path}"


@dataclass(frozen=True, slots=True)
class Round:
    """Every step once, in ``order``: what the papers call an experiment. ``gap_s``: from the start of the round before to the start of
    this one (0 for the first). ``bytes``: of each transfer, None where they are timed."""

    number: int
    gap_s: float
    order: tuple[Step, ...]
    bytes: int | None = None

    def told(self) -> dict[str, object]:
        """For the result."""
        told: dict[str, object] = {"gap_s": self.gap_s, "order": [step.name for step in self.order]}
        return told if self.bytes is None else {"bytes": self.bytes, **told}


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


Mode = Literal["oneway", "reqresp"]

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


@dataclass(frozen=True, slots=True)
class RoundsParameters:
    """``deadline_s`` as asked, or what all rounds may take at most."""

    terms: Terms
    mode: Mode
    rounds: tuple[Round, ...]
    seed: int
    whoami: bool
    deadline_s: float


def read_rounds(
    p: dict[str, Any], *, together: bool, step_s: float, sample_hz: float | None, sizes: tuple[int, int] | None = None
) -> RoundsParameters:
    """From parameters that are checked one by one; ParameterError when they contradict each other. ``together``: with a step of TCP
    over all paths at once. ``step_s``: what a step may take."""
    asked = read_common(p, p["primary"])
    names = [path.name for path in asked.paths]
    if len(names) < 2:
        raise ParameterError("parameter 'paths': two or more are compared; hint: name another path")
    primaries = names if p["primary"] is None else [p["primary"]]
    ways = steps(names, primaries, together=together)
    spacing = cast("Spacing", p["spacing"])
    made = rounds(ways, p["repetitions"], p["seed"], spacing, p["interval_s"], sizes)
    terms = Terms(
        asked=asked,
        direction="upload" if p["mode"] == "oneway" else "download",
        connect_timeout_s=p["connect_timeout_s"],
        stall_s=p["stall_s"],
        sample_hz=sample_hz,
        read_pause_s=0.004 if sample_hz is not None else 0.0,  # only a long, sampled transfer is read unhurriedly
        options=read_socket_options(p),
    )
    # a control exchange before and after, over each path at worst; and the connect
    around_s = 2 * asked.control_timeout_s * len(names) + p["connect_timeout_s"]
    longest_s = sum(r.gap_s for r in made) + len(made) * len(ways) * (step_s + around_s)
    return RoundsParameters(terms, cast("Mode", p["mode"]), made, p["seed"], p["whoami"], p["deadline_s"] or longest_s)


SEQUENCE = (
    Parameter("mode", "str", "oneway or reqresp, as asked"),
    Parameter("seed", "int", "of the sequence", "1"),
    Parameter("sequence", "list", "each round as it was drawn: order, gap_s and, where drawn, bytes"),
    Parameter("bytes", "int", "payload of all transfers", "B"),
    Parameter("duration_s", "float", "of all transfers, one after the other", "s"),
    BYTES_BY_PATH,
)
"""The keys of the result that ``start`` and ``over_all`` make."""


def start(asked: RoundsParameters) -> dict[str, Any]:
    """The result before anything was measured."""
    return {
        "mode": asked.mode,
        "seed": asked.seed,
        "sequence": [r.told() for r in asked.rounds],
        "bytes": 0,
        "duration_s": 0.0,
        "bytes_by_path": {},
    }


def over_all(told: dict[str, Any], done: Done) -> None:
    """Add a round to the sums in ``told``."""
    sums = [(path, row["received"], row["sent"]) for path, row in told["bytes_by_path"].items()]
    for measured in done.measured:
        lasted = [0.0]
        for connection in measured.connections:
            told["bytes"] += connection.payload_bytes
            lasted.append(connection.lasted_s)
            upload = connection.terms.direction == "upload"
            sums += [
                (t.name.path, None if upload else t.bytes, t.bytes_sent) for t in connection.series.totals.values()
            ]
        told["duration_s"] += max(lasted)
    told["bytes_by_path"] = bytes_by_path(sums)


def quantile(values: Sequence[float], share: float) -> float | None:
    """By linear interpolation between the two nearest; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


_WHOAMI_TIMEOUT_S = 3.0


@dataclass(slots=True)
class Measured:
    """A step that was measured: one connection, or one a path (``tcp-all``). ``number`` counts the run's phases from 1."""

    step: Step
    number: int
    begun_monotonic_ns: int
    connections: list[MeasuredConnection]

    @property
    def failure(self) -> Failure | None:
        """The first of its connections' failures."""
        return next((connection.failure for connection in self.connections if connection.failure is not None), None)


@dataclass(slots=True)
class Done:
    """A round, as far as it was measured."""

    round: Round
    begun_monotonic_ns: int
    measured: list[Measured] = field(default_factory=list)

    def connection(self, step: Step) -> MeasuredConnection | None:
        """The only connection of ``step``; None when it was not measured or failed."""
        for found in self.measured:
            if found.step == step and found.failure is None:
                return found.connections[0]
        return None


class Rounds:
    """Measures ``rounds``. ``seconds``: of each transfer where they are timed; ``patience_s``: for one transfer. After ``each`` has
    ended, ``failure`` says why it ended early, None when it did not; ``failed`` counts the steps that failed, ``first_failed`` is
    the first one's failure."""

    def __init__(
        self,
        terms: Terms,
        rounds: Sequence[Round],
        *,
        seconds: float | None,
        patience_s: float,
        deadline_s: float,
        ask_whoami: bool,
    ) -> None:
        self._terms, self._rounds, self._seconds, self._patience_s = terms, rounds, seconds, patience_s
        self._deadline_ns = time.monotonic_ns() + int(deadline_s * 1e9)
        self._whoami = ask_whoami
        self._addresses: dict[str, str] = {}
        self._number, self._of = 0, sum(len(r.order) for r in rounds)
        self.failure: Failure | None = None
        self.failed = 0
        self.first_failed: Failure | None = None

    def each(self, output: Output, stop: Stop) -> Iterator[Done]:
        """The rounds as they are done, the last one perhaps only in part. EnvironmentLackError when this machine lacks something."""
        begun_ns = time.monotonic_ns()
        for wanted in self._rounds:
            due_ns = begun_ns + int(wanted.gap_s * 1e9)
            if not self._await(due_ns, stop):
                return
            begun_ns = time.monotonic_ns()
            done = Done(wanted, begun_ns)
            try:
                self._ask(stop)
                for step in wanted.order:
                    if not self._await(begun_ns, stop):
                        break
                    done.measured.append(self._measure(step, wanted.bytes, output, stop))
                    self._judge(done.measured[-1])
                    if self.failure is not None:
                        break
            except sockets.UnsupportedError as error:
                raise EnvironmentLackError(str(error)) from error
            yield done
            if self.failure is not None:
                return

    def _await(self, due_ns: int, stop: Stop) -> bool:
        """Wait; whether the run goes on."""
        now_ns = time.monotonic_ns()
        if min(due_ns, self._deadline_ns) > now_ns:
            stop.wait((min(due_ns, self._deadline_ns) - now_ns) / 1e9)
        if stop.requested:
            self.failure = STOPPED
        elif time.monotonic_ns() >= self._deadline_ns:
            self.failure = Failure(reason="deadline passed", retry=True)
        return self.failure is None

    def _ask(self, stop: Stop) -> None:
        """The public addresses now; a path that is silent keeps the one it had."""
        if not self._whoami:
            return
        asked = self._terms.asked
        try:
            with stop.interruptible():
                self._addresses |= whoami(asked, asked.paths, _WHOAMI_TIMEOUT_S)
        except StoppedError:
            self.failure = STOPPED

    def _measure(self, step: Step, size: int | None, output: Output, stop: Stop) -> Measured:
        self._number += 1
        phase(output, step.name, self._number, self._of)
        kind: sockets.Kind = "mptcp" if step.kind == "mptcp" else "tcp"
        paths = [p for p in self._terms.asked.paths if step.path in (None, p.name)]
        connections = [
            MeasuredConnection(self._terms, ConnectionRequest(kind, p, size, self._seconds if size is None else None))
            for p in paths
        ]
        measured = Measured(step, self._number, time.monotonic_ns(), connections)
        try:
            for connection in connections:
                connection.open(self._addresses, stop)
            for connection in connections:
                connection.connect(stop)
            deadline_ns = deadline_after(self._patience_s, self._deadline_ns)

            def transfer(connection: MeasuredConnection) -> None:
                labels = {"phase": measured.number, "kind": kind, "path": connection.wanted.path.name}
                connection.transfer(deadline_ns, stop, output, labels)

            with ThreadPoolExecutor(len(connections)) as others:
                moving = [others.submit(transfer, connection) for connection in connections[1:]]
                transfer(connections[0])
                for future in moving:
                    future.result()
        finally:
            for connection in connections:
                connection.close(stop)
        return measured

    def _judge(self, measured: Measured) -> None:
        """A failure that trying again cannot mend ends the run; others belong to their step."""
        failure = measured.failure
        if failure is None:
            return
        self.failed += 1
        self.first_failed = self.first_failed or failure
        if not failure["retry"]:
            self.failure = failure


Rows = list[dict[str, Any]]


def run_rounds(
    asked: RoundsParameters,
    row: Callable[[Done], dict[str, Any]],
    found: Callable[[Done, dict[str, Any]], Rows],
    summary: Callable[[Rows], Rows],
    output: Output,
    stop: Stop,
    *,
    seconds: float | None,
    patience_s: float,
    beside: Mapping[str, Any] | None = None,
    nothing: Failure | None = None,
) -> Outcome:
    """Measure the rounds ``asked``. ``row`` tells one, ``found`` the fields of its ``aggregation`` records from that (each with its
    ``path``), ``summary`` what all come to; ``beside``: further keys of the result; ``seconds``, ``patience_s``: see ``Rounds``;
    ``nothing``: the failure when nothing failed and there is no summary all the same."""
    rounds = Rounds(
        asked.terms,
        asked.rounds,
        seconds=seconds,
        patience_s=patience_s,
        deadline_s=asked.deadline_s,
        ask_whoami=asked.whoami,
    )
    told = start(asked)
    rows: Rows = []
    for done in rounds.each(output, stop):
        rows.append(row(done))
        for fields in found(done, rows[-1]):
            tags = {"path": fields.pop("path"), "mode": asked.mode}
            begun_ns = done.begun_monotonic_ns
            record(output, "aggregation", {"round": done.round.number, **fields}, monotonic_ns=begun_ns, **tags)
        over_all(told, done)
    summed = summary(rows)
    result = {**told, **(beside or {}), "rounds": rows, "summary": summed}
    return Outcome(
        json.loads(json.dumps(result)),
        rounds.failure or (None if summed else rounds.first_failed or nothing),
        environment(asked.terms.asked) | asked.terms.options.told(),
        {"failed_phases": rounds.failed, "first_failed": rounds.first_failed},
    )
