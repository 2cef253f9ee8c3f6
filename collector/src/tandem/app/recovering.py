"""The thread that climbs the recovery ladder: polls in, steps done, events out. What is due when: ``tandem.modem.recovery``."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from tandem.app.parts import ModemActionsLike, PollLike
from tandem.app.runs.scheduler import RunScheduler
from tandem.modem.recovery import INTERRUPTING, Due, Ladders, RecoverySettings, Sickness, Told
from tandem.modem.reset import CannotStepError, SimLockedError, StepFailedError
from tandem.modem.web import mended_by_restart
from tandem.schema.record import Record, Value

log = logging.getLogger(__name__)

TICK_S = 0.5
"""How often it is looked whether something is due, while a modem is not well."""

SILENT = ("no_answer", "port_lost")
LOCKED = ("cme_error 11", "cme_error 12")
"""SIM PIN and PUK required, 3GPP TS 27.007 clause 9.2.1."""


class Recovering:
    """``actions``: what can be done to the modem of each path. ``put`` takes events, from this thread. ``kinds``: see ``Ladders``.
    ``measuring``: never interrupted by a step; None: nobody measures."""

    def __init__(
        self,
        settings: RecoverySettings,
        actions: Mapping[str, ModemActionsLike],
        operators: Mapping[str, str | None],
        put: Callable[[list[Record]], None],
        kinds: Mapping[str, Sequence[str]] | None = None,
        measuring: RunScheduler | None = None,
    ) -> None:
        self._measuring = measuring
        self._actions, self._operators, self._put = dict(actions), operators, put
        self._ladders = Ladders(actions, settings, kinds)
        self._unwell: set[str] = set(actions)  # until a first good poll
        self._fresh: set[str] = set()
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="recovery", daemon=True)

    def start(self) -> None:
        """Begin to look after the modems."""
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """End; a step under way is left to itself."""
        self._stopping = True
        self._wake.set()
        if self._thread.ident is not None:
            self._thread.join(timeout)

    def polled(self, poll: PollLike) -> None:
        """One poll, from the poller's thread."""
        if poll.path not in self._actions:
            return
        sick = sickness(poll)
        with self._lock:
            told = self._ladders.polled(poll.path, sick, time.monotonic(), locked=poll.failure in LOCKED)
            if sick is not None:
                self._unwell.add(poll.path)
                self._wake.set()
            elif poll.path in self._unwell:
                self._unwell.discard(poll.path)
                self._fresh.add(poll.path)
                self._wake.set()
        self._tell(told)

    def _run(self) -> None:
        while not self._stopping:
            self._wake.wait(TICK_S if self._unwell else None)
            self._wake.clear()
            for path in self._taken():
                self._actions[path].seen()
            with self._lock:
                due, told = self._ladders.due(
                    time.monotonic(), (lambda: True) if self._measuring is None else self._measuring.hold
                )
            self._tell(told)
            try:
                if due is not None and not self._stopping:
                    self._do(due)
            finally:
                if self._measuring is not None and due is not None and due.step in INTERRUPTING:
                    self._measuring.release()

    def _taken(self) -> set[str]:
        with self._lock:
            fresh, self._fresh = self._fresh, set()
        return fresh

    def _do(self, due: Due) -> None:
        began_s = time.monotonic()
        how: Literal["done", "failed", "skipped", "locked"] = "done"
        try:
            detail = self._actions[due.path].do(due.step)
        except CannotStepError as error:
            how, detail = "skipped", str(error)
        except SimLockedError as error:
            how, detail = "locked", f"the SIM asks for a code: {error}"
        except (StepFailedError, TimeoutError, OSError) as error:
            how, detail = "failed", str(error) or "not done in time"
        now_s = time.monotonic()
        with self._lock:
            told = self._ladders.did(due, how, detail, now_s - began_s, now_s)
        self._tell(told)

    def _tell(self, told: list[Told]) -> None:
        now_ns = time.monotonic_ns()
        for one in told:
            log.warning("%s: %s %s: %s", one.path, one.kind.replace("_", " "), one.step or "", one.detail)
            tags = {"kind": one.kind, "path": one.path, "operator": self._operators.get(one.path)}
            fields: dict[str, Value | None] = {"step": one.step, "took_ms": one.took_ms, "detail": one.detail[:500]}
            self._put([Record.make("event", tags, fields, now_ns)])


def sickness(poll: PollLike) -> Sickness | None:
    """Silent: no answer, or no port. Refusing: a web server's error that a restart may mend. Any other error is an answer, and so is one
    that repeats itself."""
    if poll.failure in SILENT:
        return "silent"
    if poll.failure is not None and mended_by_restart(poll.failure):
        return "refusing"
    return None
