"""One emulated modem as a process: port, control socket, clock, fault schedule and log around one ``Emulator``."""

from __future__ import annotations

import json
import random
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from tandem_bench.modem import faults
from tandem_bench.modem.agenda import Agenda
from tandem_bench.modem.control import Control
from tandem_bench.modem.dialogue import Family, Modem
from tandem_bench.modem.emulator import Emulator
from tandem_bench.modem.faults import Fault, FaultError
from tandem_bench.modem.port import Port
from tandem_bench.modem.socket_port import SocketPort
from tandem_bench.modem.timeline import Timeline


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


def run(setup: Setup, ready: Callable[[], None]) -> int:
    """Be that modem until SIGTERM or SIGINT, whose number is returned. ``ready`` is called when the port answers.

    PortError and ControlError when the environment refuses. Main thread only (signal handlers, put back at the end).
    """
    agenda = Agenda()
    caught: list[int] = []

    def clock() -> float:
        return (time.monotonic_ns() - setup.epoch_ns) / 1e9

    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        catch_signals(stack, selector, caught)
        log = stack.enter_context(setup.json_log.open("a", encoding="utf-8")) if setup.json_log else None

        def note(fault: Fault) -> None:
            if log:
                log.write(json.dumps(truth(setup, clock(), fault)) + "\n")
                log.flush()

        port = _port(setup, selector, lambda received: emulator.received(received))
        chance = random.Random(f"modem {setup.operator} {setup.seed}")
        emulator = Emulator(setup.family, modem(setup), setup.timeline, port, agenda, clock, chance, note)
        if setup.control:
            stack.callback(Control(setup.control, selector, lambda wish: _obey(emulator, wish)).close)
        stack.callback(port.close)
        port.attach()
        emulator.start()
        plan(setup, agenda, clock(), emulator.play)
        ready()
        while not caught:
            due = agenda.next_due_s()
            for key, _ in selector.select(None if due is None else max(0.0, due - clock())):
                key.data()
            agenda.run(clock())
    return caught[0]


def _port(setup: Setup, selector: selectors.BaseSelector, received: Callable[[bytes], None]) -> Port | SocketPort:
    if setup.socket is not None:
        return SocketPort(setup.socket, selector, received)
    return Port(setup.link, setup.port_mode, selector, received)


def plan(setup: Setup, agenda: Agenda, now_s: float, play: Callable[[Fault], None]) -> None:
    """Put down the scheduled faults; of one that should be under way already, the rest."""
    for t_s, fault in setup.schedule:
        left = fault.seconds - max(0.0, now_s - t_s)
        if left > 0:
            agenda.at(t_s, partial(play, replace(fault, seconds=left)))


def _obey(emulator: Emulator, wish: object) -> None:
    """A fault; ``{"rrc": "connected"|"idle"}``: whether the bearer carries traffic, which the radio does not tell; or
    ``{"power": "cycle"}``: off and on again, which ends any hang."""
    if isinstance(wish, dict) and set(wish) == {"power"}:
        if wish["power"] != "cycle":
            raise FaultError(f"power is {wish['power']!r}; known: cycle")
        emulator.power_cycle()
    elif isinstance(wish, dict) and set(wish) == {"rrc"}:
        if wish["rrc"] not in ("connected", "idle"):
            raise FaultError(f"rrc is {wish['rrc']!r}; known: connected, idle")
        emulator.modem = replace(emulator.modem, connected=wish["rrc"] == "connected")
    else:
        emulator.play(faults.parse(wish))


def truth(setup: Setup, t_s: float, fault: Fault) -> dict[str, object]:
    """A line of truth.jsonl (server/spec/campaign-folder.md)."""
    return {
        "t_s": round(t_s, 3),
        "monotonic_ns": time.monotonic_ns(),
        "utc_ns": time.time_ns(),
        "type": "fault",
        "operator": setup.operator,
        "fault": fault.kind,
        "seconds": fault.seconds,
    }


def catch_signals(stack: ExitStack, selector: selectors.BaseSelector, caught: list[int]) -> None:
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
