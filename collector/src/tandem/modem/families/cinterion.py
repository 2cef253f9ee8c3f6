"""Cinterion's cell commands by model, with +CSQ, +CEREG and +COPS of the standard."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Commands, Driver, Identity, Reading
from tandem.modem.families.foxconn import debug
from tandem.modem.scales import at, code, decimal, hexadecimal, plmn, within
from tandem.modem.ts27007 import all_lines, fill, last_values

Row = Sequence[str]
_STATES = {"SEARCH": "searching", "LIMSRV": "limited", "NOCONN": "idle", "CONN": "connected"}


def _smoni(row: Row) -> Reading:
    """``<act>,…``. Searching prints ``4G,SEARCH`` or ``3G,SEARCH,SEARCH``, and nothing of a cell."""
    if at(row, 1) == "SEARCH":
        return Reading(state="searching")
    reader = {"4G": _lte, "3G": _wcdma, "2G": _gsm}.get(at(row, 0))
    return Reading() if reader is None else reader(row)


def _lte(row: Row) -> Reading:
    """``4G,<earfcn>,<band>,<dl MHz>,<ul MHz>,<duplex>,<mcc>,<mnc>,<tac>,<eci>,<pci>,<srxlev or tx power>,<rsrp>,<rsrq>,<state>``."""
    return Reading(
        state=_STATES.get(at(row, 14), "unknown"),
        rat="LTE",
        rsrp_dbm=within(decimal(at(row, 12)), -156, -30),
        rsrq_db=within(decimal(at(row, 13)), -50, 25),
        plmn=plmn(at(row, 6), at(row, 7)),
        tac=_id(at(row, 8), 0xFFFD) or None,
        eci=_id(at(row, 9), 0xFFFFFFE),
        pci=code(at(row, 10), 0, 503),
        earfcn=code(at(row, 1), 0, 262143),
        band=code(at(row, 2), 1, 255),
        bandwidth_mhz=within(decimal(at(row, 3)), 1.4, 20),
    )


def _wcdma(row: Row) -> Reading:
    """``3G,<uarfcn>,<psc>,<ec/n0>,<rscp>,<mcc>,<mnc>,<lac>,<ci>,<squal>,<srxlev>,<state>``; with a dedicated channel seven more
    columns from <squal> on, and no state: it is connected then."""
    return Reading(
        state="connected" if len(row) >= 17 else _STATES.get(at(row, 11), "unknown"),
        rat="WCDMA",
        ecno_db=within(decimal(at(row, 3)), -60, 10),
        rscp_dbm=within(decimal(at(row, 4)), -140, -10),
        plmn=plmn(at(row, 5), at(row, 6)),
        lac=_id(at(row, 7), 0xFFFD) or None,
        ci=_id(at(row, 8), 0xFFFFFFE),
    )


def _gsm(row: Row) -> Reading:
    """``2G,<arfcn>,<level>,<mcc>,<mnc>,<lac>,<ci>,<c1>,<c2>,<ncc>,<bcc>,<gprs>,<state>``; with a dedicated channel its columns
    follow instead of the state."""
    return Reading(
        state="connected" if len(row) >= 17 else _STATES.get(at(row, 12), "unknown"),
        rat="GSM",
        rssi_dbm=within(decimal(at(row, 2)), -130, -10),
        plmn=plmn(at(row, 3), at(row, 4)),
        lac=_id(at(row, 5), 0xFFFD) or None,
        ci=_id(at(row, 6), 0xFFFE),
    )


def _id(text: str, highest: int) -> int | None:
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever command answered. ^SMONI tells the RRC state and no SINR, ^DEBUG? a SINR and no state."""
    lines = all_lines(responses)
    row = last_values(lines, "^SMONI")
    return fill(_smoni(row) if row else debug(lines), lines)


def _asked(identity: Identity) -> Commands:
    """MV31 has ^DEBUG?; one that has not told its name is asked ^SMONI."""
    return ("AT^DEBUG?" if identity.says("MV31", "MV32") else "AT^SMONI", "AT+CSQ;+CEREG?;+COPS?")


# Known by the manufacturer's names over the years.
DRIVER = Driver("cinterion", poll=_asked, decode=decode, knows=("cinterion", "gemalto", "thales"))
