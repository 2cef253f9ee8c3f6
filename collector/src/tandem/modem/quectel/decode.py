"""Quectel's +QENG="servingcell" and +QCSQ.

Source: Quectel EC25/EC21/EC20, EG06 and BG96 AT commands manuals (QENG, QCSQ) and RG50xQ/RM5xxQ AT commands manual (QENG),
as quoted in public code. The columns differ with the radio technology; a firmware may add columns at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Identity, Reading
from tandem.modem.quectel.further import CAT_M, NB_IOT, with_further
from tandem.modem.quectel.sinr import lte_sinr_db, nr_sinr_db
from tandem.modem.scalars import (
    area_code,
    at,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    nr_bandwidth_mhz,
    plmn,
    whole,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values

_STATES = {"SEARCH": "searching", "LIMSRV": "limited", "NOCONN": "idle", "CONNECT": "connected"}
_LTE = {"LTE": "LTE", **dict.fromkeys(CAT_M, "CAT-M"), **dict.fromkeys(NB_IOT, "NB-IOT")}
_KNOWN = (*_LTE, "NR5G-SA", "WCDMA", "GSM")
_UNISOC = ("RM500U", "RG500U", "RG200U")
"""The others of 5G have Qualcomm's chipset and its index for bandwidths; these print MHz."""


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The serving cell of +QENG; what only +QCSQ or a standard command tells is taken from there."""
    lines = all_lines(responses)
    rows = [values(line) for line in lines if prefix(line) == "+QENG"]
    serving = next((row for row in reversed(rows) if at(row, 0) == "servingcell"), ())
    state = _STATES.get(at(serving, 1), "unknown")
    qcsq = last_values(lines, "+QCSQ")
    if at(qcsq, 0) == "NOSERVICE" and state == "unknown":
        state = "no_service"
    cell: tuple[str, ...] = tuple(serving[2:])
    if not cell:  # NSA, and some firmware on LTE and SA too: the state in one line, each cell in its own
        cell = next((row for row in reversed(rows) if at(row, 0).upper() in _KNOWN), ())
    reading = replace(_cell(cell, qcsq, identity.says(*_UNISOC)), state=state)
    secondary = next((row for row in reversed(rows) if at(row, 0) == "NR5G-NSA"), None)
    if secondary is not None and reading.rat in ("LTE", None):
        reading = _with_secondary(reading, secondary)
    return fill(with_further(_with_qcsq(reading, qcsq), lines), lines)


def _cell(row: Sequence[str], qcsq: Sequence[str], unisoc: bool) -> Reading:
    """A cell's row from its technology on."""
    technology = at(row, 0).upper()
    if technology in _LTE:
        return _lte(_LTE[technology], row[1:], qcsq, unisoc)
    if technology == "NR5G-SA":
        return _standalone(row[1:], unisoc)
    if technology == "WCDMA":
        return _wcdma(row[1:])
    if technology == "GSM":
        return _gsm(row[1:])
    return Reading()


def _lte(rat: str, row: Sequence[str], qcsq: Sequence[str], unisoc: bool) -> Reading:
    """``<is_tdd>,<mcc>,<mnc>,<cellid>,<pcid>,<earfcn>,<band>,<ul>,<dl>,<tac>,<rsrp>,<rsrq>,<rssi>,<sinr>…``; ids are hex,
    bandwidths an index (MHz of ``unisoc``, and beyond the index), which knows none as narrow as NB-IoT's."""
    width = at(row, 8)
    sinr_code = _valid(whole(at(row, 13)))
    return Reading(
        rat=rat,
        rsrp_dbm=within(decimal(at(row, 10)), -156, -30),
        rsrq_db=within(decimal(at(row, 11)), -50, 25),
        sinr_db=lte_sinr_db(sinr_code, qcsq),
        rssi_dbm=within(decimal(at(row, 12)), -130, -10),
        sinr_code=sinr_code,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=area_code(hexadecimal(at(row, 9))),
        eci=cell_identity(hexadecimal(at(row, 3)), rat),
        pci=code(at(row, 4), 0, 503),
        earfcn=code(at(row, 5), 0, 262143),
        band=code(at(row, 6), 1, 1024),
        bandwidth_mhz=None if rat == "NB-IOT" else lte_bandwidth_mhz(width, unisoc or (whole(width) or 0) > 5),
    )


def _with_secondary(reading: Reading, row: Sequence[str]) -> Reading:
    """``"NR5G-NSA",<mcc>,<mnc>,<pcid>,<rsrp>,<sinr>,<rsrq>[,<arfcn>,<band>…]``: SINR before RSRQ and in dB as it is.

    Levels of −32768 are a leg that is not measured: the modem camps on a cell that offers NR, but has none.
    """
    sinr = _valid(whole(at(row, 5)))
    rsrp = within(decimal(at(row, 4)), -156, -30)
    told = replace(
        reading,
        nr_rsrp_dbm=rsrp,
        nr_rsrq_db=within(decimal(at(row, 6)), -50, 25),
        nr_sinr_db=within(None if sinr is None else float(sinr), -40, 60),
        nr_sinr_code=sinr,
        nr_pci=code(at(row, 3), 0, 1007),
        nr_arfcn=code(at(row, 7), 1, 3279165),
        nr_band=code(at(row, 8), 1, 1024),
    )
    return replace(told, rat="NR-NSA", plmn=told.plmn or plmn(at(row, 1), at(row, 2)))


