"""Intel's commands on Fibocom L850 and L860: +XMCI, +XCESQ, +XLEC.

Source: L850-GL and L860-GL AT command manuals and answers of both as quoted in public code; ModemManager's decoding of +XCESQ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.scalars import at, code, hexadecimal, plmn
from tandem.modem.ts27007 import last_values

BANDWIDTHS_MHZ = (1.4, 3.0, 5.0, 10.0, 15.0, 20.0)
Row = Sequence[str]


def decode(lines: Sequence[str]) -> Reading:
    """The serving cell of +XMCI (its levels are of the same moment), what it lacks of levels from +XCESQ, the carrier from +XLEC."""
    reading = Reading()
    for row in (values(line) for line in lines if prefix(line) == "+XMCI"):
        reader = {"0": _gsm, "2": _wcdma, "4": _lte}.get(at(row, 0))
        if reader is not None:
            reading = reader(row)
    reading = _levels(reading, last_values(lines, "+XCESQ"))
    return _carrier(reading, last_values(lines, "+XLEC")) if reading.rat in (None, "LTE") else reading


def _lte(row: Row) -> Reading:
    """``4,<mcc>,<mnc>,<tac>,<eci>,<pci>,<dl earfcn>,<ul earfcn>,<path loss>,<rsrp>,<rsrq>,<rssnr>,<ta>,<cqi>``; ids are hex."""
    rsrp, rsrq, sinr = code(at(row, 9), 0, 97), code(at(row, 10), 0, 34), code(at(row, 11), -100, 100)
    return _with_lte(
        Reading(
            rat="LTE",
            plmn=plmn(at(row, 1), at(row, 2)),
            tac=_id(at(row, 3), 0xFFFD),
            eci=_id(at(row, 4), 0xFFFFFFE),
            pci=_id(at(row, 5), 503),
            earfcn=_id(at(row, 6), 262143),
        ),
        rsrp,
        rsrq,
        sinr,
    )


def _with_lte(reading: Reading, rsrp: int | None, rsrq: int | None, sinr: int | None) -> Reading:
    """RSRP and RSRQ are coded as +CESQ's; the SINR is in halves of a decibel, signed."""
    return replace(
        reading,
        rsrp_code=rsrp,
        rsrp_dbm=None if rsrp is None else rsrp - 141.0,
        rsrq_code=rsrq,
        rsrq_db=None if rsrq is None else rsrq / 2 - 20.0,
        sinr_code=sinr,
        sinr_db=None if sinr is None else sinr / 2,
    )


def _wcdma(row: Row) -> Reading:
    """``2,<mcc>,<mnc>,<lac>,<ci>,<psc>,<dl uarfcn>,<ul uarfcn>,<path loss>,<rssi>,<rscp>,<ec/n0>``; the last two as +CESQ's."""
    return _with_wcdma(
        Reading(
            rat="WCDMA",
            plmn=plmn(at(row, 1), at(row, 2)),
            lac=_id(at(row, 3), 0xFFFD),
            ci=_id(at(row, 4), 0xFFFFFFE),
        ),
        code(at(row, 10), 0, 96),
        code(at(row, 11), 0, 49),
    )


def _with_wcdma(reading: Reading, rscp: int | None, ecno: int | None) -> Reading:
    return replace(
        reading,
        rscp_code=rscp,
        rscp_dbm=None if rscp is None else rscp - 121.0,
        ecno_code=ecno,
        ecno_db=None if ecno is None else ecno / 2 - 24.5,
    )


def _gsm(row: Row) -> Reading:
    """``0,<mcc>,<mnc>,<lac>,<ci>,<bsic>,<rxlev>,<ber>…``; the level as +CESQ's."""
    return _with_gsm(
        Reading(rat="GSM", plmn=plmn(at(row, 1), at(row, 2)), lac=_id(at(row, 3), 0xFFFD), ci=_id(at(row, 4), 0xFFFE)),
        code(at(row, 6), 0, 63),
    )


def _with_gsm(reading: Reading, level: int | None) -> Reading:
    return replace(reading, rssi_code=level, rssi_dbm=None if level is None else level - 111.0)


def _levels(reading: Reading, row: Row) -> Reading:
    """``+XCESQ: <n>,<rxlev>,<ber>,<rscp>,<ec/n0>,<rsrq>,<rsrp>,<rssnr>``; L860 prints four more, for NR, which it has not.

    255 (99 for 2G) is not known. Fills what is missing; the technology is the one whose levels are known.
    """
    rsrp, rsrq, sinr = code(at(row, 6), 0, 97), code(at(row, 5), 0, 34), code(at(row, 7), -100, 100)
    rscp, ecno, level = code(at(row, 3), 0, 96), code(at(row, 4), 0, 49), code(at(row, 1), 0, 63)
    rat = reading.rat
    if rat is None:
        rat = "LTE" if rsrp is not None else "WCDMA" if rscp is not None else "GSM" if level is not None else None
        reading = replace(reading, rat=rat)
    if rat == "LTE" and reading.rsrp_code is None:
        return _with_lte(reading, rsrp, rsrq, sinr)
    if rat == "WCDMA" and reading.rscp_code is None:
        return _with_wcdma(reading, rscp, ecno)
    if rat == "GSM" and reading.rssi_code is None:
        return _with_gsm(reading, level)
    return reading


def _carrier(reading: Reading, row: Row) -> Reading:
    """``+XLEC: <n>,<cells>,<bandwidth index>[,<bandwidth index>…],BAND_LTE_<band>[,…]``: the first is the primary cell.

    No cells: it is not on LTE.
    """
    if code(at(row, 1), 1, 8) is None:
        return reading
    index = code(at(row, 2), 0, len(BANDWIDTHS_MHZ) - 1)
    band = next((value.removeprefix("BAND_LTE_") for value in row if value.startswith("BAND_LTE_")), "")
    return replace(
        reading, rat="LTE", bandwidth_mhz=None if index is None else BANDWIDTHS_MHZ[index], band=code(band, 1, 255)
    )


def _id(text: str, highest: int) -> int | None:
    """A hexadecimal number with 0x; 0xFFFE, 0xFFFFFFFF and 0x7FFFFFFF stand for none and are beyond ``highest``."""
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None
