"""Quectel's +QENG="servingcell" and +QCSQ.

Source: Quectel EC25/EC21/EC20, EG06 and BG96 AT commands manuals (QENG, QCSQ) and RG50xQ/RM5xxQ AT commands manual (QENG),
as quoted in public code. The columns differ with the radio technology; a firmware may add columns at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tandem.at.dialogue import Response
from tandem.at.grammar import prefix, values
from tandem.modem.base import Driver, Identity, Reading
from tandem.modem.scales import (
    area_code,
    at,
    bandwidth_of_blocks_mhz,
    cell_identity,
    code,
    decimal,
    hexadecimal,
    lte_bandwidth_mhz,
    nr_bandwidth_mhz,
    plmn,
    whole,
    with_secondary,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values

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
    cells = [cell for cell in map(_further_cell, rows) if cell.rat is not None]
    return _joined(cells)


def _further_cell(row: Row) -> Reading:
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


LOWEST_DB, HIGHEST_DB = -20.0, 30.0
"""The range of all three scales. What a maker prints as it is may go somewhat beyond."""

MARGIN_DB = 10.0
"""How far beyond."""

AGREE_DB = 3.0
"""A reading of +QENG's SINR counts as agreeing with +QCSQ's when they are this near: they are a few milliseconds apart."""

_LTE_SCALES = ("LTE", *CAT_M, *NB_IOT)


def lte_sinr_db(found: int | None, qcsq: Sequence[str]) -> float | None:
    """SINR of an LTE cell in dB. ``found``: +QENG's number; ``qcsq``: +QCSQ's values.

    +QCSQ decides: the nearest of the three scales when one is near enough, else its own value. Without it a number that only
    one scale can have tells its scale: below 0 it is dB, beyond 40 it is fifths. In between nothing tells it: None.
    """
    asked = code(at(qcsq, 3), 0, 250) if at(qcsq, 0).upper() in _LTE_SCALES else None
    if asked is not None:
        judge = round(asked / 5 - 20, 1)
        if found is None:
            return judge
        nearest = min(_scales(found), key=lambda scaled: abs(scaled - judge), default=judge)
        return nearest if abs(nearest - judge) <= AGREE_DB else judge
    possible = _scales(found) if found is not None else []
    return possible[0] if len(possible) == 1 else None


def nr_sinr_db(found: int | None) -> float | None:
    """SINR of a standalone NR cell as +QCSQ prints it: dB or, on other firmware, fifths. None where both are possible."""
    possible = [] if found is None else [*_as_is(found), *_fifths(found)]
    return possible[0] if len(possible) == 1 else None


def _scales(found: int) -> list[float]:
    return [*_as_is(found), *_fifths(found), *([2.0 * found - 20] if 0 <= found <= 25 else [])]


def _as_is(found: int) -> list[float]:
    return [float(found)] if LOWEST_DB - MARGIN_DB <= found <= HIGHEST_DB + MARGIN_DB else []


def _fifths(found: int) -> list[float]:
    return [round(found / 5 - 20, 1)] if 0 <= found <= 250 else []


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


# One command line: the serving cell, and +QCSQ to know the scale of its SINR.
DRIVER = Driver(
    "quectel",
    setup=("AT+CEREG=2",),
    poll=('AT+QENG="servingcell";+QCSQ',),
    decode=decode,
    knows=("quectel",),
    reads=("AT+QNWINFO", "AT+QCAINFO", "AT+QRSRP", "AT+QRSRQ", "AT+QSINR"),
)
