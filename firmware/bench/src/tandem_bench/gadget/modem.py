"""One modem with two AT ports: each has its own dialogue, both have one SIM, one radio and one plug."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Protocol

from tandem_bench.modem.dialogue import Family, Modem
from tandem_bench.modem.emulator import RESTART_S, Agenda, Emulator
from tandem_bench.modem.faults import LONGEST_S, Fault
from tandem_bench.modem.timeline import Timeline

SHARED = ("imsi", "sim", "failing", "connected", "cfun")
"""Fields of ``Modem`` that are the whole modem's; echo, +CMEE and what is reported unasked are each port's own."""


class Line(Protocol):
    """One port's wire."""

    def write(self, sent: bytes) -> None:
        """Send, or lose what does not fit."""

    def unread(self) -> int:
        """Bytes sent that the other side has not read."""


class Plug(Protocol):
    """The modem's USB connector."""

    def plug(self) -> None:
        """Put it in; nothing when it is in."""

    def unplug(self) -> None:
        """Pull it out; nothing when it is out."""


class _Port(Emulator):
    """One port's dialogue. Its ``modem`` is its own settings with what the ``whole`` modem shares laid over."""

    def __init__(self, whole: dict[str, Any], *given: Any) -> None:  # noqa: ANN401 - as Emulator's
        self._whole = whole
        super().__init__(*given)

    @property
    def modem(self) -> Modem:
        """See the class."""
        return replace(self._own, **self._whole)

    @modem.setter
    def modem(self, modem: Modem) -> None:
        self._own = modem
        self._whole |= {name: getattr(modem, name) for name in SHARED}


class _Wire:
    """A port's line, whose detaching pulls the whole modem off the bus."""

    def __init__(self, line: Line, number: int, modem: UsbModem) -> None:
        self._line, self._number, self._modem = line, number, modem

    def write(self, sent: bytes) -> None:
        self._line.write(sent)

    def unread(self) -> int:
        return self._line.unread()

    def detach(self) -> None:
        self._modem.leaves(self._number)

    def attach(self) -> None:
        self._modem.comes()


class UsbModem:
    """The ports' dialogues over ``lines``, at one ``plug``. ``note`` is told of each fault that begins, once."""

    def __init__(
        self,
        family: Family,
        modem: Modem,
        timeline: Timeline,
        lines: Sequence[Line],
        plug: Plug,
        agenda: Agenda,
        clock: Callable[[], float],
        chance: random.Random,
        note: Callable[[Fault], None],
    ) -> None:
        whole: dict[str, Any] = {}
        self._plug, self._note = plug, note
        self._away = self._all = False
        wires = [_Wire(line, number, self) for number, line in enumerate(lines)]
        own = (random.Random(chance.random()) for _ in wires)
        self.ports = [
            _Port(whole, family, modem, timeline, wire, agenda, clock, mine, lambda _fault: None)
            for wire, mine in zip(wires, own, strict=True)
        ]

    def start(self) -> None:
        """Plug it in, and say what a modem says after power-up."""
        self._plug.plug()
        for port in self.ports:
            port.start()

    def connected(self, yes: bool) -> None:
        """Whether the bearer carries traffic, which the radio does not tell."""
        self.ports[0].modem = replace(self.ports[0].modem, connected=yes)

    def play(self, fault: Fault) -> None:
        """Begin a fault on all ports; ``disappear`` is a power cycle that lasts as long as it says."""
        self._note(fault)
        self._everywhere(fault)

    def pull(self) -> None:
        """Unplug it until ``put``; a modem that lives from USB power forgets its settings."""
        self.play(Fault("disappear", LONGEST_S))

    def put(self) -> None:
        """Plug it in again."""
        self._everywhere(Fault("disappear", 0.0))

    def _everywhere(self, fault: Fault) -> None:
        self._all = True
        for port in self.ports:
            port.play(fault)
        self._all = False

    def leaves(self, number: int) -> None:
        """The dialogue of port ``number`` drops off: in a fault of all, or by AT+CFUN=1,1, and then the others follow."""
        if self._away:
            return
        self._away = True
        self._plug.unplug()
        if not self._all:
            for other, port in enumerate(self.ports):
                if other != number:
                    port.play(Fault("disappear", RESTART_S))

    def comes(self) -> None:
        """The first dialogue that is back plugs the modem in."""
        if self._away:
            self._away = False
            self._plug.plug()
