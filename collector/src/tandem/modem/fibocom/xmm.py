"""Intel's commands on Fibocom L850 and L860: +XMCI, +XCESQ, +XLEC; and +RSRP and +RSRQ, which FM350 has too.

Source: L850-GL and L860-GL AT command manuals and answers of both as quoted in public code; ModemManager's decoding of +XCESQ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.bins import scaled, with_gsm_code, with_lte_codes, with_wcdma_codes
from tandem.modem.scalars import at, code, decimal, hexadecimal, lte_bandwidth_mhz, plmn, within
from tandem.modem.ts27007 import last_values

Row = Sequence[str]


def decode(lines: Sequence[str]) -> Reading:
    """The serving cell of +XMCI (its levels are of the same moment), what it lacks of levels from +XCESQ, the carrier from +XLEC."""
    reading = Reading()
    for row in (values(line) for line in lines if prefix(line) == "+XMCI"):
        reader = {"0": _gsm, "2": _wcdma, "4": _lte}.get(at(row, 0))
        if reader is not None:
            reading = reader(row)
    reading = _levels(reading, last_values(lines, "+XCESQ"))
    if reading.rat in (None, "LTE"):
        reading = _printed(reading, last_values(lines, "+RSRP"), last_values(lines, "+RSRQ"))
    return _carrier(reading, last_values(lines, "+XLEC")) if reading.rat in (None, "LTE") else reading


def _lte(row: Row) -> Reading:
    """``4,<mcc>,<mnc>,<tac>,<eci>,<pci>,<dl earfcn>,<ul earfcn>,<path loss>,<rsrp>,<rsrq>,<rssnr>,<ta>,<cqi>``; ids are hex."""
    return _with_lte(
        Reading(
            rat="LTE",
            plmn=plmn(at(row, 1), at(row, 2)),
            tac=_id(at(row, 3), 0xFFFD),
            eci=_id(at(row, 4), 0xFFFFFFE),
            pci=_id(at(row, 5), 503),
            earfcn=_id(at(row, 6), 262143),
        ),
        at(row, 9),
        at(row, 10),
        at(row, 11),
    )


def _with_lte(reading: Reading, rsrp: str, rsrq: str, snr: str) -> Reading:
    """RSRP and RSRQ are coded as +CESQ's; the SINR is in halves of a decibel, signed."""
    sinr = code(snr, -100, 100)
    return replace(with_lte_codes(reading, rsrp, rsrq), sinr_code=sinr, sinr_db=scaled(sinr, 0.5, 0, 100, -100))


def _wcdma(row: Row) -> Reading:
    """``2,<mcc>,<mnc>,<lac>,<ci>,<psc>,<dl uarfcn>,<ul uarfcn>,<path loss>,<rssi>,<rscp>,<ec/n0>``; the last two as +CESQ's."""
    found = Reading(
        rat="WCDMA",
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_id(at(row, 3), 0xFFFD),
        ci=_id(at(row, 4), 0xFFFFFFE),
    )
    return with_wcdma_codes(found, at(row, 10), at(row, 11))


def _gsm(row: Row) -> Reading:
    """``0,<mcc>,<mnc>,<lac>,<ci>,<bsic>,<rxlev>,<ber>…``; the level as +CESQ's."""
    found = Reading(
        rat="GSM", plmn=plmn(at(row, 1), at(row, 2)), lac=_id(at(row, 3), 0xFFFD), ci=_id(at(row, 4), 0xFFFE)
    )
    return with_gsm_code(found, at(row, 6))


def _levels(reading: Reading, row: Row) -> Reading:
    """``+XCESQ: <n>,<rxlev>,<ber>,<rscp>,<ec/n0>,<rsrq>,<rsrp>,<rssnr>``; L860 prints four more, for NR, which it has not.

    255 (99 for 2G) is not known. Fills what is missing; the technology is the one whose levels are known.
    """
    lte = _with_lte(Reading(rat="LTE"), at(row, 6), at(row, 5), at(row, 7))
    wcdma = with_wcdma_codes(Reading(rat="WCDMA"), at(row, 3), at(row, 4))
    gsm = with_gsm_code(Reading(rat="GSM"), at(row, 1))
    known = {"LTE": lte.rsrp_dbm, "WCDMA": wcdma.rscp_dbm, "GSM": gsm.rssi_dbm}
    rat = reading.rat or next((name for name, level in known.items() if level is not None), None)
    told = next((one for one in (lte, wcdma, gsm) if one.rat == rat), None)
    mine = (reading.rsrp_code, reading.rscp_code, reading.rssi_code)
    if told is None or mine != (None, None, None):
        return reading
    return replace(told, plmn=reading.plmn, tac=reading.tac, eci=reading.eci, lac=reading.lac, ci=reading.ci,
                   pci=reading.pci, earfcn=reading.earfcn)  # fmt: skip


def _printed(reading: Reading, power: Row, quality: Row) -> Reading:
    """``+RSRP: <pci>,<earfcn>,<rsrp>[,<further cells>]`` and ``+RSRQ`` likewise, in dBm and dB, the serving cell first: for what is
    missing, where they name the reading's own cell."""
    rows = [row for row in (power, quality) if len(row) >= 3]
    cells = {(code(at(row, 0), 0, 503), code(at(row, 1), 0, 262143)) for row in rows}
    if len(cells) != 1:
        return reading
    pci, earfcn = cells.pop()
    if None in (pci, earfcn) or reading.pci not in (None, pci) or reading.earfcn not in (None, earfcn):
        return reading
    reading = replace(reading, rat="LTE", pci=pci, earfcn=earfcn)
    if reading.rsrp_dbm is None:
        reading = replace(reading, rsrp_dbm=within(decimal(at(power, 2)), -156, -30))
    if reading.rsrq_db is None:
        reading = replace(reading, rsrq_db=within(decimal(at(quality, 2)), -50, 25))
    return reading


def _carrier(reading: Reading, row: Row) -> Reading:
    """``+XLEC: <n>,<cells>,<bandwidth index>[,<bandwidth index>…],BAND_LTE_<band>[,…]``: the first is the primary cell.

    No cells: it is not on LTE.
    """
    if code(at(row, 1), 1, 8) is None:
        return reading
    band = next((value.removeprefix("BAND_LTE_") for value in row if value.startswith("BAND_LTE_")), "")
    return replace(reading, rat="LTE", bandwidth_mhz=lte_bandwidth_mhz(at(row, 2)), band=code(band, 1, 255))


def _id(text: str, highest: int) -> int | None:
    """A hexadecimal number with 0x; 0xFFFE, 0xFFFFFFFF and 0x7FFFFFFF stand for none and are beyond ``highest``."""
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None
