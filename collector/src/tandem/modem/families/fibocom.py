"""Fibocom's cell commands by model: Intel's +XMCI on L8xx, +GTCCINFO on FM350 and its kin; the rest by the standard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Commands, Driver, Identity, Reading
from tandem.modem.scales import (
    as_read,
    at,
    bandwidth_of_blocks_mhz,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    plmn,
    scaled,
    ss_rsrp_dbm,
    ss_rsrq_db,
    ss_sinr_db,
    whole,
    with_gsm_code,
    with_lte_codes,
    with_secondary,
    with_wcdma_codes,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values, levels

Row = Sequence[str]
SERVING_COLUMNS = 14
SINR_SCALES_AGREE_DB = 3.0
"""+CESQ is asked a few milliseconds later: a reading of the SINR agrees with it when they are this near."""


def rows(lines: Sequence[str]) -> list[list[str]]:
    """The rows of service (``1,…``), with or without the command's prefix before them. Neighbours (``2,…``) have 12 columns."""
    found = [[value.strip() for value in line.removeprefix("+GTCCINFO:").split(",")] for line in lines]
    return [row for row in found if len(row) >= SERVING_COLUMNS and row[0] == "1"]


def _gtccinfo(lines: Sequence[str], identity: Identity) -> Reading:
    """LTE, NR standalone, or both (NSA): LTE's quantities are the plain ones then."""
    served = {row[1]: row for row in rows(lines)}
    sixteens = _sixteens(identity, lines, served)
    ss_sinr = levels(lines).nr_sinr_db
    unit_mhz = 1.0 if sixteens else 0.2 if identity.says("FM350") else None
    if "4" in served:
        anchor = _gtccinfo_lte(served["4"], sixteens)
        if "9" not in served:
            return anchor
        return with_secondary(anchor, _nr(served["9"], sixteens, ss_sinr, unit_mhz))
    if "9" in served:
        return _nr(served["9"], sixteens, ss_sinr, unit_mhz)
    return _gtccinfo_wcdma(served["2"]) if "2" in served else Reading()


def _gtccinfo_lte(row: Row, sixteens: bool) -> Reading:
    """``1,4,<mcc>,<mnc>,<tac>,<eci>,<earfcn>,<pci>,100+<band>,<bandwidth>,<sinr>,<rxlev>,<rsrp>,<rsrq>``; ids are hex.

    RSRP −141 + v and RSRQ −20 + v/2 as +CESQ's, SINR in halves of a decibel, signed. Bandwidth in resource blocks; with a
    band below 100 it is an index.
    """
    sinr = code(at(row, 10), -100, 100)
    label = whole(at(row, 8)) or 0
    found = Reading(
        rat="LTE",
        sinr_code=sinr,
        sinr_db=None if sinr is None else sinr / 2,
        plmn=plmn(at(row, 2), at(row, 3)),
        tac=_gtccinfo_id(at(row, 4), 0xFFFD) or None,
        eci=_gtccinfo_id(at(row, 5), 0xFFFFFFE),
        pci=_number(at(row, 7), 503, sixteens),
        earfcn=_number(at(row, 6), 262143, sixteens),
        band=label - 100 if 100 < label < 200 else label if 0 < label < 100 else None,
        bandwidth_mhz=(bandwidth_of_blocks_mhz if label >= 100 else lte_bandwidth_mhz)(at(row, 9)),
    )
    return with_lte_codes(found, at(row, 12), at(row, 13))


