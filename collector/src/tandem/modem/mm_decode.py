"""What ModemManager tells of a modem → a reading. Pure; names and meanings as in its D-Bus reference, version 1.20 and later."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tandem.modem.base import Reading
from tandem.modem.scalars import hexadecimal, plmn

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
class Told:
    """One poll's answers. ``location``: by source; ``cells``: empty where GetCellInfo does not exist."""

    modem: Properties = field(default_factory=dict)
    registration: Properties = field(default_factory=dict)
    signal: Properties = field(default_factory=dict)
    location: Mapping[int, Any] = field(default_factory=dict)
    cells: Sequence[Properties] = ()


def decode(told: Told) -> Reading:
    """The reading. ModemManager's "connected" is a bearer's state and not RRC's: a registered modem's state is ``unknown``.

    Levels are the modem's own numbers as ModemManager gives them, up to a second (its refresh) older than the poll.
    """
    rat = technology(_whole(told.modem, "AccessTechnologies") or 0)
    cell = _serving(told.cells, rat)
    where = place(told.location.get(LAC_CI))
    network = _plmn(told.registration.get("OperatorCode")) or where.plmn
    old = rat in ("GSM", "WCDMA")
    return Reading(
        state=_state(told),
        rat=rat,
        plmn=network,
        tac=None if old else _first(cell.get("tac"), where.tac),
        eci=None if old else _first(cell.get("eci"), where.ci),
        lac=_first(cell.get("lac"), where.lac) if old else None,
        ci=_first(cell.get("ci"), where.ci) if old else None,
        pci=cell.get("pci"),
        earfcn=cell.get("earfcn"),
        **_levels(told.signal, rat, cell),
    )


def technology(bits: int) -> str | None:
    """The radio technology in MMModemAccessTechnology's bits: the newest, LTE with NR being the dual connectivity of NSA."""
    if bits & _NR:
        return "NR-NSA" if bits & _LTE else "NR-SA"
    for mask, rat in ((_NB_IOT, "NB-IOT"), (_CAT_M, "CAT-M"), (_LTE, "LTE"), (_UMTS, "WCDMA"), (_GSM, "GSM")):
        if bits & mask:
            return rat
    return None


@dataclass(frozen=True)
class Place:
    """Where the modem is registered. ``ci``: whatever the technology calls its cell identity."""

    plmn: str | None = None
    lac: int | None = None
    ci: int | None = None
    tac: int | None = None


def place(text: object) -> Place:
    """``MCC,MNC,LAC,CI,TAC``, the last three hexadecimal; 0 and FFFE are "none" (3GPP TS 23.003 clauses 4.4 and 19.4.2.3)."""
    parts = text.split(",") if isinstance(text, str) else []
    if len(parts) not in (4, 5):
        return Place()
    lac, ci, tac = (hexadecimal(part) for part in (*parts[2:], "")[:3])
    return Place(plmn(parts[0], parts[1]), _area(lac, 0xFFFF), _cell(ci), _area(tac, 0xFFFFFF))


def _area(number: int | None, most: int) -> int | None:
    return None if number in (None, 0, 0xFFFE, 0xFFFF, 0xFFFFFE, 0xFFFFFF) or number > most else number


def _cell(number: int | None) -> int | None:
    return None if number in (None, 0, 0xFFFFFFF, 0xFFFFFFFF) or number >= 2**36 - 1 else number


def _state(told: Told) -> str:
    state, registered = _whole(told.modem, "State"), _whole(told.registration, "RegistrationState")
    if state in (FAILED, LOCKED):
        return "no_service"  # no usable SIM: as a modem on an AT port says with +CEREG
    if state == SEARCHING and registered not in _HOME:
        return _STATES.get(registered or 2, "searching")
    if registered is None or registered in _HOME:
        return "unknown"
    return _STATES.get(registered, "unknown")


def _levels(signal: Properties, rat: str | None, cell: Mapping[str, Any]) -> dict[str, Any]:
    """The dictionary of the serving technology; cell info where that has none."""
    lte, nr, umts, gsm = (_table(signal, name) for name in ("Lte", "Nr5g", "Umts", "Gsm"))
    if rat == "GSM":
        return {"rssi_dbm": _level(gsm, "rssi")}
    if rat == "WCDMA":
        return {
            "rssi_dbm": _level(umts, "rssi"),
            "rscp_dbm": _first(_level(umts, "rscp"), cell.get("rscp")),
            "ecno_db": _first(_level(umts, "ecio"), cell.get("ecio")),
        }
    own = nr if rat == "NR-SA" else lte
    found = {
        "rsrp_dbm": _first(_level(own, "rsrp"), cell.get("rsrp")),
        "rsrq_db": _first(_level(own, "rsrq"), cell.get("rsrq")),
        "sinr_db": _first(_level(own, "snr"), cell.get("sinr")),
        "rssi_dbm": None if rat == "NR-SA" else _level(own, "rssi"),
    }
    if rat == "NR-NSA":
        found |= {"nr_rsrp_dbm": _level(nr, "rsrp"), "nr_rsrq_db": _level(nr, "rsrq"), "nr_sinr_db": _level(nr, "snr")}
    return found


def _serving(cells: Sequence[Properties], rat: str | None) -> dict[str, Any]:
    """The serving cell of GetCellInfo, if it is of the technology; ids there are hexadecimal text."""
    kind = {"GSM": _CELL_GSM, "WCDMA": _CELL_UMTS, "NR-SA": _CELL_NR}.get(rat or "", _CELL_LTE)
    for cell in cells:
        if cell.get("serving") is True and cell.get("cell-type") == kind:
            ci = _cell(_hexadecimal(cell, "nci" if kind == _CELL_NR else "ci"))
            return {
                "tac": _area(_hexadecimal(cell, "tac"), 0xFFFFFF),
                "lac": _area(_hexadecimal(cell, "lac"), 0xFFFF),
                "eci": ci,
                "ci": ci,
                "pci": _hexadecimal(cell, "physical-ci"),
                "earfcn": _whole(
                    cell, {_CELL_GSM: "arfcn", _CELL_UMTS: "uarfcn", _CELL_NR: "nrarfcn"}.get(kind, "earfcn")
                ),
                **{name: _level(cell, name) for name in ("rsrp", "rsrq", "sinr", "rscp", "ecio")},
            }
    return {}


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


def _first(*values: Any) -> Any:  # noqa: ANN401 - numbers of either kind
    return next((value for value in values if value is not None), None)
