"""Quectel's +QENG="servingcell" and +QCSQ.

Source: Quectel EC25/EC21/EC20 and EG06 AT commands manuals (QENG, QCSQ) and RG50xQ/RM5xxQ AT commands manual (QENG), as
quoted in public code. The columns differ with the radio technology; a firmware may add columns at the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.scalars import at, code, decimal, hexadecimal, plmn, whole, within
from tandem.modem.ts27007 import all_lines, last_values

_STATES = {"SEARCH": "searching", "LIMSRV": "limited", "NOCONN": "idle", "CONNECT": "connected"}
_NOT_AN_AREA = (0xFFFE, 0xFFFF, 0xFFFFFE, 0xFFFFFF)
SINR_SCALES_AGREE_DB = 3.0
"""A reading of +QENG's SINR counts as agreeing with +QCSQ's when they are this near: they are a few milliseconds apart."""


def decode(responses: Sequence[Response]) -> Reading:
    """The serving cell. On NR-NSA the quantities are the LTE anchor's, whose ECI it is."""
    lines = all_lines(responses)
    rows = [values(line) for line in lines if prefix(line) == "+QENG"]
    serving = next((row for row in reversed(rows) if at(row, 0) == "servingcell"), ())
    state = _STATES.get(at(serving, 1), "unknown")
    qcsq = last_values(lines, "+QCSQ")
    if at(qcsq, 0) == "NOSERVICE" and state == "unknown":
        state = "no_service"
    technology = at(serving, 2)
    if technology == "NR5G-SA":
        return _standalone(state, serving[3:])
    if technology in ("WCDMA", "GSM"):
        return _older(state, technology, serving[3:], qcsq)
    nsa = any(at(row, 0) == "NR5G-NSA" for row in rows)
    if technology in ("LTE", "CAT-M", "CAT-NB", "eMTC"):
        return _lte(state, "NR-NSA" if nsa else "LTE", serving[3:], qcsq)
    anchor = next((row for row in reversed(rows) if at(row, 0) == "LTE"), None)
    if anchor is not None:
        return _lte(state, "NR-NSA" if nsa else "LTE", anchor[1:], qcsq)
    return Reading(state=state)


def _lte(state: str, rat: str, row: Sequence[str], qcsq: Sequence[str]) -> Reading:
    """``<is_tdd>,<mcc>,<mnc>,<cellid>,<pcid>,<earfcn>,<band>,<ul>,<dl>,<tac>,<rsrp>,<rsrq>,<rssi>,<sinr>…``; ids are hex."""
    sinr_code = _valid(whole(at(row, 13)))
    tac = hexadecimal(at(row, 9))
    return Reading(
        state=state,
        rat=rat,
        rsrp_dbm=within(decimal(at(row, 10)), -156, -30),
        rsrq_db=within(decimal(at(row, 11)), -50, 25),
        sinr_db=_sinr(sinr_code, qcsq),
        rssi_dbm=within(decimal(at(row, 12)), -130, -10),
        sinr_code=sinr_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=None if tac in _NOT_AN_AREA else tac,
        eci=_cell(at(row, 3), 0xFFFFFFF),
        pci=code(at(row, 4), 0, 503),
        earfcn=code(at(row, 5), 0, 262143),
        band=code(at(row, 6), 1, 1024),
    )


def _standalone(state: str, row: Sequence[str]) -> Reading:
    """``<duplex>,<mcc>,<mnc>,<cellid>,<pcid>,<tac>,<arfcn>,<band>,<bw>,<rsrp>,<rsrq>,<sinr>…``: SINR is in dB as it is."""
    sinr = _valid(whole(at(row, 11)))
    tac = hexadecimal(at(row, 5))
    return Reading(
        state=state,
        rat="NR-SA",
        rsrp_dbm=within(decimal(at(row, 9)), -156, -30),
        rsrq_db=within(decimal(at(row, 10)), -50, 25),
        sinr_db=within(None if sinr is None else float(sinr), -40, 60),
        sinr_code=sinr,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=None if tac in _NOT_AN_AREA else tac,
        eci=_cell(at(row, 3), 0xFFFFFFFFF),
        pci=code(at(row, 4), 0, 1007),
        earfcn=code(at(row, 6), 0, 3279165),
        band=code(at(row, 7), 1, 1024),
    )


def _older(state: str, rat: str, row: Sequence[str], qcsq: Sequence[str]) -> Reading:
    """WCDMA and GSM rows begin with ``<mcc>,<mnc>,<lac>,<cellid>``. LAC and CID are no TAC and ECI; RSCP is no RSRP.

    RSSI is the one of ``+QCSQ: "WCDMA",<rssi>,<rscp>,<ecio>`` or ``"GSM",<rssi>``, in dBm.
    """
    same = at(qcsq, 0) == rat
    return Reading(
        state=state,
        rat=rat,
        rssi_dbm=within(decimal(at(qcsq, 1)), -130, -10) if same else None,
        plmn=plmn(at(row, 0), at(row, 1)),
    )


def _sinr(found: int | None, qcsq: Sequence[str]) -> float | None:
    """SINR of an LTE cell in dB, −20 to 30.

    +QENG's scale differs by model and firmware: dB as it is, v/5 − 20, or 2v − 20. +QCSQ's is v/5 − 20 everywhere
    (``+QCSQ: "LTE",<rssi>,<rsrp>,<sinr>,<rsrq>``, v 0 to 250), so it decides: the nearest of the three when one is near
    enough, else +QCSQ's own value. Without +QCSQ nothing says which scale it is: None, and the code is kept.
    """
    asked = code(at(qcsq, 3), 0, 250) if at(qcsq, 0) in ("LTE", "CAT-M1", "CAT-NB1", "eMTC") else None
    if asked is None:
        return None
    judge = asked / 5 - 20
    if found is None:
        return judge
    nearest = min((float(found), found / 5 - 20, 2.0 * found - 20), key=lambda scale: abs(scale - judge))
    return nearest if abs(nearest - judge) <= SINR_SCALES_AGREE_DB else judge


def _valid(found: int | None) -> int | None:
    """−3276 and −32768 (and what is near) mean "not valid"."""
    return found if found is not None and found > -3000 else None


def _cell(text: str, none: int) -> int | None:
    found = hexadecimal(text)
    return None if found is None or found >= none else found