def _standalone(row: Sequence[str], unisoc: bool) -> Reading:
    """``<duplex>,<mcc>,<mnc>,<cellid>,<pcid>,<tac>,<arfcn>,<band>,<bw>,<rsrp>,<rsrq>,<sinr>…``: SINR is in dB as it is, the
    bandwidth an index; MHz of ``unisoc``, which has a column more behind the SINR, and beyond the index. Where that column stands
    and the model is not known, a number that may be either is left out."""
    sinr = _valid(whole(at(row, 11)))
    width = at(row, 8)
    in_mhz = unisoc or (whole(width) or 0) > 14
    return Reading(
        rat="NR-SA",
        rsrp_dbm=within(decimal(at(row, 9)), -156, -30),
        rsrq_db=within(decimal(at(row, 10)), -50, 25),
        sinr_db=within(None if sinr is None else float(sinr), -40, 60),
        sinr_code=sinr,
        plmn=plmn(at(row, 1), at(row, 2)),
        tac=area_code(hexadecimal(at(row, 5)), 0xFFFFFF),
        eci=cell_identity(hexadecimal(at(row, 3)), "NR-SA"),
        pci=code(at(row, 4), 0, 1007),
        earfcn=code(at(row, 6), 0, 3279165),
        band=code(at(row, 7), 1, 1024),
        bandwidth_mhz=None if len(row) >= 15 and not in_mhz else nr_bandwidth_mhz(width, in_mhz),
    )


def _wcdma(row: Sequence[str]) -> Reading:
    """``<mcc>,<mnc>,<lac>,<cellid>,<uarfcn>,<psc>,<rac>,<rscp>,<ecio>…``. A scrambling code is no PCI, a UARFCN no EARFCN."""
    return Reading(
        rat="WCDMA",
        rscp_dbm=within(decimal(at(row, 7)), -140, -10),
        ecno_db=within(decimal(at(row, 8)), -60, 10),
        plmn=plmn(at(row, 0), at(row, 1)),
        lac=area_code(hexadecimal(at(row, 2))),
        ci=cell_identity(hexadecimal(at(row, 3)), "WCDMA"),
    )


def _gsm(row: Sequence[str]) -> Reading:
    """``<mcc>,<mnc>,<lac>,<cellid>,<bsic>,<arfcn>,<band>,<rxlev>…``; the level is in dBm."""
    return Reading(
        rat="GSM",
        rssi_dbm=within(decimal(at(row, 7)), -130, -10),
        plmn=plmn(at(row, 0), at(row, 1)),
        lac=area_code(hexadecimal(at(row, 2))),
        ci=cell_identity(hexadecimal(at(row, 3)), "GSM"),
    )


_QCSQ_RATS = {**_LTE, "WCDMA": "WCDMA", "GSM": "GSM", "NR5G": "NR-SA", "NR5G-SA": "NR-SA"}


def _with_qcsq(reading: Reading, row: Sequence[str]) -> Reading:
    """``+QCSQ``: ``"LTE",<rssi>,<rsrp>,<sinr>,<rsrq>`` (also CAT-M1, CAT-NB1), ``"WCDMA",<rssi>,<rscp>,<ecio>``,
    ``"GSM",<rssi>``, ``"NR5G",<rsrp>,<sinr>,<rsrq>``: what +QENG did not tell of the same technology."""
    rat = _QCSQ_RATS.get(at(row, 0).upper())
    if rat is None or reading.rat not in (rat, None, "NR-NSA" if rat == "LTE" else rat):
        return reading
    told = Reading(rat=rat)
    if rat == "NR-SA":
        sinr = _valid(whole(at(row, 2)))
        told = replace(
            told,
            rsrp_dbm=within(decimal(at(row, 1)), -156, -30),
            rsrq_db=within(decimal(at(row, 3)), -50, 25),
            sinr_db=nr_sinr_db(sinr),
            sinr_code=sinr,
        )
    else:
        told = replace(told, rssi_dbm=within(decimal(at(row, 1)), -130, -10))
    if rat == "WCDMA":
        told = replace(
            told, rscp_dbm=within(decimal(at(row, 2)), -140, -10), ecno_db=within(decimal(at(row, 3)), -60, 10)
        )
    if rat in _LTE.values():
        told = replace(
            told,
            rsrp_dbm=within(decimal(at(row, 2)), -156, -30),
            sinr_db=lte_sinr_db(None, row),
            sinr_code=code(at(row, 3), 0, 250) if reading.rat is None else None,
            rsrq_db=within(decimal(at(row, 4)), -50, 25),
        )
    missing = {
        name: getattr(told, name)
        for name in ("rat", "rssi_dbm", "rsrp_dbm", "rsrq_db", "sinr_db", "rscp_dbm", "ecno_db")
        if getattr(reading, name) is None
    }
    if "sinr_db" in missing and reading.sinr_code is None:
        missing["sinr_code"] = told.sinr_code
    return replace(reading, **missing)


def _valid(found: int | None) -> int | None:
    """−3276 and −32768 (and what is near) mean "not valid"."""
    return found if found is not None and found > -3000 else None