def _nr(row: Row, sixteens: bool, ss_sinr: float | None, unit_mhz: float | None) -> Reading:
    """``1,9,…`` with the same columns; band ``50<band>``, levels by the SS mapping of +CESQ; bandwidth in ``unit_mhz``."""
    rsrp, rsrq, sinr = as_read(at(row, 12)), as_read(at(row, 13)), code(at(row, 10), -100, 127)
    label = at(row, 8)
    return Reading(
        rat="NR-SA",
        rsrp_code=rsrp,
        rsrp_dbm=ss_rsrp_dbm(rsrp),
        rsrq_code=rsrq,
        rsrq_db=ss_rsrq_db(rsrq),
        sinr_code=sinr,
        sinr_db=nr_sinr(sinr, ss_sinr),
        plmn=plmn(at(row, 2), at(row, 3)),
        tac=_gtccinfo_id(at(row, 4), 0xFFFFFD) or None,
        eci=_gtccinfo_id(at(row, 5), 0xFFFFFFFFE),
        pci=_number(at(row, 7), 1007, sixteens),
        earfcn=_number(at(row, 6), 3279165, sixteens),
        band=code(label[2:] if label.startswith("50") else label, 1, 512),
        bandwidth_mhz=_width(at(row, 9), unit_mhz),
    )


_NR_WIDTHS_MHZ = (5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90, 100)


def _width(text: str, unit_mhz: float | None) -> float | None:
    """A bandwidth of FR1 (3GPP TS 38.101-1 table 5.3.5-1): in fifths of a MHz on FM350, as LTE's resource blocks of 0.2 MHz are, in
    MHz on the others. Of a model that is not known (None), what only one of the two can be."""
    found = whole(text)
    units = (0.2, 1.0) if unit_mhz is None else (unit_mhz,)
    possible = [w for w in (round((found or 0) * unit, 1) for unit in units) if w in _NR_WIDTHS_MHZ]
    return float(possible[0]) if len(possible) == 1 else None


def nr_sinr(found: int | None, judge: float | None) -> float | None:
    """SINR of NR in dB.

    Some firmware prints the code of the SS mapping, (v − 47)/2, other dB as it is. The SS-SINR of +CESQ (``judge``) decides:
    the nearer of the two when it is near enough, else +CESQ's own. Without it: above 40 it can only be a code, below zero
    only dB; between them it may be either, and the SINR is None.
    """
    if judge is not None:
        scales = () if found is None else (float(found), (found - 47) / 2)
        nearest = min(scales, key=lambda scale: abs(scale - judge), default=judge)
        return nearest if abs(nearest - judge) <= SINR_SCALES_AGREE_DB else judge
    if found is None or 0 <= found <= 40:
        return None
    return float(found) if found < 0 else ss_sinr_db(found)


def _gtccinfo_wcdma(row: Row) -> Reading:
    """``1,2,<mcc>,<mnc>,<lac>,<ci>…``: levels are +CESQ's, as sources differ on the columns."""
    return Reading(
        rat="WCDMA",
        plmn=plmn(at(row, 2), at(row, 3)),
        lac=_gtccinfo_id(at(row, 4), 0xFFFD) or None,
        ci=_gtccinfo_id(at(row, 5), 0xFFFFFFE),
    )


def _sixteens(identity: Identity, lines: Sequence[str], served: dict[str, list[str]]) -> bool:
    """Whether channels and PCIs are hexadecimal: by model, by a heading (``NR service cell:``), which FM350 does not print, and
    where a letter is among them."""
    if identity.says("FM150", "FM160", "FM190", "FM101"):
        return True
    if not identity.says("FM350") and any("service cell:" in line.lower() for line in lines):
        return True
    return any(char in "ABCDEF" for row in served.values() for i in (6, 7) for char in at(row, i).upper())


def _number(text: str, highest: int, sixteens: bool) -> int | None:
    found = hexadecimal(text) if sixteens else whole(text)
    return found if found is not None and 0 <= found <= highest else None


def _gtccinfo_id(text: str, highest: int) -> int | None:
    """FFFF and 00FFFFFFF stand for none."""
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None


