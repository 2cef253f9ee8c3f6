"""A modem through ModemManager: what is asked of it and what that tells, as a reading. Names and meanings as in its D-Bus reference,
version 1.20 and later."""

from __future__ import annotations

import logging
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tandem.at.dialogue import NoAnswer, PortLost
from tandem.modem.base import Identity, Reading
from tandem.modem.mm_bus import (
    LOCATION,
    MODEM,
    MODEM_3GPP,
    OBJECTS,
    PROFILES,
    ROOT,
    SERVICE,
    SIGNAL,
    SIM,
    Bus,
    BusError,
    BusLost,
    Call,
    NoReply,
    Refused,
    ask,
    gather,
    get_all,
    system_bus,
)
from tandem.modem.scales import first, hexadecimal, plmn
from tandem.modem.sim import READY, WANTS_PIN, Card, HomeNetwork

Properties = Mapping[str, Any]

LOCKED, FAILED, DISABLED, ENABLED, SEARCHING, REGISTERED, CONNECTED = 2, -1, 3, 6, 7, 8, 11
"""MMModemState, where they matter here."""

FAILED_REASONS = {1: "unknown", 2: "sim_missing", 3: "sim_error", 4: "unknown_capabilities", 5: "esim_without_profiles"}
"""MMModemStateFailedReason."""

_GSM, _UMTS = 0b11110, 0b1111100000
_LTE, _NR, _CAT_M, _NB_IOT = 1 << 14, 1 << 15, 1 << 16, 1 << 17
"""MMModemAccessTechnology: GSM, compact, GPRS, EDGE; UMTS, HSDPA, HSUPA, HSPA, HSPA+; and those of 4G and 5G."""

_HOME = (1, 5, 6, 7, 9, 10)
_STATES = {0: "no_service", 2: "searching", 3: "limited", 4: "no_service", 8: "limited", 11: "limited"}
"""MMModem3gppRegistrationState, which numbers as <stat> of +CEREG (3GPP TS 27.007 clause 10.1.22)."""

_CELL_GSM, _CELL_UMTS, _CELL_LTE, _CELL_NR = 2, 3, 5, 6
"""MMCellType."""

LAC_CI = 1
"""MMModemLocationSource: the serving cell."""


@dataclass(frozen=True)
class ModemProperties:
    """One poll's answers. ``location``: by source; ``cells``: empty where GetCellInfo does not exist."""

    modem: Properties = field(default_factory=dict)
    registration: Properties = field(default_factory=dict)
    signal: Properties = field(default_factory=dict)
    location: Mapping[int, Any] = field(default_factory=dict)
    cells: Sequence[Properties] = ()


def decode(properties: ModemProperties) -> Reading:
    """The reading. ModemManager's "connected" is a bearer's state and not RRC's: a registered modem's state is ``unknown``.

    Levels are the modem's own numbers as ModemManager gives them, up to a second (its refresh) older than the poll.
    """
    rat = technology(_whole(properties.modem, "AccessTechnologies") or 0)
    cell = _serving(properties.cells, rat)
    where = place(properties.location.get(LAC_CI))
    network = _plmn(properties.registration.get("OperatorCode")) or where.plmn
    old = rat in ("GSM", "WCDMA")
    return Reading(
        state=_state(properties),
        rat=rat,
        plmn=network,
        tac=None if old else first(cell.tac, where.tac),
        eci=None if old else first(cell.ci, where.ci),
        lac=first(cell.lac, where.lac) if old else None,
        ci=first(cell.ci, where.ci) if old else None,
        pci=cell.pci,
        earfcn=cell.earfcn,
        **_levels(properties.signal, rat, cell),
    )


def technology(bits: int) -> str | None:
    """The radio technology in MMModemAccessTechnology's bits: the newest, LTE with NR being the dual connectivity of NSA."""
    if bits & _NR:
        return "NR-NSA" if bits & _LTE else "NR-SA"
    for mask, rat in ((_NB_IOT, "NB-IOT"), (_CAT_M, "CAT-M"), (_LTE, "LTE"), (_UMTS, "WCDMA"), (_GSM, "GSM")):
        if bits & mask:
            return rat
    return None


