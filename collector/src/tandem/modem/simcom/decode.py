"""SIMCom's +CPSI, or +CENG, with +CSQ and +CEREG of the standard.

Source: SIM7500/SIM7600, SIM7000, A7600 and SIM8200 series AT command manuals (CPSI) and SIM800's (CENG), as quoted in public code and
in dialogues that users published. What the scales of +CPSI are is worked out from each row: see ``levels``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.bins import with_gsm_code
from tandem.modem.scalars import (
    area_code,
    at,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    plmn,
    whole,
    within,
)
from tandem.modem.simcom.levels import lte_levels, nr_levels
from tandem.modem.ts27007 import all_lines, fill

_BAND = re.compile(r"(?:EUTRAN|NR5G)[-_]BAND([0-9]{1,3})\Z", re.IGNORECASE)


def decode(responses: Sequence[Response]) -> Reading:
    """The last serving cell: around a change of technology some firmware prints the old row and the new one.

    Whether RRC is connected is not told: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    rows = [values(line) for line in lines if prefix(line) == "+CPSI"]
    secondary = next((row for row in reversed(rows) if at(row, 0).upper() in ("NR5G_NSA", "NR5G-NSA", "NR5G")), None)
    serving = next((row for row in reversed(rows) if row is not secondary and at(row, 0)), ())
    reading = _cell(serving)
    if secondary is not None and reading.rat in ("LTE", None) and at(serving, 0).upper() != "NO SERVICE":
        reading = _with_secondary(reading, secondary)
    if not rows:
        reading = _engineering([values(line) for line in lines if prefix(line) == "+CENG"])
    reading = fill(reading, lines)
    if at(serving, 0).upper() == "NO SERVICE" and reading.state == "unknown":
        reading = replace(reading, state="no_service")
    return reading


def _rat(mode: str) -> str | None:
    """<System Mode>: ``LTE``, ``LTE CAT-M1`` or ``LTE M1``, ``LTE NB-IOT`` or ``LTE NB``, ``WCDMA``, ``GSM``, ``NR5G_SA``."""
    name = mode.upper()
    if name.startswith("LTE"):
        return "CAT-M" if "M1" in name else "NB-IOT" if "NB" in name else "LTE"
    return {"WCDMA": "WCDMA", "GSM": "GSM", "NR5G_SA": "NR-SA", "NR5G-SA": "NR-SA"}.get(name)


def _cell(row: Sequence[str]) -> Reading:
    rat = _rat(at(row, 0))
    if rat is None or at(row, 1).lower() != "online":
        return Reading()
    mcc, _, mnc = at(row, 2).partition("-")
    reading = Reading(rat=rat, plmn=plmn(mcc, mnc))
    if rat == "WCDMA":
        return _wcdma(reading, row[3:])
    if rat == "GSM":
        return _gsm(reading, row[3:])
    if rat == "NR-SA":
        return _standalone(reading, row[3:])
    return _lte(reading, row[3:])


def _lte(reading: Reading, row: Sequence[str]) -> Reading:
    """``0x<TAC>,<cell>,<pci>,EUTRAN-BAND<n>,<earfcn>,<dlbw>,<ulbw>,<rsrq>,<rsrp>,<rssi>,<rssnr>``: the cell is decimal,
    bandwidths an index. An EARFCN of 4294967295 is none."""
    return replace(
        lte_levels(reading, at(row, 7), at(row, 8), at(row, 9), at(row, 10)),
        tac=area_code(hexadecimal(at(row, 0))),
        eci=cell_identity(whole(at(row, 1)), reading.rat),
        pci=code(at(row, 2), 0, 503),
        band=_band(at(row, 3)),
        earfcn=code(at(row, 4), 0, 262143),
        bandwidth_mhz=None if reading.rat == "NB-IOT" else lte_bandwidth_mhz(at(row, 5)),
    )


def _standalone(reading: Reading, row: Sequence[str]) -> Reading:
    """``0x<TAC>,<cell>,<pci>,NR5G_BAND<n>,<arfcn>,<rsrp>,<rsrq>,<snr>``."""
    found = nr_levels(at(row, 5), at(row, 6), at(row, 7))
    return replace(
        reading,
        rsrp_dbm=found.rsrp_dbm,
        rsrq_db=found.rsrq_db,
        sinr_db=found.sinr_db,
        sinr_code=found.sinr_code,
        tac=area_code(hexadecimal(at(row, 0)), 0xFFFFFF),
        eci=cell_identity(whole(at(row, 1)), "NR-SA"),
        pci=code(at(row, 2), 0, 1007),
        band=_band(at(row, 3)),
        earfcn=code(at(row, 4), 0, 3279165),
    )