def _xmm(lines: Sequence[str]) -> Reading:
    """The serving cell of +XMCI (its levels are of the same moment), what it lacks of levels from +XCESQ, the carrier from +XLEC."""
    reading = Reading()
    for row in (values(line) for line in lines if prefix(line) == "+XMCI"):
        reader = {"0": _gsm, "2": _xmm_wcdma, "4": _xmm_lte}.get(at(row, 0))
        if reader is not None:
            reading = reader(row)
    reading = _levels(reading, last_values(lines, "+XCESQ"))
    if reading.rat in (None, "LTE"):
        reading = _printed(reading, last_values(lines, "+RSRP"), last_values(lines, "+RSRQ"))
    return _carrier(reading, last_values(lines, "+XLEC")) if reading.rat in (None, "LTE") else reading


def _xmm_lte(row: Row) -> Reading:
    """``4,<mcc>,<mnc>,<tac>,<eci>,<pci>,<dl earfcn>,<ul earfcn>,<path loss>,<rsrp>,<rsrq>,<rssnr>,<ta>,<cqi>``; ids are hex."""
    return _with_lte(
        Reading(
            rat="LTE",
            plmn=plmn(at(row, 1), at(row, 2)),
            tac=_xmm_id(at(row, 3), 0xFFFD),
            eci=_xmm_id(at(row, 4), 0xFFFFFFE),
            pci=_xmm_id(at(row, 5), 503),
            earfcn=_xmm_id(at(row, 6), 262143),
        ),
        at(row, 9),
        at(row, 10),
        at(row, 11),
    )


def _with_lte(reading: Reading, rsrp: str, rsrq: str, snr: str) -> Reading:
    """RSRP and RSRQ are coded as +CESQ's; the SINR is in halves of a decibel, signed."""
    sinr = code(snr, -100, 100)
    return replace(with_lte_codes(reading, rsrp, rsrq), sinr_code=sinr, sinr_db=scaled(sinr, 0.5, 0, 100, -100))


def _xmm_wcdma(row: Row) -> Reading:
    """``2,<mcc>,<mnc>,<lac>,<ci>,<psc>,<dl uarfcn>,<ul uarfcn>,<path loss>,<rssi>,<rscp>,<ec/n0>``; the last two as +CESQ's."""
    found = Reading(
        rat="WCDMA",
        plmn=plmn(at(row, 1), at(row, 2)),
        lac=_xmm_id(at(row, 3), 0xFFFD),
        ci=_xmm_id(at(row, 4), 0xFFFFFFE),
    )
    return with_wcdma_codes(found, at(row, 10), at(row, 11))


def _gsm(row: Row) -> Reading:
    """``0,<mcc>,<mnc>,<lac>,<ci>,<bsic>,<rxlev>,<ber>…``; the level as +CESQ's."""
    found = Reading(
        rat="GSM", plmn=plmn(at(row, 1), at(row, 2)), lac=_xmm_id(at(row, 3), 0xFFFD), ci=_xmm_id(at(row, 4), 0xFFFE)
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


def _xmm_id(text: str, highest: int) -> int | None:
    """A hexadecimal number with 0x; 0xFFFE, 0xFFFFFFFF and 0x7FFFFFFF stand for none and are beyond ``highest``."""
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """Whichever of the two kinds of command answered; TAC, ECI and PLMN from +CEREG and +COPS where it does not tell them.

    Neither tells whether RRC is connected: a registered modem's state is ``unknown``.
    """
    lines = all_lines(responses)
    reading = _gtccinfo(lines, identity)
    if reading.rat is None:
        reading = _xmm(lines)
    return fill(reading, lines)


def _asked(identity: Identity) -> Commands:
    """L8xx have Intel's commands, the others +GTCCINFO. One that has not told its name is asked as an L8xx, the most common one."""
    if identity.says("FM350", "FM150", "FM160", "FM190", "FM101"):
        return ("AT+GTCCINFO?", "AT+CSQ;+CESQ", "AT+CEREG?;+COPS?")
    return ("AT+XMCI=1", "AT+XCESQ?", "AT+CSQ;+CEREG?;+COPS?", "AT+XLEC?")


DRIVER = Driver("fibocom", poll=_asked, decode=decode, knows=("fibocom",), reads=("AT+RSRP?", "AT+RSRQ?"))
