"""One emulated modem as a process: what it is given, who it then is, its port, and what is around any modem: clock, agenda, schedule of
faults, their log, control socket, signals, the loop."""

from __future__ import annotations

import json
import random
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from tandem_bench.modem import faults
from tandem_bench.modem.control import Control
from tandem_bench.modem.dialogue import Family, Modem
from tandem_bench.modem.emulator import Agenda, Emulator
from tandem_bench.modem.faults import Fault, FaultError
from tandem_bench.modem.port import Port, SocketPort
from tandem_bench.modem.timeline import Timeline

Wishes = Mapping[str, Mapping[str, Callable[[], None]]]
"""What may be asked beside faults: ``{"power": {"cycle": call}}`` for ``{"power": "cycle"}``."""


@dataclass(frozen=True)
class Setup:
    """What one modem process is given. ``epoch_ns``: CLOCK_MONOTONIC at the scenario's start. ``port_mode``: of the terminal.
    ``socket``: name of an abstract socket to be reached by, then there is no terminal and ``link`` is not made."""

    family: Family
    timeline: Timeline
    operator: str
    epoch_ns: int
    link: Path
    imei: str
    seed: int
    echo: bool = True
    control: Path | None = None
    json_log: Path | None = None
    port_mode: int = 0o660
    socket: str | None = None
    schedule: Iterable[tuple[float, Fault]] = field(default_factory=tuple)


def made_up_imei(operator: str, seed: int) -> str:
    """An IMEI that no real modem has: test equipment starts with 00 (3GPP TS 23.003 6.2), the last digit checks (Luhn)."""
    digits = "00440101" + f"{random.Random(f'imei {operator} {seed}').randrange(10**6):06d}"
    return digits + luhn(digits)


def luhn(digits: str) -> str:
    """The check digit for ``digits``: every second digit from the right is doubled."""
    doubled = [int(d) * (2 if i % 2 == 0 else 1) for i, d in enumerate(reversed(digits))]
    return str(-sum(d // 10 + d % 10 for d in doubled) % 10)


def modem(setup: Setup) -> Modem:
    """The modem's identity: IMSI and card number follow from operator, home network and seed."""
    number = random.Random(f"sim {setup.operator} {setup.seed}").randrange(10**9)
    plmn = setup.timeline.home_plmn
    card = f"8999{plmn:0<6}{number:08d}"[:18]
    return Modem(
        imei=setup.imei,
        imsi=f"{plmn}{number:010d}"[:15],
        iccid=card + luhn(card),
        operator=setup.operator,
        home_plmn=plmn,
        powers_up_echoing=setup.echo,
        echo=setup.echo,
    )


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


def run(setup: Setup, ready: Callable[[], None]) -> int:
    """Be that modem until SIGTERM or SIGINT, whose number is returned. ``ready`` is called when the port answers.

    PortError and ControlError when the environment refuses. Main thread only (signal handlers, put back at the end).
    """
    with ExitStack() as stack:
        around = Surroundings(setup, stack)

        def received(data: bytes) -> None:
            emulator.received(data)

        port: Port | SocketPort
        if setup.socket is not None:
            port = SocketPort(setup.socket, around.selector, received)
        else:
            port = Port(setup.link, setup.port_mode, around.selector, received)
        emulator = Emulator(
            setup.family, modem(setup), setup.timeline, port, around.agenda, around.clock, around.chance, around.note
        )

        def rrc(connected: bool) -> None:
            """Whether the bearer carries traffic, which the radio does not tell."""
            emulator.modem = replace(emulator.modem, connected=connected)

        rrc_words = {"connected": lambda: rrc(True), "idle": lambda: rrc(False)}
        # Off and on again ends any hang.
        around.control(emulator.play, {"rrc": rrc_words, "power": {"cycle": emulator.power_cycle}})
        stack.callback(port.close)
        port.attach()
        emulator.start()
        around.plan(emulator.play)
        ready()
        return around.serve()
