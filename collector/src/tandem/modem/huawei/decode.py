"""Huawei's ^HCSQ and ^MONSC, with +CEREG of the standard.

Source: Huawei ME909s and ME906 AT command interface specifications (HCSQ, MONSC), as quoted in public code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tandem.at.dialogue import Response
from tandem.modem.base import Reading
from tandem.modem.scalars import at, code, decimal, hexadecimal, plmn, within
from tandem.modem.ts27007 import all_lines, last_values, registration

_MODES = {"LTE": "LTE", "WCDMA": "WCDMA", "GSM": "GSM", "NR": "NR-SA", "TD-SCDMA": None, "NONE": None}


@dataclass(frozen=True)
class Codes:
    """What ``^HCSQ`` answers: the mode and its codes; ``decode`` knows their bins."""

    mode: str = ""
    rssi_code: int | None = None
    rsrp_code: int | None = None
    sinr_code: int | None = None
    rsrq_code: int | None = None


def decode(responses: Sequence[Response]) -> Reading:
    """RSRP, RSRQ and RSSI as ^MONSC prints them in dBm and dB; where it does not, from the codes of ^HCSQ. SINR from ^HCSQ.

    Neither tells the band or whether RRC is connected: a registered modem's state is ``unknown``. TAC and ECI are ^MONSC's,
    else +CEREG's.
    """
    lines = all_lines(responses)
    told = _codes(last_values(lines, "^HCSQ"))
    cell = last_values(lines, "^MONSC")
    registered = registration(lines)
    rat = _MODES.get(at(cell, 0)) or _MODES.get(told.mode) or registered.rat
    state = registered.state or "unknown"
    if told.mode == "NOSERVICE" and not registered.known:
        state = "no_service"
    elif rat in ("GSM", "WCDMA"):
        state = "unknown"
    lte = cell if at(cell, 0) == "LTE" else ()
    elsewhere = rat in ("GSM", "WCDMA")
    eci, tac = hexadecimal(at(lte, 4)), hexadecimal(at(lte, 6))
    return Reading(
        state=state,
        rat=rat,
        rsrp_dbm=_first(within(decimal(at(lte, 7)), -156, -30), _scaled(told.rsrp_code, 1, -141)),
        rsrq_db=_first(within(decimal(at(lte, 8)), -50, 25), _scaled(told.rsrq_code, 0.5, -20)),
        sinr_db=_scaled(told.sinr_code, 0.2, -20.2),
        rssi_dbm=_first(within(decimal(at(lte, 9)), -130, -10), _scaled(told.rssi_code, 1, -121)),
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        rssi_code=told.rssi_code,
        plmn=plmn(at(cell, 1), at(cell, 2)),
        tac=tac if tac is not None else None if elsewhere else registered.tac,
        eci=eci if eci is not None else None if elsewhere else registered.eci,
        pci=hexadecimal(at(lte, 5)),
        earfcn=code(at(lte, 3), 0, 262143),
    )


def _codes(found: Sequence[str]) -> Codes:
    """``^HCSQ: "LTE",<rssi>,<rsrp>,<sinr>,<rsrq>``; NR ``<rsrp>,<sinr>,<rsrq>``; WCDMA and GSM begin with the RSSI. 255: none.

    RSSI −121 + v (0 to 96), RSRP −141 + v (0 to 97), SINR −20.2 + v/5 (0 to 251), RSRQ −20 + v/2 (0 to 34).
    """
    mode = at(found, 0).upper()
    if mode == "LTE":
        codes = [code(at(found, i), 0, 254) for i in (1, 2, 3, 4)]
    elif mode == "NR":
        codes = [None, *(code(at(found, i), 0, 254) for i in (1, 2, 3))]
    elif mode in ("WCDMA", "GSM"):
        codes = [code(at(found, 1), 0, 254), None, None, None]
    else:
        codes = [None] * 4
    return Codes(mode, codes[0], codes[1], codes[2], codes[3])


def _scaled(found: int | None, step: float, offset: float) -> float | None:
    return None if found is None else round(offset + step * found, 1)


def _first(printed: float | None, coded: float | None) -> float | None:
    return printed if printed is not None else coded
