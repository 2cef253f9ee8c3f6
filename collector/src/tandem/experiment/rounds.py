"""Go through a sequence of rounds: wait for each, ask for the public addresses, and measure its steps one after the other."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tandem.experiment.base import STOPPED, EnvironmentLackError, Output, Stop, StoppedError, phase
from tandem.experiment.control import whoami
from tandem.experiment.legs import Leg, Terms, Wanted, deadline_after
from tandem.experiment.sequence import Round, Step
from tandem.mptcp import sockets
from tandem.schema.manifest import Failure

_WHOAMI_TIMEOUT_S = 3.0


@dataclass(slots=True)
class Measured:
    """A step that was measured: one connection, or one a path (``tcp-all``). ``number`` counts the run's phases from 1."""

    step: Step
    number: int
    begun_monotonic_ns: int
    legs: list[Leg]

    @property
    def failure(self) -> Failure | None:
        """The first of its connections' failures."""
        return next((leg.failure for leg in self.legs if leg.failure is not None), None)


@dataclass(slots=True)
class Done:
    """A round, as far as it was measured."""

    round: Round
    begun_monotonic_ns: int
    measured: list[Measured] = field(default_factory=list)

    def leg(self, step: Step) -> Leg | None:
        """The only connection of ``step``; None when it was not measured or failed."""
        for found in self.measured:
            if found.step == step and found.failure is None:
                return found.legs[0]
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
        legs = [Leg(self._terms, Wanted(kind, p, size, self._seconds if size is None else None)) for p in paths]
        measured = Measured(step, self._number, time.monotonic_ns(), legs)
        try:
            for leg in legs:
                leg.open(self._addresses, stop)
            for leg in legs:
                leg.connect(stop)
            deadline_ns = deadline_after(self._patience_s, self._deadline_ns)

            def transfer(leg: Leg) -> None:
                labels = {"phase": measured.number, "kind": kind, "path": leg.wanted.path.name}
                leg.transfer(deadline_ns, stop, output, labels)

            with ThreadPoolExecutor(len(legs)) as others:
                moving = [others.submit(transfer, leg) for leg in legs[1:]]
                transfer(legs[0])
                for future in moving:
                    future.result()
        finally:
            for leg in legs:
                leg.close(stop)
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
