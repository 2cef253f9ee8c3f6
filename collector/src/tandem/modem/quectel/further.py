"""Quectel's +QNWINFO, +QCAINFO and its levels by antenna, +QRSRP, +QRSRQ, +QSINR: what is asked beside or instead of +QENG by others.

Source: Quectel EC25, BG96 and RG50xQ/RM5xxQ AT commands manuals (QNWINFO, QCAINFO, QRSRP, QRSRQ, QSINR), as quoted in public code.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.bins import with_secondary
from tandem.modem.scalars import at, bandwidth_of_blocks_mhz, code, decimal, nr_bandwidth_mhz, plmn, within

Row = Sequence[str]
CAT_M = ("EMTC", "CAT-M", "CAT-M1")
NB_IOT = ("NBIOT", "CAT-NB", "CAT-NB1", "NTN NBIOT")
"""What its models call the two narrow technologies of LTE, in capitals; the last is NB-IoT from a satellite."""
_BAND = re.compile(r"(LTE|NR5G|NR)\s*(?:BAND\s*|N)([0-9]{1,3})\Z", re.IGNORECASE)
_RANGES = {"+QRSRP": ("rsrp_dbm", -139, -30), "+QRSRQ": ("rsrq_db", -50, 25), "+QSINR": ("sinr_db", -40, 60)}
"""−140 of a RSRP, 0 of a branch that is off, and −32768 are none."""


def with_further(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks; nothing of another technology than its own."""
    if reading.state == "unknown" and any(_silent(line) for line in lines if prefix(line) == "+QNWINFO"):
        reading = replace(reading, state="no_service")
    told = _network([values(line) for line in lines if prefix(line) == "+QNWINFO"])
    for other in (_carriers([values(line) for line in lines if prefix(line) == "+QCAINFO"]), _antennas(lines)):
        if other.rat in (None, told.rat) or told.rat is None:
            told = _filled(told, other)
    if told.rat is None or reading.rat not in (None, told.rat) or _elsewhere(reading, told):
        return reading
    return _filled(reading, told)


def _silent(line: str) -> bool:
    return at(values(line), 0).lower() == "no service"


def _elsewhere(reading: Reading, told: Reading) -> bool:
    """Whether the cell changed between the two answers."""
    pairs = ((reading.earfcn, told.earfcn), (reading.plmn, told.plmn))
    return any(None not in pair and pair[0] != pair[1] for pair in pairs)


def _filled(reading: Reading, told: Reading) -> Reading:
    missing: dict[str, Any] = {
        name: value
        for name, value in told.as_fields().items()
        if name not in ("state", "enb_id", "sector_id") and value is not None and getattr(reading, name) is None
    }
    return replace(reading, rat=reading.rat or told.rat, **missing)


def _network(rows: Sequence[Row]) -> Reading:
    """``+QNWINFO: "<technology>","<mcc mnc>","<band>",<channel>``; NSA is a line of LTE and one of NR."""
    cells = [cell for cell in map(_cell, rows) if cell.rat is not None]
    return _joined(cells)


def _cell(row: Row) -> Reading:
    name, network = at(row, 0).upper(), at(row, 1)
    rat = _technology(name)
    reading = Reading(rat=rat, plmn=plmn(network[:3], network[3:]))
    if rat in (None, "WCDMA", "GSM"):
        return reading
    label = _BAND.match(at(row, 2))
    highest = 3279165 if rat == "NR-SA" else 262143
    band = None if label is None else code(label.group(2), 1, 1024)
    return replace(reading, band=band, earfcn=code(at(row, 3), 0, highest))


def _carriers(rows: Sequence[Row]) -> Reading:
    """``+QCAINFO: "PCC",<channel>,<bandwidth>,"<band>",<state>,<pci>,…`` of LTE, the bandwidth in resource blocks. NR (``NR5G BAND 78``)
    has an index for it, and <state> only in a longer row of a secondary carrier; RM500U (``NR N78``) prints MHz and always <state>.
    A secondary carrier (``"SCC"``) of NR beside a primary one of LTE is NSA's; others are not read."""
    primary = next((_carrier(row) for row in rows if at(row, 0).upper() == "PCC"), Reading())
    secondary = next((cell for cell in map(_carrier, rows) if cell.rat == "NR-SA"), None)
    return with_secondary(primary, secondary) if primary.rat == "LTE" and secondary is not None else primary


def _carrier(row: Row) -> Reading:
    label = _BAND.match(at(row, 3))
    if label is None:
        return Reading()
    band = code(label.group(2), 1, 1024)
    if label.group(1).upper() == "LTE":
        pci, width = code(at(row, 5), 0, 503), bandwidth_of_blocks_mhz(at(row, 2))
        return Reading(rat="LTE", earfcn=code(at(row, 1), 0, 262143), bandwidth_mhz=width, band=band, pci=pci)
    unisoc = label.group(1).upper() == "NR"
    has_state = unisoc or (at(row, 0).upper() == "SCC" and len(row) > 5)
    pci, width = code(at(row, 5 if has_state else 4), 0, 1007), nr_bandwidth_mhz(at(row, 2), unisoc)
    return Reading(rat="NR-SA", earfcn=code(at(row, 1), 1, 3279165), bandwidth_mhz=width, band=band, pci=pci)


def _technology(name: str) -> str | None:
    """``FDD LTE``, ``TDD NR5G``, ``NR5G-SA``, ``eMTC``, ``CAT-M1``, ``NBIoT``, ``HSPA+``, ``EDGE`` …"""
    for words, rat in (
        (CAT_M, "CAT-M"),
        (NB_IOT, "NB-IOT"),
        (("FDD LTE", "TDD LTE", "LTE"), "LTE"),
        (("FDD NR5G", "TDD NR5G", "NR5G-SA", "NR5G"), "NR-SA"),
        (("WCDMA", "HSDPA", "HSUPA", "HSPA", "HSPA+", "UMTS"), "WCDMA"),
        (("GSM", "GPRS", "EDGE"), "GSM"),
    ):
        if name in words:
            return rat
    return None


def _antennas(lines: Sequence[str]) -> Reading:
    """``+QRSRP: <first antenna>,<second>,<third>,<fourth>[,<technology>]``, a line for each technology; the first antenna is the
    main one. Older firmware prints no technology: an LTE modem's then."""
    cells: dict[str, Reading] = {}
    for line in lines:
        limits = _RANGES.get(prefix(line) or "")
        if limits is None:
            continue
        row = values(line)
        rat = {"": "LTE", "LTE": "LTE", "NR5G": "NR-SA"}.get(at(row, 4).upper())
        level = within(decimal(at(row, 0)), limits[1], limits[2])
        if rat is not None and level is not None:
            found: dict[str, Any] = {limits[0]: level}
            cells[rat] = replace(cells.get(rat, Reading(rat=rat)), **found)
    return _joined(list(cells.values()))


def _joined(cells: Sequence[Reading]) -> Reading:
    """LTE beside NR is NSA."""
    by_rat = {cell.rat: cell for cell in cells}
    if "LTE" in by_rat and "NR-SA" in by_rat:
        return with_secondary(by_rat["LTE"], by_rat["NR-SA"])
    return cells[-1] if cells else Reading()