def place(text: object) -> Reading:
    """Where the modem is registered, ``ci`` being whatever the technology calls its cell identity: ``MCC,MNC,LAC,CI,TAC``, the last three
    hexadecimal; 0 and FFFE are "none" (3GPP TS 23.003 clauses 4.4 and 19.4.2.3)."""
    parts = text.split(",") if isinstance(text, str) else []
    if len(parts) not in (4, 5):
        return Reading()
    lac, ci, tac = (hexadecimal(part) for part in (*parts[2:], "")[:3])
    network = plmn(parts[0], parts[1])
    return Reading(plmn=network, lac=_area(lac, 0xFFFF), ci=_cell(ci), tac=_area(tac, 0xFFFFFF))


def _area(number: int | None, most: int) -> int | None:
    return None if number in (None, 0, 0xFFFE, 0xFFFF, 0xFFFFFE, 0xFFFFFF) or number > most else number


def _cell(number: int | None) -> int | None:
    return None if number in (None, 0, 0xFFFFFFF, 0xFFFFFFFF) or number >= 2**36 - 1 else number


def _state(properties: ModemProperties) -> str:
    state, registered = _whole(properties.modem, "State"), _whole(properties.registration, "RegistrationState")
    if state in (FAILED, LOCKED):
        return "no_service"  # no usable SIM: as a modem on an AT port says with +CEREG
    if state == SEARCHING and registered not in _HOME:
        return _STATES.get(registered or 2, "searching")
    if registered is None or registered in _HOME:
        return "unknown"
    return _STATES.get(registered, "unknown")


def _levels(signal: Properties, rat: str | None, cell: Reading) -> dict[str, Any]:
    """The dictionary of the serving technology; cell info where that has none."""
    lte, nr, umts, gsm = (_table(signal, name) for name in ("Lte", "Nr5g", "Umts", "Gsm"))
    if rat == "GSM":
        return {"rssi_dbm": _level(gsm, "rssi")}
    if rat == "WCDMA":
        return {
            "rssi_dbm": _level(umts, "rssi"),
            "rscp_dbm": first(_level(umts, "rscp"), cell.rscp_dbm),
            "ecno_db": first(_level(umts, "ecio"), cell.ecno_db),
        }
    own = nr if rat == "NR-SA" else lte
    found = {
        "rsrp_dbm": first(_level(own, "rsrp"), cell.rsrp_dbm),
        "rsrq_db": first(_level(own, "rsrq"), cell.rsrq_db),
        "sinr_db": first(_level(own, "snr"), cell.sinr_db),
        "rssi_dbm": None if rat == "NR-SA" else _level(own, "rssi"),
    }
    if rat == "NR-NSA":
        found |= {"nr_rsrp_dbm": _level(nr, "rsrp"), "nr_rsrq_db": _level(nr, "rsrq"), "nr_sinr_db": _level(nr, "snr")}
    return found


def _serving(cells: Sequence[Properties], rat: str | None) -> Reading:
    """The serving cell of GetCellInfo, if it is of the technology, its identity as ``ci``; ids there are hexadecimal text."""
    kind = {"GSM": _CELL_GSM, "WCDMA": _CELL_UMTS, "NR-SA": _CELL_NR}.get(rat or "", _CELL_LTE)
    channel = {_CELL_GSM: "arfcn", _CELL_UMTS: "uarfcn", _CELL_NR: "nrarfcn"}.get(kind, "earfcn")
    for cell in cells:
        if cell.get("serving") is True and cell.get("cell-type") == kind:
            return Reading(
                tac=_area(_hexadecimal(cell, "tac"), 0xFFFFFF),
                lac=_area(_hexadecimal(cell, "lac"), 0xFFFF),
                ci=_cell(_hexadecimal(cell, "nci" if kind == _CELL_NR else "ci")),
                pci=_hexadecimal(cell, "physical-ci"),
                earfcn=_whole(cell, channel),
                rsrp_dbm=_level(cell, "rsrp"),
                rsrq_db=_level(cell, "rsrq"),
                sinr_db=_level(cell, "sinr"),
                rscp_dbm=_level(cell, "rscp"),
                ecno_db=_level(cell, "ecio"),
            )
    return Reading()