def _with_secondary(reading: Reading, row: Sequence[str]) -> Reading:
    """``NR5G_NSA,<pci>,NR5G_BAND<n>,<arfcn>,<rsrp>,<rsrq>,<snr>[,<scs>,<bw>]``; the first firmware has no band."""
    rest = list(row[1:])
    band = _band(at(rest, 1))
    if band is not None:
        del rest[1]
    found = nr_levels(at(rest, 2), at(rest, 3), at(rest, 4))
    return replace(
        reading,
        rat="NR-NSA",
        nr_rsrp_dbm=found.rsrp_dbm,
        nr_rsrq_db=found.rsrq_db,
        nr_sinr_db=found.sinr_db,
        nr_sinr_code=found.sinr_code,
        nr_pci=code(at(rest, 0), 0, 1007),
        nr_arfcn=code(at(rest, 1), 1, 3279165),
        nr_band=band,
    )


def _wcdma(reading: Reading, row: Sequence[str]) -> Reading:
    """``0x<LAC>,<cell>,<band>,<psc>,<freq>,<ssc>,<ec/io>,<rscp>,<qual>,<rxlev>,<txpwr>``: Ec/Io and RSCP without their sign
    on most firmware. The oldest (SIM5218) prints no <txpwr>, and Ec/Io in halves; of others a number without sign and decimal may
    be either. A scrambling code is no PCI."""
    ecno, rscp = decimal(at(row, 6)), decimal(at(row, 7))
    if ecno is not None and ecno > 0 and "." not in at(row, 6):
        ecno = ecno / 2 if len(row) == 10 else None
    return replace(
        reading,
        lac=area_code(hexadecimal(at(row, 0))),
        ci=cell_identity(whole(at(row, 1)), "WCDMA"),
        ecno_db=None if ecno is None else within(-abs(ecno), -32, 0),
        rscp_dbm=None if rscp is None else within(-abs(rscp), -125, -20),
    )


def _gsm(reading: Reading, row: Sequence[str]) -> Reading:
    """``0x<LAC>,<cell>,<arfcn and band>,<rxlev>,…``: the level in dBm."""
    return replace(
        reading,
        lac=area_code(hexadecimal(at(row, 0))),
        ci=cell_identity(whole(at(row, 1)), "GSM"),
        rssi_dbm=within(decimal(at(row, 3)), -120, -20),
    )


def _engineering(rows: Sequence[Sequence[str]]) -> Reading:
    """``+CENG: <mode>,<cells>[,<n>,LTE CAT-M1]`` and ``+CENG: 0,"<cell>"``, the serving one. LTE: ``<earfcn>,<pci>,<rsrp>,<rssi>,<rsrq>,
    <sinr>,<tac>,<cell>,<mcc>,<mnc>,<txpwr>``; the scale of its SINR and the base of its ids are not known. 2G, ids hexadecimal: ``<arfcn>,
    <rxlev>,<rxqual>,<mcc>,<mnc>,<bsic>,<cell>,<rla>,<txp>,<lac>,<ta>``, in mode 3 ``<mcc>,<mnc>,<lac>,<cell>,<bsic>,<rxlev>``."""
    mode = next((row for row in rows if "," not in at(row, 1)), ())
    cell = next((at(row, 1).split(",") for row in rows if at(row, 0) == "0" and at(row, 1).count(",") >= 5), [])
    rat = _rat(at(mode, 3))
    if rat in ("LTE", "CAT-M", "NB-IOT"):
        return Reading(
            rat=rat,
            rsrp_dbm=within(decimal(at(cell, 2)), -156, -30),
            rsrq_db=within(decimal(at(cell, 4)), -50, 25),
            rssi_dbm=within(decimal(at(cell, 3)), -130, -10),
            plmn=plmn(at(cell, 8), at(cell, 9)),
            pci=code(at(cell, 1), 0, 503),
            earfcn=code(at(cell, 0), 0, 262143),
        )
    if len(cell) not in (6, 11):
        return Reading()
    mcc, mnc, lac, ci, rxlev = (cell[i] for i in ((0, 1, 2, 3, 5) if len(cell) == 6 else (3, 4, 9, 6, 1)))
    found = Reading(
        rat="GSM",
        plmn=plmn(mcc, mnc),
        lac=area_code(hexadecimal(lac)),
        ci=cell_identity(hexadecimal(ci), "GSM"),
    )
    return with_gsm_code(found, rxlev)


def _band(text: str) -> int | None:
    found = _BAND.match(text)
    return code(found.group(1), 1, 1024) if found else None
