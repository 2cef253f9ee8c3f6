"""What an experiment is: a process that takes one JSON object of parameters and answers in JSON lines.

``python -m tandem.experiment NAME`` reads its parameters from stdin, writes to stdout, and logs to stderr:

    {"type": "started", "experiment", "version", "units", "monotonic_ns", …}   units: of the results, by name
    {"type": "phase", "name", "number", "of", "monotonic_ns"}  at the start of each phase, where it has phases
    {"type": "sample", "monotonic_ns", …}                     as many as it likes
    {"type": "record", "measurement", "tags", "fields", "monotonic_ns"}     a record of its own (``record``)
    {"type": "alive", "monotonic_ns"}                         every ``ALIVE_S`` seconds, by a thread of its own
    {"type": "result", "result": {…}|null, "failure": null|{"reason", "retry"}, "environment": {…}, …}      once, the last line

Failure of the network is a result, with what was measured until then; so is SIGTERM or SIGINT (reason "stopped", retry false).
Exit status: 0 measured, 1 a failure was recorded, 2 the parameters are wrong, 3 this machine lacks something; with 2 and 3
there is no result but one line on stderr. ``--describe`` prints name, version, parameters, phases and results as JSON.
A process that has said that it is alive and then says nothing at all for long is ended: it was stopped, is stuck in the kernel, or in code
that does not let Python's other threads run. One whose main thread merely waits for ever goes on beating; the deadline ends it.
A result whose keys are not those declared is written all the same, with ``result_faults`` beside it.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol, TextIO, TypeVar

from tandem.experiment.parameters import Parameter, ParameterError, check
from tandem.experiment.results import faults, with_counters
from tandem.mptcp import kernels
from tandem.schema.manifest import Failure, ServerCapture
from tandem.stop_flag import StopFlag

STOPPED = Failure(reason="stopped", retry=False)
LATE = Failure(reason="deadline passed", retry=True)
ALIVE_S = 5.0
T = TypeVar("T")

server_environment: dict[str, Any] = {}
"""The server's kernel settings, by its answer to the session opened last (docs/reference/endpoint-api.md): reported beside ours."""
server_captures: dict[str, ServerCapture] = {}
"""What became of the captures that the server was to make, by session: reported with the result."""


class MissingRequirementError(RuntimeError):
    """This machine cannot measure it at all; the message names the fix. Ends the process with status 3."""


class StoppedError(Exception):
    """Raised inside ``Stop.interruptible`` when the process is to stop."""


