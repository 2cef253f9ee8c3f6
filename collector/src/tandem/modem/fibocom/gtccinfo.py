"""Fibocom's +GTCCINFO: rows of cells, those of service first.

Source: FM350 AT command manual as quoted in public code, and answers of FM350 and FM160 as published. FM350 prints channels and
PCIs in decimal, the others in hexadecimal.
"""

from __future__ import annotations

from collections.abc import Sequence

from tandem.modem.base import Identity, Reading
from tandem.modem.bins import as_read, ss_rsrp_dbm, ss_rsrq_db, ss_sinr_db, with_lte_codes, with_secondary
from tandem.modem.scalars import (
    at,
    bandwidth_of_blocks_mhz,
    code,
    hexadecimal,
    lte_bandwidth_mhz,
    plmn,
    whole,
)
from tandem.modem.ts27007 import levels

Row = Sequence[str]
SERVING_COLUMNS = 14
SINR_SCALES_AGREE_DB = 3.0
"""+CESQ is asked a few milliseconds later: a reading of the SINR agrees with it when they are this near."""


def rows(lines: Sequence[str]) -> list[list[str]]:
    """The rows of service (``1,…``), with or without the command's prefix before them. Neighbours (``2,…``) have 12 columns."""
    found = [[value.strip() for value in line.removeprefix("+GTCCINFO:").split(",")] for line in lines]
    return [row for row in found if len(row) >= SERVING_COLUMNS and row[0] == "1"]


def decode(lines: Sequence[str], identity: Identity) -> Reading:
    """LTE, NR standalone, or both (NSA): LTE's quantities are the plain ones then."""
    served = {row[1]: row for row in rows(lines)}
    sixteens = _sixteens(identity, lines, served)
    ss_sinr = levels(lines).nr_sinr_db
    unit_mhz = 1.0 if sixteens else 0.2 if identity.says("FM350") else None
    if "4" in served:
        anchor = _lte(served["4"], sixteens)
        if "9" not in served:
            return anchor
        return with_secondary(anchor, _nr(served["9"], sixteens, ss_sinr, unit_mhz))
    if "9" in served:
        return _nr(served["9"], sixteens, ss_sinr, unit_mhz)
    return _wcdma(served["2"]) if "2" in served else Reading()


def _lte(row: Row, sixteens: bool) -> Reading:
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
        tac=_id(at(row, 4), 0xFFFD) or None,
        eci=_id(at(row, 5), 0xFFFFFFE),
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
        tac=_id(at(row, 4), 0xFFFFFD) or None,
        eci=_id(at(row, 5), 0xFFFFFFFFE),
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


def _wcdma(row: Row) -> Reading:
    """``1,2,<mcc>,<mnc>,<lac>,<ci>…``: levels are +CESQ's, as sources differ on the columns."""
    return Reading(
        rat="WCDMA",
        plmn=plmn(at(row, 2), at(row, 3)),
        lac=_id(at(row, 4), 0xFFFD) or None,
        ci=_id(at(row, 5), 0xFFFFFFE),
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


def _id(text: str, highest: int) -> int | None:
    """FFFF and 00FFFFFFF stand for none."""
    found = hexadecimal(text)
    return found if found is not None and found <= highest else None
