"""Whose SIM is in each modem that ModemManager has: for modems whose only AT port, or QMI or MBIM, is ModemManager's."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from tandem.modem.card import READY, WANTS_PIN, card_managed
from tandem.modem.home_network import HomeNetwork
from tandem.modem.mm_bus import (
    MODEM,
    MODEM_3GPP,
    OBJECTS,
    ROOT,
    SIM,
    Bus,
    BusError,
    Call,
    Refused,
    ask,
    gather,
    get_all,
)

_DEADLINE_S = 5.0
_SIM_PIN = 2
"""MMModemLock."""


@dataclass(frozen=True, slots=True)
class ManagedSim:
    """``state``: ``ready``, or why the SIM is of no use."""

    state: str
    home: HomeNetwork


def managed_sims() -> dict[str, ManagedSim]:
    """By USB path; empty where there is no ModemManager to ask, or where it does not answer in time."""
    from tandem.modem.mm_dbus import system_bus

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
        told = gather(bus, [get_all(sim, SIM)], until)[0] if sim != "/" else {}
        told = {} if isinstance(told, Refused) else told
        plmn = str(told.get("OperatorIdentifier") or "") or None
        at_home = plmn is not None and network.get("OperatorCode") == plmn
        name = told.get("OperatorName") or (network.get("OperatorName") if at_home else None)
        state = card_managed(modem).state
        if state != READY and modem.get("UnlockRequired") == _SIM_PIN:
            state = WANTS_PIN
        place = str(modem.get("Device", "")).rpartition("/")[2]
        found[place] = ManagedSim(state, HomeNetwork(plmn, str(name).strip() if name else None))
    return found
