"""One modem in time: it takes bytes, waits as a modem waits, answers, speaks unasked, and fails when told.

It owns no port and no clock, so a test can drive it through minutes in a moment.
"""

from __future__ import annotations

import heapq
import random
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Protocol

from tandem_bench.modem.dialogue import Family, Modem, Sim, answer, seen
from tandem_bench.modem.faults import Fault
from tandem_bench.modem.grammar import LineReader
from tandem_bench.modem.radio import Radio
from tandem_bench.modem.timeline import Timeline

QUICKEST_S, SLOWEST_S = 0.002, 0.040
"""Bounds of the time to answer."""
HOLD_SHARE, HOLD_S = 0.25, 1.1
"""This share of unsolicited lines is held back up to this long, so as to fall between the lines of an answer: they come at
any time in the field, but an answer is short, and by chance alone they would hardly ever meet."""
UNREAD_BYTES = 512
"""Unsolicited lines are left out while this much waits unread: a port that nobody reads must not fill with the past."""
WAITING_LINES = 8
RESTART_S = 3.0


class Agenda:
    """What is to be done when, run by whoever owns the clock. Times are seconds on that clock. Calls due at the same time run in the order
    they were put down."""

    def __init__(self) -> None:
        self._calls: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()

    def at(self, due_s: float, call: Callable[[], None]) -> None:
        """Run ``call`` once ``due_s`` has come."""
        heapq.heappush(self._calls, (due_s, next(self._order), call))

    def next_due_s(self) -> float | None:
        """When the next call is due; None when there is none."""
        return self._calls[0][0] if self._calls else None

    def run(self, now_s: float) -> None:
        """Run all calls that are due by ``now_s``, also those that they put down."""
        while self._calls and self._calls[0][0] <= now_s:
            heapq.heappop(self._calls)[2]()


class Wire(Protocol):
    """The port as the modem sees it."""

    def write(self, sent: bytes) -> None:
        """Send, or lose what does not fit."""

    def unread(self) -> int:
        """Bytes sent that the other side has not read."""

    def detach(self) -> None:
        """Drop off the bus: the other side sees a hang-up, the name is gone."""

    def attach(self) -> None:
        """Come back under another number."""


