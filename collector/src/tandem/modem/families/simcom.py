"""SIMCom's +CPSI, or +CENG, with +CSQ and +CEREG of the standard.

Source: SIM7500/SIM7600, SIM7000, A7600 and SIM8200 series AT command manuals (CPSI) and SIM800's (CENG), as quoted in public code and
in dialogues that users published. What the scales of +CPSI are is worked out from each row: see ``levels``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import (
    area_code,
    at,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    plmn,
    whole,
    with_gsm_code,
    with_lte_codes,
    within,
)
from tandem.modem.ts27007 import all_lines, fill

TENTHS_BEYOND_DBM = -200.0
"""No RSRP is that low: such a number is in tenths."""

LOWEST_SNR_DB, HIGHEST_SNR_DB = -23.0, 40.0
"""The range of NR's SS-SINR (3GPP TS 38.133 table 10.1.16.1-1)."""


def lte_levels(reading: Reading, rsrq: str, rsrp: str, rssi: str, rssnr: str) -> Reading:
    """``reading`` with the levels of an LTE row. In the index firmware RSRP is −141 + v, RSRQ −20 + v/2; what its RSSI means is
    not known: it is not read, so that +CSQ's has its place. 255 is none."""
    level = decimal(rsrp)
    if level is None or level == 0:
        return replace(reading, sinr_code=_code(rssnr))
    if level > 0:
        snr = None if rssnr == "255" else _code(rssnr)
        return replace(
            with_lte_codes(reading, rsrp, rsrq),
            sinr_code=snr,
            sinr_db=None if snr is None else within(float(snr), -20, 40),
        )
    step = 0.1 if level < TENTHS_BEYOND_DBM else 1.0
    snr = _code(rssnr)
    return replace(
        reading,
        rsrp_dbm=within(_scaled(rsrp, step), -156, -30),
        rsrq_db=within(_scaled(rsrq, step), -50, 25),
        rssi_dbm=within(_scaled(rssi, step), -130, -10),
        sinr_code=snr,
        sinr_db=_rssnr_db(snr),
    )


def _rssnr_db(found: int | None) -> float | None:
    """2v − 20 (0 to 25). A number that this scale cannot have (below 0, or 26 to 40) is dB as it is."""
    if found is None:
        return None
    return 2.0 * found - 20 if 0 <= found <= 25 else within(float(found), -20, 40)


@dataclass(frozen=True)
class NrLevels:
    """dBm and dB; ``sinr_code``: the number as printed, where it is a whole one."""

    rsrp_dbm: float | None = None
    rsrq_db: float | None = None
    sinr_db: float | None = None
    sinr_code: int | None = None


def nr_levels(first: str, second: str, snr: str) -> NrLevels:
    """RSRP, RSRQ and SNR of an NR row: all in tenths (``-960,-120,95``), or all in decibels with RSRQ first (``-12,-86,8.5``).

    RSRP is the one that is further below zero. −32768 is none. A SNR with a decimal is dB; beside tenths some firmware prints tenths
    (``290``) and other, RedCap's too, dB (``40``): it is decoded where it can only be tenths.
    """
    levels = [value for value in (decimal(first), decimal(second)) if value is not None and -2000 < value < 0]
    if len(levels) != 2:
        return NrLevels(sinr_code=_code(snr))
    rsrp, rsrq = sorted(levels)
    step = 0.1 if rsrp < TENTHS_BEYOND_DBM else 1.0
    sinr = decimal(snr)
    if sinr is not None and "." not in snr and step < 1:
        sinr = None if within(sinr, LOWEST_SNR_DB, HIGHEST_SNR_DB) is not None else round(sinr * step, 1)
    return NrLevels(
        within(round(rsrp * step, 1), -157, -30),
        within(round(rsrq * step, 1), -50, 25),
        within(sinr, -40, 60),
        _code(snr),
    )


def _scaled(text: str, step: float) -> float | None:
    found = decimal(text)
    return None if found is None else round(found * step, 1)


def _code(text: str) -> int | None:
    """A whole number that means something: −3276 and −32768 do not."""
    return code(text, -3000, 3000)


_BAND = re.compile(r"(?:EUTRAN|NR5G)[-_]BAND([0-9]{1,3})\Z", re.IGNORECASE)


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
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


def _known(identity: Identity) -> bool:
    """By the manufacturer's name, which the model's often repeats; of A7600, A7670 and their sisters what is left of it is
    ``INCORPORATED``."""
    return identity.says("simcom") or identity.manufacturer.upper().strip() == "INCORPORATED"


# The serving cell, and what the standard tells beside it: searching or denied, and RSSI where +CPSI has none.
DRIVER = Driver(
    "simcom",
    setup=("AT+CEREG=2",),
    poll=("AT+CPSI?", "AT+CSQ;+CEREG?"),
    decode=decode,
    knows=_known,
    reads=("AT+CENG?",),
)