def _table(properties: Properties, name: str) -> Properties:
    found = properties.get(name)
    return found if isinstance(found, Mapping) else {}


def _level(table: Properties, name: str) -> float | None:
    """A level; ModemManager's "unknown" is the most negative number there is, and firmware's −32768 comes through."""
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value) if abs(value) < 1000 else None


def _whole(table: Properties, name: str) -> int | None:
    value = table.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 0xFFFFFFFF else None


def _hexadecimal(table: Properties, name: str) -> int | None:
    value = table.get(name)
    return hexadecimal(value) if isinstance(value, str) else None


def _plmn(code: object) -> str | None:
    return plmn(code[:3], code[3:]) if isinstance(code, str) and re.fullmatch(r"[0-9]{5,6}", code) else None


# ---------------------------------------------------------------------------------------------------------------------
# One modem in ModemManager over all its lives there: found by device, kept enabled and measuring, asked once a poll.


log = logging.getLogger(__name__)

RATE_S = 1
"""How often ModemManager refreshes the levels: its shortest, whole seconds."""

QUIET_S = 5.0
"""ModemManager says nothing when nothing changed, and nothing either when the modem is dead: it goes on showing the last levels.
After this long without a change the modem itself is asked something (its list of profiles: +CGDCONT? or the like)."""

ALIVE_S = 5.0
"""How long the modem has for the answer."""

AGAIN_S = 10.0
"""Between attempts to switch a modem on that could not be."""


@dataclass(frozen=True)
class Answer:
    """What one poll got. ``changes``: how often the levels were refreshed with something new since the modem was found."""

    path: str
    properties: ModemProperties
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
        self._changed_s = self._alive_asked_s = 0.0
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
        if self.bus is not None:
            self.bus.close()
            self.bus = None
        self._lost()

    def begin(self, what: str, call: Call) -> None:
        """Begin something slow under a name; ``outcome`` tells when it is done. One at a time of each name."""
        if self.bus is not None and what not in self._pending:
            self._pending[what] = self.bus.begin(call)

    def pending(self, what: str) -> bool:
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
        self._take_signals()
        path = self.path or self._find(self.bus, until)
        names = (MODEM, MODEM_3GPP, SIGNAL, LOCATION) if self._measuring else (MODEM, MODEM_3GPP)
        answers = dict(zip(names, gather(self.bus, [get_all(path, name) for name in names], until), strict=True))
        modem, location = answers[MODEM], answers.get(LOCATION, {})
        if isinstance(modem, Refused):
            raise modem
        rest = (answers.get(name, {}) for name in (MODEM_3GPP, SIGNAL))
        properties = ModemProperties(modem, *({} if isinstance(one, Refused) else one for one in rest))
        if modem.get("State", 0) >= ENABLED:
            if not self._measuring:
                return Answer(path, properties, self._changes)
            where = {} if isinstance(location, Refused) else location
            self._measure(path, properties, where)
            place_now = self._location(path, where, until)
            properties = replace(properties, location=place_now, cells=self._cell_info(path))
            self._check_alive(path)
        elif modem.get("State") == DISABLED:
            self._begin_spaced("Enable", Call(path, MODEM, "Enable", "b", (True,)))
        self._take_signals()
        if self._dead is not None:
            raise NoAnswer(self._dead)
        return Answer(path, properties, self._changes)

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

    def _take_signals(self) -> None:
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

    def _measure(self, path: str, properties: ModemProperties, location: dict[str, Any]) -> None:
        """Have levels refreshed and the cell told; asked for again whenever it is not so: after a restart, a replug, or somebody
        else's change. What others enabled of the location stays."""
        if properties.signal and properties.signal.get("Rate") != RATE_S:
            self._begin_spaced("Signal", Call(path, SIGNAL, "Setup", "u", (RATE_S,)))
        sources = location.get("Enabled", 0)
        if location and not sources & LAC_CI:
            shown = bool(location.get("SignalsLocation", False))
            self._begin_spaced("Location", Call(path, LOCATION, "Setup", "ub", (sources | LAC_CI, shown)))

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

    def _check_alive(self, path: str) -> None:
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
        elif self.pending("proof") and now - self._alive_asked_s > ALIVE_S and self._changed_s < self._alive_asked_s:
            self._dead = f"the modem did not answer ModemManager within {ALIVE_S:g} s"
        if now - self._changed_s > QUIET_S and "proof" not in self._never and not self.pending("proof"):
            self._alive_asked_s = now
            self.begin("proof", Call(path, PROFILES, "List"))

    def _begin_spaced(self, what: str, call: Call) -> None:
        """Begin it unless it is under way, was refused a moment ago, or can never be had."""
        answer = self.outcome(what)
        if isinstance(answer, Refused):
            if answer.never:
                self._refused(what, answer)
            elif what not in self._not_before:
                hint = "; hint: install the polkit rule" if answer.denied else ""
                log.warning("%s: ModemManager refuses %s: %s%s", self._device, what, answer, hint)
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


