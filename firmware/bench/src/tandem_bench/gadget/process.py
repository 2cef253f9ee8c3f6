"""One modem on USB as a process: gadget, two AT ports and their surroundings around one ``UsbModem``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial

from tandem_bench.gadget.device import Device
from tandem_bench.gadget.modem import UsbModem
from tandem_bench.gadget.terminal import Terminal
from tandem_bench.modem.setup import Setup, modem
from tandem_bench.modem.surroundings import Surroundings


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
    with ExitStack() as stack:
        around = Surroundings(radio, stack)
        device.make()
        stack.callback(device.remove)

        def hand_on(number: int, received: bytes) -> None:
            usb.ports[number].received(received)

        terminals = [
            Terminal(path, around.selector, partial(hand_on, number), around.later)
            for number, path in enumerate(device.terminals())
        ]
        for terminal in terminals:
            stack.callback(terminal.close)
            terminal.open()
        usb = UsbModem(
            radio.family,
            modem(radio),
            radio.timeline,
            terminals,
            device,
            around.agenda,
            around.clock,
            around.chance,
            around.note,
        )
        rrc = {"connected": lambda: usb.connected(True), "idle": lambda: usb.connected(False)}
        around.control(usb.play, {"rrc": rrc, "usb": {"unplug": usb.pull, "plug": usb.put}})
        usb.start()
        interface = device.interface() if setup.netns_pid is None else device.move_interface(setup.netns_pid)
        around.plan(usb.play)
        ready(interface or "-")
        return around.serve()