class Emulator:
    """See the module. ``clock`` gives seconds since the scenario's start; ``note`` is told of each fault that begins."""

    def __init__(
        self,
        family: Family,
        modem: Modem,
        timeline: Timeline,
        wire: Wire,
        agenda: Agenda,
        clock: Callable[[], float],
        chance: random.Random,
        note: Callable[[Fault], None],
    ) -> None:
        self.modem = modem
        self._family, self._timeline, self._wire, self._agenda = family, timeline, wire, agenda
        self._clock, self._chance, self._note = clock, chance, note
        self._reader = LineReader(family.line_bytes)
        self._waiting: deque[str | None] = deque(maxlen=WAITING_LINES)
        self._busy = False
        self._mode = "well"
        self._cure = b""
        self._turn = 0  # grows whenever what is under way is to be forgotten
        self._episodes: dict[str, int] = {}
        self._held: list[Callable[[], None]] = []
        self._own_sim = modem.imsi
        self._told = self._now()

    def start(self) -> None:
        """Say what a modem says after power-up, and begin to watch the radio."""
        self._say(self._family.boot(self.modem))
        self._await_change()
        self._await_beat()

    def received(self, data: bytes) -> None:
        """Bytes from the other side."""
        if self._mode == "hang" and self._cure and self._cure in data.upper():
            self._recover()
        if self._mode in ("hang", "away"):
            return
        if self._mode == "garbage":
            self._noise()
            return
        if self._busy and not self._family.queues:
            return
        if self.modem.echo:
            self._wire.write(data)
        for line in self._reader.feed(data):
            if self._busy:
                self._waiting.append(line)
            else:
                self._take(line)

    def play(self, fault: Fault) -> None:
        """Begin a fault; it ends by itself. The same fault again starts its time anew."""
        self._note(fault)
        self._episodes[fault.kind] = episode = self._episodes.get(fault.kind, 0) + 1
        begin, end = self._episode(fault)
        begin()

        def finish() -> None:
            if self._episodes[fault.kind] == episode:
                end()

        self._agenda.at(self._clock() + fault.seconds, finish)

    def _episode(self, fault: Fault) -> tuple[Callable[[], None], Callable[[], None]]:
        """What begins and what ends ``fault``."""
        if fault.kind == "disappear":
            return self._vanish, self._return
        if fault.kind == "wrong_sim":
            return partial(self._swap_sim, fault.how), partial(self._swap_sim, "ready")
        if fault.kind == "cme_error":
            return partial(self._ail, fault.code), partial(self._ail, None)
        self._cure = fault.cured_by.encode()
        return partial(self._fall, fault.kind), self._recover

    def power_cycle(self) -> None:
        """Off the bus and back, whatever state it was in: a hang does not outlive its power."""
        self._restart()

    # Commands

    def _now(self) -> Radio:
        return seen(self.modem, self._timeline.at(self._clock()))

    def _take(self, line: str | None) -> None:
        if line is not None and not line.strip():
            return
        self._busy = True
        wait = min(SLOWEST_S, QUICKEST_S + self._chance.gammavariate(2.0, 0.004))
        self._later(wait, lambda: self._run(line))

    def _later(self, wait_s: float, call: Callable[[], None]) -> None:
        """Run ``call`` after ``wait_s`` seconds unless a fault has swept the table by then."""
        turn = self._turn
        self._agenda.at(self._clock() + wait_s, lambda: call() if turn == self._turn else None)

    def _run(self, line: str | None) -> None:
        reply = answer(self._family, self.modem, self._timeline.at(self._clock()), line)
        if reply is None:
            self._next()
            return
        self.modem = reply.modem
        interrupted = self._chance.randint(1, len(reply.blocks))
        wait = reply.seconds
        for index, block in enumerate(reply.blocks):
            if index == interrupted:
                self._later(wait, self._release)
            self._later(wait, partial(self._wire.write, block.encode("latin-1", "replace")))
            gap = self._chance.uniform(0.0002, 0.003)
            wait += gap
        # Ready with the final result, not a moment later: some callers send the next command at once.
        self._later(wait - gap, self._restart if reply.restart else self._next)
        if interrupted == len(reply.blocks):
            self._later(wait, self._release)

    def _next(self) -> None:
        self._busy = False
        self._notice()
        if self._waiting:
            self._take(self._waiting.popleft())

    def _restart(self) -> None:
        self._vanish()
        self._later(RESTART_S, self._return)

    # Unasked

    def _say(self, lines: tuple[str, ...]) -> None:
        if self._mode != "well" or self._wire.unread() > UNREAD_BYTES:
            return
        for line in lines:
            self._wire.write(f"\r\n{line}\r\n".encode("latin-1", "replace"))

    def _notice(self) -> None:
        """Tell what changed in registration or cell since it was last told."""
        before, self._told = self._told, self._now()
        self._say(self._family.unsolicited(self.modem, before, self._told))

    def _unasked(self, speak: Callable[[], None]) -> None:
        """Speak now, or hold it back into an answer; what is said is as fresh as the moment it is said."""
        if self._chance.random() >= HOLD_SHARE:
            speak()
            return
        self._held.append(speak)
        self._agenda.at(self._clock() + HOLD_S, self._release)

    def _release(self) -> None:
        held, self._held = self._held, []
        for speak in held:
            speak()

    def _await_change(self) -> None:
        due = self._timeline.next_change_s(self._clock())
        if due is not None:
            self._agenda.at(due, self._changed)

    def _changed(self) -> None:
        self._unasked(self._notice)
        self._await_change()

    def _await_beat(self) -> None:
        if self._family.beat_s is not None:
            self._agenda.at(self._clock() + self._family.beat_s * self._chance.uniform(0.8, 1.2), self._beat)

    def _beat(self) -> None:
        self._unasked(lambda: self._say(self._family.beat(self.modem, self._now())))
        self._await_beat()

    # Faults

    def _sweep(self) -> None:
        """Forget what is under way: half a line, commands waiting, an answer half sent."""
        self._turn += 1
        self._busy = False
        self._waiting.clear()
        self._held.clear()
        self._reader.clear()

    def _fall(self, mode: str) -> None:
        if self._mode == "away":
            return  # what is not there cannot hang
        self._sweep()
        self._mode = mode
        if mode == "garbage":
            self._noise()
            self._babble()

    def _babble(self) -> None:
        def again() -> None:
            self._noise()
            self._babble()

        self._later(self._chance.uniform(0.05, 0.4), again)

    def _noise(self) -> None:
        self._wire.write(self._chance.randbytes(self._chance.randint(1, 60)))

    def _recover(self) -> None:
        if self._mode in ("away", "well"):
            return
        self._sweep()
        self._mode = "well"
        self._notice()

    def _vanish(self) -> None:
        self._sweep()
        if self._mode != "away":
            self._wire.detach()
        self._mode = "away"

    def _return(self) -> None:
        if self._mode != "away":
            return
        self._sweep()
        self._mode = "well"
        self.modem = self.modem.restarted()
        self._told = self._now()
        self._wire.attach()
        self._say(self._family.boot(self.modem))

    def _swap_sim(self, sim: Sim) -> None:
        foreign = "99999" + self._own_sim[5:]
        self.modem = replace(self.modem, sim=sim, imsi=foreign if sim == "foreign" else self._own_sim)
        self._say(self._family.sim_changed(self.modem))
        self._notice()

    def _ail(self, code: int | None) -> None:
        self.modem = replace(self.modem, failing=code)
