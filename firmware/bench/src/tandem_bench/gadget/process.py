"""One modem on USB as a process: gadget, two AT ports, control socket, clock and log around one ``UsbModem``."""

from __future__ import annotations

import json
import random
import selectors
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from tandem_bench.gadget.device import Device
from tandem_bench.gadget.modem import UsbModem
from tandem_bench.gadget.terminal import Terminal
from tandem_bench.modem import faults
from tandem_bench.modem.agenda import Agenda
from tandem_bench.modem.control import Control
from tandem_bench.modem.faults import Fault, FaultError
from tandem_bench.modem.process import Setup, catch_signals, modem, plan, truth


@dataclass(frozen=True)
class UsbSetup:
    """``radio``: as for a modem on a pseudo-terminal, its ``link`` not looked at. ``netns_pid``: a process in the network
    namespace that gets our network device; None: it stays where it is."""

    radio: Setup
    device: Device
    netns_pid: int | None = None


def run(setup: UsbSetup, ready: Callable[[str], None]) -> int:
    """Be that modem until SIGTERM or SIGINT, whose number is returned. ``ready`` is called with the name of our network device
    (or ``-``) when the modem is plugged in and answers.

    GadgetError and ControlError when the environment refuses; the gadget is taken away in any case. Main thread only.
    """
    radio, device = setup.radio, setup.device
    agenda = Agenda()
    caught: list[int] = []

    def clock() -> float:
        return (time.monotonic_ns() - radio.epoch_ns) / 1e9

    def later(seconds: float, call: Callable[[], None]) -> None:
        agenda.at(clock() + seconds, call)

    with ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        catch_signals(stack, selector, caught)
        log = stack.enter_context(radio.json_log.open("a", encoding="utf-8")) if radio.json_log else None

        def note(fault: Fault) -> None:
            if log:
                log.write(json.dumps(truth(radio, clock(), fault)) + "\n")
                log.flush()

        device.make()
        stack.callback(device.remove)

        def hand_on(number: int, received: bytes) -> None:
            usb.ports[number].received(received)

        terminals = [
            Terminal(path, selector, partial(hand_on, number), later) for number, path in enumerate(device.terminals())
        ]
        for terminal in terminals:
            stack.callback(terminal.close)
            terminal.open()
        chance = random.Random(f"modem {radio.operator} {radio.seed}")
        usb = UsbModem(radio.family, modem(radio), radio.timeline, terminals, device, agenda, clock, chance, note)
        if radio.control:
            stack.callback(Control(radio.control, selector, lambda wish: _obey(usb, wish)).close)
        usb.start()
        interface = device.interface() if setup.netns_pid is None else device.move_interface(setup.netns_pid)
        plan(radio, agenda, clock(), usb.play)
        ready(interface or "-")
        while not caught:
            due = agenda.next_due_s()
            for key, _ in selector.select(None if due is None else max(0.0, due - clock())):
                key.data()
            agenda.run(clock())
    return caught[0]


def _obey(usb: UsbModem, wish: object) -> None:
    """A fault, ``{"rrc": "connected"|"idle"}``, or ``{"usb": "unplug"|"plug"}``."""
    if isinstance(wish, dict) and set(wish) == {"rrc"}:
        if wish["rrc"] not in ("connected", "idle"):
            raise FaultError(f"rrc is {wish['rrc']!r}; known: connected, idle")
        usb.connected(wish["rrc"] == "connected")
    elif isinstance(wish, dict) and set(wish) == {"usb"}:
        if wish["usb"] not in ("unplug", "plug"):
            raise FaultError(f"usb is {wish['usb']!r}; known: unplug, plug")
        usb.pull() if wish["usb"] == "unplug" else usb.put()
    else:
        usb.play(faults.parse(wish))
