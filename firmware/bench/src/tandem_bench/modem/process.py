"""One emulated modem as a process: its port and its surroundings around one ``Emulator``."""

from __future__ import annotations

import selectors
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from tandem_bench.modem.emulator import Emulator
from tandem_bench.modem.port import Port
from tandem_bench.modem.setup import Setup, modem
from tandem_bench.modem.socket_port import SocketPort
from tandem_bench.modem.surroundings import Surroundings


def run(setup: Setup, ready: Callable[[], None]) -> int:
    """Be that modem until SIGTERM or SIGINT, whose number is returned. ``ready`` is called when the port answers.

    PortError and ControlError when the environment refuses. Main thread only (signal handlers, put back at the end).
    """
    with ExitStack() as stack:
        around = Surroundings(setup, stack)
        port = _port(setup, around.selector, lambda received: emulator.received(received))
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


def _port(setup: Setup, selector: selectors.BaseSelector, received: Callable[[bytes], None]) -> Port | SocketPort:
    if setup.socket is not None:
        return SocketPort(setup.socket, selector, received)
    return Port(setup.link, setup.port_mode, selector, received)
