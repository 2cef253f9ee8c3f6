"""What is around any emulated modem in its process: clock, agenda, schedule of faults, their log, control socket, signals, the loop."""

from __future__ import annotations

import json
import random
import selectors
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from types import FrameType

from tandem_bench.modem import faults
from tandem_bench.modem.agenda import Agenda
from tandem_bench.modem.control import Control
from tandem_bench.modem.faults import Fault, FaultError
from tandem_bench.modem.setup import Setup

Wishes = Mapping[str, Mapping[str, Callable[[], None]]]
"""What may be asked beside faults: ``{"power": {"cycle": call}}`` for ``{"power": "cycle"}``."""


class Surroundings:
    """Made in the main thread; what it makes is undone by ``stack``. ``chance`` is the modem's own."""

    def __init__(self, setup: Setup, stack: ExitStack) -> None:
        self._setup, self._stack = setup, stack
        self._caught: list[int] = []
        self.agenda = Agenda()
        self.selector = stack.enter_context(selectors.DefaultSelector())
        _catch_signals(stack, self.selector, self._caught)
        self._log = stack.enter_context(setup.json_log.open("a", encoding="utf-8")) if setup.json_log else None
        self.chance = random.Random(f"modem {setup.operator} {setup.seed}")

    def clock(self) -> float:
        """Seconds since the scenario's start."""
        return (time.monotonic_ns() - self._setup.epoch_ns) / 1e9

    def later(self, seconds: float, call: Callable[[], None]) -> None:
        """Call it in so many seconds."""
        self.agenda.at(self.clock() + seconds, call)

    def note(self, fault: Fault) -> None:
        """A fault begins: a line of truth.jsonl (docs/reference/campaign-folder.md)."""
        if self._log:
            self._log.write(json.dumps(_truth(self._setup, self.clock(), fault)) + "\n")
            self._log.flush()

    def control(self, play: Callable[[Fault], None], wishes: Wishes) -> None:
        """Open the control socket, where one is wanted. It takes faults and ``wishes``; ControlError when it cannot be made."""
        if self._setup.control:
            opened = Control(self._setup.control, self.selector, lambda wish: obey(wish, play, wishes))
            self._stack.callback(opened.close)

    def plan(self, play: Callable[[Fault], None]) -> None:
        """Put down the scheduled faults; of one that should be under way already, the rest."""
        now_s = self.clock()
        for t_s, fault in self._setup.schedule:
            left = fault.seconds - max(0.0, now_s - t_s)
            if left > 0:
                self.agenda.at(t_s, partial(play, replace(fault, seconds=left)))

    def serve(self) -> int:
        """Do what is due and what comes until SIGTERM or SIGINT, whose number is returned."""
        while not self._caught:
            due = self.agenda.next_due_s()
            for key, _ in self.selector.select(None if due is None else max(0.0, due - self.clock())):
                key.data()
            self.agenda.run(self.clock())
        return self._caught[0]


def obey(wish: object, play: Callable[[Fault], None], wishes: Wishes) -> None:
    """Do what a decoded line of the control socket asks: one of ``wishes``, else a fault. FaultError when it is neither."""
    if isinstance(wish, dict) and len(wish) == 1:
        ((name, word),) = wish.items()
        if name in wishes:
            call = wishes[name].get(word) if isinstance(word, str) else None
            if call is None:
                raise FaultError(f"{name} is {word!r}; known: {', '.join(wishes[name])}")
            call()
            return
    play(faults.parse(wish))


def _truth(setup: Setup, t_s: float, fault: Fault) -> dict[str, object]:
    return {
        "t_s": round(t_s, 3),
        "monotonic_ns": time.monotonic_ns(),
        "utc_ns": time.time_ns(),
        "type": "fault",
        "operator": setup.operator,
        "fault": fault.kind,
        "seconds": fault.seconds,
    }


def _catch_signals(stack: ExitStack, selector: selectors.BaseSelector, caught: list[int]) -> None:
    """SIGTERM and SIGINT end the loop: the handler takes note, a byte on a socket wakes the selector."""
    ours, theirs = socket.socketpair()
    stack.callback(ours.close)
    stack.callback(theirs.close)
    ours.setblocking(False)
    theirs.setblocking(False)
    selector.register(ours, selectors.EVENT_READ, lambda: ours.recv(16))
    stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(theirs.fileno()))

    def take_note(number: int, _frame: FrameType | None) -> None:
        caught.append(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        stack.callback(signal.signal, number, signal.signal(number, take_note))
