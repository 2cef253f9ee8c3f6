"""What a modem tells by the standard's commands alone (3GPP TS 27.007): +CSQ, +CESQ, +CEREG, +COPS."""

from __future__ import annotations

from collections.abc import Sequence

from tandem.at.dialogue import Response
from tandem.modem.base import Reading
from tandem.modem.ts27007 import all_lines, levels, operator, registration, rssi


def decode(responses: Sequence[Response]) -> Reading:
    """RSSI from +CSQ (clause 8.5), RSRP and RSRQ from +CESQ (8.69), TAC and ECI from +CEREG (10.1.22), PLMN from +COPS (7.3).

    The standard tells neither LTE's SINR nor PCI, EARFCN and band, nor whether RRC is connected: these stay None and a
    registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    rssi_code, rssi_dbm = rssi(lines)
    told = levels(lines)
    registered = registration(lines)
    plmn, technology = operator(lines)
    hinted = {"LTE": "LTE", "NR": "NR-SA"}.get(told.rat_hint or "")
    rat = registered.rat or technology or hinted
    # Registered elsewhere, +CEREG's "not registered" says only that this is not LTE.
    elsewhere = rat in ("GSM", "WCDMA", "NR-SA")
    return Reading(
        state="unknown" if elsewhere else registered.state or "unknown",
        rat=rat,
        rsrp_dbm=told.rsrp_dbm,
        rsrq_db=told.rsrq_db,
        sinr_db=told.sinr_db,
        rssi_dbm=rssi_dbm,
        rsrp_code=told.rsrp_code,
        rsrq_code=told.rsrq_code,
        sinr_code=told.sinr_code,
        rssi_code=rssi_code,
        plmn=plmn,
        tac=None if elsewhere else registered.tac,
        eci=None if elsewhere else registered.eci,
    )
