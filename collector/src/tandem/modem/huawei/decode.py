"""Huawei's ^HCSQ and ^MONSC, with what ``further`` has and +CEREG of the standard.

Source: Huawei ME909s, ME906 and MH5000 AT command interface specifications (HCSQ, MONSC), as quoted in public code. A modem in
NR NSA prints one line for LTE and one for NR.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.bins import with_secondary
from tandem.modem.huawei.codes import Codes, codes
from tandem.modem.huawei.further import with_further
from tandem.modem.scalars import at, code, decimal, hexadecimal, plmn, within
from tandem.modem.ts27007 import all_lines, fill

_RATS = {"LTE": "LTE", "NR": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}
Row = Sequence[str]


def decode(responses: Sequence[Response]) -> Reading:
    """LTE and NR: levels as ^MONSC prints them, else from ^HCSQ; LTE's SINR is ^HCSQ's. 2G and 3G: ^HCSQ's, else ^MONSC's.

    Neither tells the band or whether RRC is connected: a registered modem's state is ``unknown``. What of the cell ^MONSC does
    not tell is +CEREG's.
    """
    lines = all_lines(responses)
    told = [codes(values(line)) for line in lines if prefix(line) == "^HCSQ"]
    rows = [values(line) for line in lines if prefix(line) == "^MONSC"]
    mode, cells = _latest([one.mode for one in told]), _latest([at(row, 0).upper() for row in rows])
    by_mode = {one.mode: one for one in told}
    by_cell = {at(row, 0).upper(): row for row in rows}
    served = cells or mode
    if "LTE" in served and "NR" in served:
        anchor = _lte(by_mode.get("LTE", Codes()), by_cell.get("LTE", ()))
        reading = with_secondary(anchor, _nr(by_mode.get("NR", Codes()), by_cell.get("NR", ())))
    elif "LTE" in served:
        anchor = _lte(by_mode.get("LTE", Codes()) if "LTE" in mode else Codes(), by_cell.get("LTE", ()))
        nr_too = "LTE" in mode and "NR" in mode
        reading = with_secondary(anchor, _nr(by_mode["NR"], ())) if nr_too else anchor
    elif served:
        technology = served[0]
        level = by_mode[technology] if technology in mode else Codes()
        reading = _READERS[technology](level, by_cell.get(technology, ()))
    else:
        reading = Reading()
    reading = fill(with_further(reading, lines), lines)
    silent = (told and told[-1].mode == "NOSERVICE") or (rows and at(rows[-1], 0).upper() == "NONE")
    if reading == Reading() and silent:
        reading = replace(reading, state="no_service")
    return reading


def _latest(technologies: Sequence[str]) -> tuple[str, ...]:
    """The technologies that the last lines tell: the last one, and the one before it where the two are LTE and NR (NSA).

    Earlier ones came unasked and are older. Empty when the last line says that there is no service.
    """
    last = tuple(technologies[-2:])
    if set(last) == {"LTE", "NR"}:
        return last
    return last[-1:] if last and last[-1] in _RATS else ()


def _lte(told: Codes, row: Row) -> Reading:
    """``LTE,<mcc>,<mnc>,<earfcn>,<eci hex>,<pci hex>,<tac hex>,<rsrp>,<rsrq>,<rssi>``."""
    return Reading(
        rat="LTE",
        rsrp_dbm=_first(within(decimal(at(row, 7)), -156, -30), told.rsrp_dbm),
        rsrq_db=_first(within(decimal(at(row, 8)), -50, 25), told.rsrq_db),
        sinr_db=told.sinr_db,
        rssi_dbm=_first(within(decimal(at(row, 9)), -130, -10), told.rssi_dbm),
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        rssi_code=told.rssi_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=_area(at(row, 6), 0xFFFF),
        eci=_below(at(row, 4), 0xFFFFFFF),
        pci=_below(at(row, 5), 504),
        earfcn=code(at(row, 3), 0, 262143),
    )


def _nr(told: Codes, row: Row) -> Reading:
    """``NR,<mcc>,<mnc>,<arfcn>,<scs>,<nci hex>,<pci hex>,<tac hex>,<rsrp>,<rsrq>,<sinr>``."""
    return Reading(
        rat="NR-SA",
        rsrp_dbm=_first(within(decimal(at(row, 8)), -157, -30), told.rsrp_dbm),
        rsrq_db=_first(within(decimal(at(row, 9)), -50, 25), told.rsrq_db),
        sinr_db=_first(within(decimal(at(row, 10)), -40, 60), told.sinr_db),
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=_area(at(row, 7), 0xFFFFFF),
        eci=_below(at(row, 5), 0xFFFFFFFFF),
        pci=_below(at(row, 6), 1008),
        earfcn=code(at(row, 3), 0, 3279165),
    )


def _wcdma(told: Codes, row: Row) -> Reading:
    """``WCDMA,<mcc>,<mnc>,<uarfcn>,<psc>,<ci hex>,<lac hex>,<rscp>,<rssi>,<ec/n0>,<drx>,<ura>``."""
    return Reading(
        rat="WCDMA",
        rssi_dbm=_first(told.rssi_dbm, within(decimal(at(row, 8)), -130, -10)),
        rscp_dbm=_first(told.rscp_dbm, within(decimal(at(row, 7)), -140, -10)),
        ecno_db=_first(told.ecno_db, within(decimal(at(row, 9)), -60, 10)),
        rssi_code=told.rssi_code,
        rscp_code=told.rscp_code,
        ecno_code=told.ecno_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_area(at(row, 6), 0xFFFF),
        ci=_below(at(row, 5), 0xFFFFFFF),
    )


def _gsm(told: Codes, row: Row) -> Reading:
    """``GSM,<mcc>,<mnc>,<band>,<arfcn>,<bsic>,<ci hex>,<lac hex>,<rssi>,<rx quality>,<timing advance>``."""
    return Reading(
        rat="GSM",
        rssi_dbm=_first(told.rssi_dbm, within(decimal(at(row, 8)), -130, -10)),
        rssi_code=told.rssi_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_area(at(row, 7), 0xFFFF),
        ci=_below(at(row, 6), 0xFFFF),
    )


_READERS = {"LTE": _lte, "NR": _nr, "WCDMA": _wcdma, "GSM": _gsm}


def _first(one: float | None, other: float | None) -> float | None:
    return one if one is not None else other


def _below(text: str, limit: int) -> int | None:
    """A hexadecimal id below ``limit``, which is the one of all ones or the first that does not exist."""
    found = hexadecimal(text)
    return found if found is not None and found < limit else None


def _area(text: str, highest: int) -> int | None:
    """A location or tracking area; 0 and the two highest mean none (3GPP TS 23.003 clauses 4.1 and 19.4.2.3)."""
    found = _below(text, highest - 1)
    return found or None
