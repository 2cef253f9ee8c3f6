"""One modem in ModemManager over all its lives there: found by device, kept enabled and measuring, asked once a poll."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tandem.at.errors import NoAnswer, PortLost
from tandem.modem.base import Identity
from tandem.modem.mm_bus import (
    LOCATION,
    MODEM,
    MODEM_3GPP,
    OBJECTS,
    PROFILES,
    ROOT,
    SERVICE,
    SIGNAL,
    Bus,
    BusLost,
    Call,
    NoReply,
    Refused,
    ask,
    gather,
    get_all,
)
from tandem.modem.mm_decode import DISABLED, ENABLED, LAC_CI, Told

log = logging.getLogger(__name__)

RATE_S = 1
"""How often ModemManager refreshes the levels: its shortest, whole seconds."""

QUIET_S = 5.0
"""ModemManager says nothing when nothing changed, and nothing either when the modem is dead: it goes on showing the last levels.
After this long without a change the modem itself is asked something (its list of profiles: +CGDCONT? or the like)."""

PROOF_S = 5.0
"""How long the modem has for the answer."""

AGAIN_S = 10.0
"""Between attempts to switch a modem on that could not be."""


@dataclass(frozen=True)
class Answer:
    """What one poll got. ``changes``: how often the levels were refreshed with something new since the modem was found."""

    path: str
    told: Told
    changes: int


class ManagedModem:
    """``device``: ModemManager's ``Device`` property (a sysfs path), or its last part, the USB path (``1-1.2``). Object numbers
    change at each start and replug and are never used to name one. Without ``measuring`` only its state and registration are asked,
    which ModemManager knows without asking the modem. Owned by one thread."""

    def __init__(
        self,
        device: str,
        open_bus: Callable[[], Bus],
        clock: Callable[[], float] = time.monotonic,
        measuring: bool = True,
    ) -> None:
        self._device, self._open_bus, self._clock, self._measuring = device, open_bus, clock, measuring
        self.bus: Bus | None = None
        self.path: str | None = None
        self.identity = Identity()
        self._pending: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._never: set[str] = set()
        self._cells: list[dict[str, Any]] = []
        self._changes = 0
        self._changed_s = self._proof_s = 0.0
        self._dead: str | None = None

    def poll(self, until: float) -> Answer:
        """Ask for everything. NoAnswer: no bus, no ModemManager, no reply, or a modem that ModemManager cannot reach itself.
        PortLost: ModemManager has no such modem."""
        try:
            return self._poll(until)
        except BusLost as error:
            self.close()
            raise NoAnswer(str(error)) from error
        except NoReply as error:
            raise NoAnswer(str(error)) from error
        except Refused as error:
            self._lost()
            if error.no_service:
                raise NoAnswer("ModemManager is not on the bus") from error
            if error.no_such_thing:
                raise PortLost(f"ModemManager no longer has {self._device}") from error
            raise NoAnswer(str(error)) from error

    def switch(self, until: float) -> None:
        """Off and on again; NoAnswer when ModemManager does not do it by ``until``, PortLost when it has no such modem."""
        if self.bus is None or self.path is None:
            raise PortLost(f"ModemManager has no modem {self._device}")
        try:
            for on in (False, True):
                ask(self.bus, Call(self.path, MODEM, "Enable", "b", (on,)), until)
        except BusLost as error:
            self.close()
            raise NoAnswer(str(error)) from error
        except (NoReply, Refused) as error:
            raise NoAnswer(str(error)) from error

    def close(self) -> None:
        """Hang up."""
        if self.bus is not None:
            self.bus.close()
            self.bus = None
        self._lost()

    def begin(self, what: str, call: Call) -> None:
        """Begin something slow under a name; ``outcome`` tells when it is done. One at a time of each name."""
        if self.bus is not None and what not in self._pending:
            self._pending[what] = self.bus.begin(call)

    def pending(self, what: str) -> bool:
        """Whether it was begun and is not over."""
        return what in self._pending

    def outcome(self, what: str) -> Any | Refused | None:  # noqa: ANN401 - as Bus.outcome
        """Its outcome, once; None while there is none."""
        if self.bus is None or what not in self._pending:
            return None
        found = self.bus.outcome(self._pending[what])
        if found is not None:
            del self._pending[what]
        return found

    def _poll(self, until: float) -> Answer:
        if self.bus is None:
            self.bus = self._open_bus()
        self._heed()
        path = self.path or self._find(self.bus, until)
        names = (MODEM, MODEM_3GPP, SIGNAL, LOCATION) if self._measuring else (MODEM, MODEM_3GPP)
        told_of = dict(zip(names, gather(self.bus, [get_all(path, name) for name in names], until), strict=True))
        modem, location = told_of[MODEM], told_of.get(LOCATION, {})
        if isinstance(modem, Refused):
            raise modem
        rest = (told_of.get(name, {}) for name in (MODEM_3GPP, SIGNAL))
        told = Told(modem, *({} if isinstance(one, Refused) else one for one in rest))
        if modem.get("State", 0) >= ENABLED:
            if not self._measuring:
                return Answer(path, told, self._changes)
            where = {} if isinstance(location, Refused) else location
            self._measure(path, told, where)
            told = Told(
                told.modem, told.registration, told.signal, self._location(path, where, until), self._cell_info(path)
            )
            self._prove(path)
        elif modem.get("State") == DISABLED:
            self._once_in_a_while("Enable", Call(path, MODEM, "Enable", "b", (True,)))
        self._heed()
        if self._dead is not None:
            raise NoAnswer(self._dead)
        return Answer(path, told, self._changes)

    def _find(self, bus: Bus, until: float) -> str:
        found = ask(bus, Call(ROOT, OBJECTS, "GetManagedObjects"), until)
        for path, interfaces in found.items():
            properties = interfaces.get(MODEM, {})
            device = properties.get("Device", "")
            if device and self._device in (device, device.rsplit("/", 1)[-1]):
                self.path = str(path)
                self._changed_s = self._clock()
                self.identity = Identity(
                    *(str(properties.get(k, ""))[:64] for k in ("Manufacturer", "Model", "Revision"))
                )
                log.info("%s: ModemManager has it as %s", self._device, path)
                return self.path
        raise PortLost(f"ModemManager has no modem {self._device}")

    def _heed(self) -> None:
        """What was broadcast: levels that changed, the modem or ModemManager itself going away."""
        for signal in self.bus.signals() if self.bus is not None else ():
            if signal.member == "NameOwnerChanged" and signal.body[:1] == (SERVICE,):
                log.warning("%s: ModemManager %s", self._device, "is there anew" if signal.body[2] else "has gone")
                self._lost()
            elif signal.member == "InterfacesRemoved" and signal.body[:1] == (self.path,) and MODEM in signal.body[1]:
                self._lost()
            elif signal.path == self.path and signal.member == "PropertiesChanged" and signal.body[:1] == (SIGNAL,):
                self._changes += 1
                self._changed_s = self._clock()
                self._dead = None

    def _measure(self, path: str, told: Told, location: dict[str, Any]) -> None:
        """Have levels refreshed and the cell told; asked for again whenever it is not so: after a restart, a replug, or somebody
        else's change. What others enabled of the location stays."""
        if told.signal and told.signal.get("Rate") != RATE_S:
            self._once_in_a_while("Signal", Call(path, SIGNAL, "Setup", "u", (RATE_S,)))
        sources = location.get("Enabled", 0)
        if location and not sources & LAC_CI:
            shown = bool(location.get("SignalsLocation", False))
            self._once_in_a_while("Location", Call(path, LOCATION, "Setup", "ub", (sources | LAC_CI, shown)))

    def _location(self, path: str, location: dict[str, Any], until: float) -> dict[int, Any]:
        """Where the modem is registered. Asked by method: the property is empty unless it is broadcast to every user."""
        if self.bus is None or "GetLocation" in self._never or not location.get("Enabled", 0) & LAC_CI:
            return {}
        found = gather(self.bus, [Call(path, LOCATION, "GetLocation")], until)[0]
        if isinstance(found, Refused):
            if found.never or found.denied:
                self._refused("GetLocation", found)
            return {}
        return dict(found)

    def _cell_info(self, path: str) -> list[dict[str, Any]]:
        """The answer to the question of the poll before: modems take their time over it, and the poll does not wait."""
        answer = self.outcome("GetCellInfo")
        self._cells = [] if answer is None or isinstance(answer, Refused) else list(answer)
        if isinstance(answer, Refused) and (answer.never or answer.denied):
            self._refused("GetCellInfo", answer)
        if "GetCellInfo" not in self._never:
            self.begin("GetCellInfo", Call(path, MODEM, "GetCellInfo"))
        return self._cells

    def _prove(self, path: str) -> None:
        """When the levels have long been the same, have the modem itself asked; ``_dead`` says that it did not answer."""
        now = self._clock()
        answer = self.outcome("proof")
        if isinstance(answer, Refused) and not answer.by_modem:
            if answer.never or answer.denied:
                self._refused("proof", answer)
            else:
                self._dead = f"ModemManager cannot reach the modem: {answer.text}"
        elif answer is not None:
            self._dead = None
            self._changed_s = now
        elif self.pending("proof") and now - self._proof_s > PROOF_S and self._changed_s < self._proof_s:
            self._dead = f"the modem did not answer ModemManager within {PROOF_S:g} s"
        if now - self._changed_s > QUIET_S and "proof" not in self._never and not self.pending("proof"):
            self._proof_s = now
            self.begin("proof", Call(path, PROFILES, "List"))

    def _once_in_a_while(self, what: str, call: Call) -> None:
        """Begin it unless it is under way, was refused a moment ago, or can never be had."""
        answer = self.outcome(what)
        if isinstance(answer, Refused):
            if answer.never:
                self._refused(what, answer)
            elif what not in self._not_before:
                mend = "; mend: install the polkit rule" if answer.denied else ""
                log.warning("%s: ModemManager refuses %s: %s%s", self._device, what, answer, mend)
            self._not_before[what] = self._clock() + AGAIN_S
        if what not in self._never and self._clock() >= self._not_before.get(what, 0.0):
            self.begin(what, call)

    def _refused(self, what: str, why: Refused) -> None:
        self._never.add(what)
        log.warning("%s: ModemManager will not do %s: %s", self._device, what, why)

    def _lost(self) -> None:
        """The object is gone: its number, what was asked of it and what was learnt of it."""
        for number in self._pending.values():
            if self.bus is not None:
                self.bus.forget(number)
        self.path, self._dead = None, None
        self._pending.clear()
        self._not_before.clear()
        self._never.clear()
        self._cells = []