class Stop:
    """Whether the process is to stop. Long calls of the main thread are broken off inside ``interruptible``."""

    def __init__(self) -> None:
        self._flag = StopFlag()
        self._breaking = False

    @property
    def requested(self) -> bool:
        """True from the first SIGTERM or SIGINT on, or when nobody reads our output any more."""
        return self._flag.is_set()

    def request(self) -> None:
        """Ask for the stop, from any thread."""
        self._flag.set()

    def wait(self, seconds: float) -> bool:
        """Sleep until stopped, at most so long; True when stopped."""
        return self._flag.wait(seconds)

    def install(self) -> None:
        """Take SIGTERM and SIGINT. Main thread only."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._signalled)

    def _signalled(self, _number: int, _frame: FrameType | None) -> None:
        self._flag.set()
        if self._breaking:
            self._breaking = False  # a second signal must not break off the saving of what was measured
            raise StoppedError

    @contextmanager
    def interruptible(self) -> Iterator[None]:
        """Calls in here that block (connect, TLS, resolving) raise StoppedError on a signal. Main thread only."""
        self._breaking = True
        try:
            if self.requested:
                raise StoppedError
            yield
        finally:
            self._breaking = False


class Span:
    """How long a run lasts, from now on, and whether it is to end: it was stopped, or ``deadline_s`` have passed."""

    def __init__(self, deadline_s: float, stop: Stop) -> None:
        self._stop, self.begun_ns = stop, time.monotonic_ns()
        self.deadline_ns = self.begun_ns + int(deadline_s * 1e9)

    @property
    def duration_s(self) -> float:
        return (time.monotonic_ns() - self.begun_ns) / 1e9

    def failure(self) -> Failure | None:
        """Why it is to end; None while it may go on."""
        if self._stop.requested:
            return STOPPED
        return LATE if time.monotonic_ns() >= self.deadline_ns else None

    def over(self) -> bool:
        return self.failure() is not None


class Output:
    """JSON lines to the collector, from any thread, each whole. When nobody reads any more the experiment is stopped."""

    def __init__(self, stream: TextIO, stop: Stop) -> None:
        self._stream = stream
        self._stop = stop
        self._lock = threading.Lock()

    def line(self, kind: str, /, **content: Any) -> None:  # noqa: ANN401  any JSON value
        text = json.dumps({"type": kind, **content}, separators=(",", ":"), allow_nan=False) + "\n"
        with self._lock:
            try:
                self._stream.write(text)
                self._stream.flush()
            except (BrokenPipeError, ValueError):
                self._stop.request()
                self._let_go()

    def _let_go(self) -> None:
        """What could not be written may still lie in the stream: Python would try again at exit, and end with status 120."""
        # a stream without a file, or closed: then nothing is tried again
        with contextlib.suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


@dataclass(slots=True)
class Outcome:
    """What ``run`` returns: the last line. ``result`` None when nothing could be measured; ``further``: more keys."""

    result: dict[str, Any] | None
    failure: Failure | None
    environment: dict[str, Any]
    further: dict[str, Any] = field(default_factory=dict)


class Experiment(Protocol):
    """One experiment. ``version`` is raised whenever its figures stop being comparable with earlier ones. ``results``: the keys that
    its result may have, with kind, purpose and unit (``tandem.experiment.results``). It may have ``phases`` (what kinds there are, each
    with a word of what it does) and say ``quiet = True``: then the collector sends no round-trip probes beside it, since single packets
    change what it measures."""

    name: str
    version: int
    parameters: tuple[Parameter, ...]
    results: tuple[Parameter, ...]

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        """Measure. ``parameters`` are checked already. ParameterError for combinations that make no sense,
        MissingRequirementError when it cannot be measured here; a network failure belongs into the outcome."""
        ...


def phase(output: Output, name: str, number: int, of: int) -> None:
    """Write that phase ``number`` (from 1) of ``of`` begins. ``name``: one of the declared kinds, perhaps with more after a blank."""
    output.line("phase", name=name, number=number, of=of, monotonic_ns=time.monotonic_ns())


def record(
    output: Output, measurement: str, fields: Mapping[str, Any], *, monotonic_ns: int | None = None, **tags: str | None
) -> None:
    """Write a record of one of ``tandem.schema.metrics.EXPERIMENT_MEASUREMENTS``; ``monotonic_ns`` None: now. The collector adds the
    tags ``run``, ``experiment``, ``campaign`` and, by ``path``, ``operator``, checks it against the schema, and leaves out one that
    breaks it (``broken`` in the manifest's ``records``). What is None is absent."""
    now = time.monotonic_ns() if monotonic_ns is None else monotonic_ns
    output.line("record", measurement=measurement, tags=tags, fields=dict(fields), monotonic_ns=now)


def at_once(items: Collection[T], action: Callable[[T], None]) -> None:
    """``action`` of each item, a thread each; what the first of them raises is raised here, when all have ended."""
    with ThreadPoolExecutor(max(1, len(items))) as threads:
        list(threads.map(action, items))


@contextmanager
def _beating(output: Output) -> Iterator[None]:
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(ALIVE_S):
            output.line("alive", monotonic_ns=time.monotonic_ns())

    thread = threading.Thread(target=beat, name="alive", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # no beat after the result, which is the last line


def description(experiment: Experiment) -> dict[str, Any]:
    return {
        "name": experiment.name,
        "version": experiment.version,
        "parameters": [p.describe() for p in experiment.parameters],
        "phases": [{"name": n, "purpose": p} for n, p in getattr(experiment, "phases", ())],
        "results": [p.describe() for p in experiment.results],
        "quiet": getattr(experiment, "quiet", False) is True,
    }


def main(experiment: Experiment, argv: Sequence[str] | None = None) -> int:
    """The process of one experiment; the return value is its exit status: 0 measured, 1 a failure was recorded, 2 the parameters are wrong,
    3 this machine lacks something."""
    if _describes(experiment, sys.argv[1:] if argv is None else argv):
        print(json.dumps(description(experiment)))
        return 0
    stop = Stop()
    stop.install()
    output = Output(sys.stdout, stop)
    try:
        try:
            with stop.interruptible():
                text = sys.stdin.read()
        except StoppedError:
            output.line("result", result=None, failure=STOPPED, environment={})
            return 1
        checked = check(experiment.parameters, _parameters(text))
        output.line(
            "started",
            experiment=experiment.name,
            version=experiment.version,
            units={r.name: r.unit for r in experiment.results if r.unit},
            monotonic_ns=time.monotonic_ns(),
            pid=os.getpid(),
        )
        counters = kernels.here().counters()
        with _beating(output):
            outcome = experiment.run(checked, output, stop)
    except ParameterError as error:
        print(f"{experiment.name}: {error}", file=sys.stderr)
        return 2
    except MissingRequirementError as error:
        print(f"{experiment.name}: {error}", file=sys.stderr)
        return 3
    wrong = faults(experiment.results, outcome.result or {})
    output.line(
        "result",
        result=outcome.result,
        failure=outcome.failure,
        environment={
            **with_counters(outcome.environment, counters),
            **({"server": server_environment} if server_environment else {}),
        },
        **({"result_faults": wrong} if wrong else {}),
        **({"server_captures": list(server_captures.values())} if server_captures else {}),
        **outcome.further,
    )
    return 0 if outcome.failure is None else 1


def _describes(experiment: Experiment, arguments: Sequence[str]) -> bool:
    if not arguments:
        return False
    import argparse  # here: the collector gives no arguments, and every run loads this module

    parser = argparse.ArgumentParser(
        prog=f"python -m tandem.experiment {experiment.name}",
        description="Reads parameters as one JSON object from stdin; writes JSON lines; see tandem/experiment/base.py.",
    )
    parser.add_argument("--describe", action="store_true", help="print what it is as JSON, and end")
    return bool(parser.parse_args(arguments).describe)


def _parameters(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ParameterError(f"stdin holds no JSON object of parameters: {error}") from error
    if not isinstance(given, dict):
        raise ParameterError("stdin holds JSON, but no object of parameters")
    return given