# ---------------------------------------------------------------------------------------------------------------------
# Whose SIM is in each modem that ModemManager has: for modems whose only AT port, or QMI or MBIM, is ModemManager's.


_DEADLINE_S = 5.0
_SIM_PIN = 2
"""MMModemLock."""


def card_managed(modem: Mapping[str, Any]) -> Card:
    """From ModemManager's properties of a modem (org.freedesktop.ModemManager1.Modem); it tells no hash."""
    state = modem.get("State")
    if state == LOCKED:
        return Card("the SIM is locked")
    if state == FAILED:
        reason = FAILED_REASONS.get(modem.get("StateFailedReason", 0), "unknown")
        return Card("ModemManager gave the modem up: " + reason.replace("_", " "))
    return Card(READY)


@dataclass(frozen=True, slots=True)
class ManagedSim:
    """``state``: ``ready``, or why the SIM is of no use."""

    state: str
    home: HomeNetwork


def managed_sims() -> dict[str, ManagedSim]:
    """By USB path; empty where there is no ModemManager to ask, or where it does not answer in time."""
    never = os.eventfd(0)
    try:
        bus = system_bus(never)
        try:
            return sims_of(bus, time.monotonic() + _DEADLINE_S)
        finally:
            bus.close()
    except BusError:
        return {}
    finally:
        os.close(never)


def sims_of(bus: Bus, until: float) -> dict[str, ManagedSim]:
    """The same, of a bus. BusError."""
    found: dict[str, ManagedSim] = {}
    for interfaces in ask(bus, Call(ROOT, OBJECTS, "GetManagedObjects"), until).values():
        modem, network = interfaces.get(MODEM, {}), interfaces.get(MODEM_3GPP, {})
        sim = str(modem.get("Sim") or "/")
        sim_properties = gather(bus, [get_all(sim, SIM)], until)[0] if sim != "/" else {}
        sim_properties = {} if isinstance(sim_properties, Refused) else sim_properties
        plmn = str(sim_properties.get("OperatorIdentifier") or "") or None
        at_home = plmn is not None and network.get("OperatorCode") == plmn
        name = sim_properties.get("OperatorName") or (network.get("OperatorName") if at_home else None)
        state = card_managed(modem).state
        if state != READY and modem.get("UnlockRequired") == _SIM_PIN:
            state = WANTS_PIN
        place = str(modem.get("Device", "")).rpartition("/")[2]
        found[place] = ManagedSim(state, HomeNetwork(plmn, str(name).strip() if name else None))
    return found
