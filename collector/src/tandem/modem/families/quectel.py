"""Quectel's +QENG="servingcell" and +QCSQ.

Source: Quectel EC25/EC21/EC20, EG06 and BG96 AT commands manuals (QENG, QCSQ) and RG50xQ/RM5xxQ AT commands manual (QENG),
as quoted in public code. The columns differ with the radio technology; a firmware may add columns at the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tandem.at.dialogue import Response
from tandem.modem.base import Driver, Identity, Reading, device
from tandem.modem.scales import (
    at,
    bandwidth_mhz,
    cell,
    code,
    fifths,
    filled,
    named,
    technology_named,
    whole,
    with_secondary,
    within,
)
from tandem.modem.ts27007 import all_lines, fill, last_values, rows_of

Row = Sequence[str]
CAT_M = ("EMTC", "CAT-M", "CAT-M1")
NB_IOT = ("NBIOT", "CAT-NB", "CAT-NB1", "NTN NBIOT")
"""What its models call the two narrow technologies of LTE, in capitals; the last is NB-IoT from a satellite."""

_STATES = {"SEARCH": "searching", "LIMSRV": "limited", "NOCONN": "idle", "CONNECT": "connected"}
_LTE = {"LTE": "LTE", **dict.fromkeys(CAT_M, "CAT-M"), **dict.fromkeys(NB_IOT, "NB-IOT")}
_RATS = {**_LTE, "NR5G-SA": "NR-SA", "WCDMA": "WCDMA", "GSM": "GSM"}
_UNISOC = ("RM500U", "RG500U", "RG200U")
"""The others of 5G have Qualcomm's chipset and its index for bandwidths; these print MHz."""


def decode(responses: Sequence[Response], identity: Identity) -> Reading:
    """The serving cell of +QENG; what only +QCSQ or another command tells is taken from there."""
    lines = all_lines(responses)
    rows = rows_of(lines, "+QENG")
    serving = next((row for row in reversed(rows) if at(row, 0) == "servingcell"), ())
    state = _STATES.get(at(serving, 1), "unknown")
    qcsq = last_values(lines, "+QCSQ")
    if at(qcsq, 0) == "NOSERVICE" and state == "unknown":
        state = "no_service"
    # NSA, and some firmware on LTE and SA too: the state in one line, each cell in its own
    row = serving[2:] or next((row for row in reversed(rows) if at(row, 0).upper() in _RATS), ())
    reading = replace(_cell(row, qcsq, identity.says(*_UNISOC)), state=state)
    secondary = next((row for row in reversed(rows) if at(row, 0) == "NR5G-NSA"), None)
    if secondary is not None and reading.rat in ("LTE", None):
        # Levels of −32768 are a leg that is not measured: the modem camps on a cell that offers NR, but has none.
        columns = "- mcc mnc pci rsrp_dbm sinr_code rsrq_db earfcn band"
        nr = cell("NR-SA", columns, secondary, sinr_db=_in_db(at(secondary, 5)))
        reading = with_secondary(reading, nr)
    return fill(_with_further(_with_qcsq(reading, qcsq), lines), lines)


def _in_db(text: str) -> float | None:
    return named(None, {"sinr_db": text}).sinr_db if whole(text) is not None else None


def _cell(row: Row, qcsq: Row, unisoc: bool) -> Reading:
    """A cell's row from its technology on. Bandwidths are an index, of ``unisoc`` MHz, and beyond the index; it knows none as narrow as
    NB-IoT's. Of NR ``unisoc`` has a column more behind the SINR: where that stands and the model is not known, a number that may be
    either is left out. NR's SINR is in dB as it is. A scrambling code is no PCI, a UARFCN no EARFCN."""
    rat = _RATS.get(at(row, 0).upper())
    if rat == "WCDMA":
        return cell(rat, "- mcc mnc lac ci - - - rscp_dbm ecno_db", row)
    if rat == "GSM":
        return cell(rat, "- mcc mnc lac ci - - - rssi_dbm", row)
    if rat is None:
        return Reading()
    width = at(row, 9)
    in_mhz = unisoc or (whole(width) or 0) > (14 if rat == "NR-SA" else 5)
    if rat == "NR-SA":
        unsure = len(row) >= 16 and not in_mhz
        return cell(
            rat,
            "- - mcc mnc eci pci tac earfcn band - rsrp_dbm rsrq_db sinr_code",
            row,
            sinr_db=_in_db(at(row, 12)),
            bandwidth_mhz=None if unsure else bandwidth_mhz(width, "mhz" if in_mhz else "index", nr=True),
        )
    reading = cell(rat, "- - mcc mnc eci pci earfcn band - - tac rsrp_dbm rsrq_db rssi_dbm sinr_code", row)
    return replace(
        reading,
        sinr_db=lte_sinr_db(reading.sinr_code, qcsq),
        bandwidth_mhz=None if rat == "NB-IOT" else bandwidth_mhz(width, "mhz" if in_mhz else "index"),
    )


_QCSQ = {
    **dict.fromkeys(_LTE, "- rssi_dbm rsrp_dbm - rsrq_db"), "WCDMA": "- rssi_dbm rscp_dbm ecno_db", "GSM": "- rssi_dbm",
    "NR5G": "- rsrp_dbm sinr_code rsrq_db", "NR5G-SA": "- rsrp_dbm sinr_code rsrq_db",
}  # fmt: skip


def _with_qcsq(reading: Reading, row: Row) -> Reading:
    """What +QENG did not tell of the same technology."""
    name = at(row, 0).upper()
    rat = {**_RATS, "NR5G": "NR-SA"}.get(name)
    if rat is None or reading.rat not in (rat, None, "NR-NSA" if rat == "LTE" else rat):
        return reading
    reported = cell(rat, _QCSQ[name], row)
    if rat == "NR-SA":
        reported = replace(reported, sinr_db=nr_sinr_db(reported.sinr_code))
    if rat in _LTE.values():
        sinr_code = code(at(row, 3), 0, 250) if reading.rat is None else None
        reported = replace(reported, sinr_db=lte_sinr_db(None, row), sinr_code=sinr_code)
    return filled(reading, reported)


# --- the scale of the SINR -------------------------------------------------------------------------------------------

LOWEST_DB, HIGHEST_DB = -20.0, 30.0
"""The range of all three scales. What a maker prints as it is may go somewhat beyond."""

MARGIN_DB = 10.0
"""How far beyond."""

AGREE_DB = 3.0
"""A reading of +QENG's SINR counts as agreeing with +QCSQ's when they are this near: they are a few milliseconds apart."""


def lte_sinr_db(found: int | None, qcsq: Row) -> float | None:
    """SINR of an LTE cell in dB. ``found``: +QENG's number; ``qcsq``: +QCSQ's values.

    +QCSQ decides: the nearest of the three scales when one is near enough, else its own value. Without it a number that only
    one scale can have tells its scale: below 0 it is dB, beyond 40 it is fifths. In between nothing tells it: None.
    """
    judge = fifths(code(at(qcsq, 3), 0, 250)) if at(qcsq, 0).upper() in _LTE else None
    possible = [] if found is None else [*_scales(found), *([2.0 * found - 20] if 0 <= found <= 25 else [])]
    if judge is not None:
        nearest = min(possible, key=lambda scaled: abs(scaled - judge), default=judge)
        return nearest if abs(nearest - judge) <= AGREE_DB else judge
    return possible[0] if len(possible) == 1 else None


def nr_sinr_db(found: int | None) -> float | None:
    """SINR of a standalone NR cell as +QCSQ prints it: dB or, on other firmware, fifths. None where both are possible."""
    possible = [] if found is None else _scales(found)
    return possible[0] if len(possible) == 1 else None


def _scales(found: int) -> list[float]:
    """As it is, and in fifths."""
    as_is = within(float(found), LOWEST_DB - MARGIN_DB, HIGHEST_DB + MARGIN_DB)
    return [one for one in (as_is, fifths(found) if 0 <= found <= 250 else None) if one is not None]


# --- +QNWINFO, +QCAINFO, +QRSRP and its like -------------------------------------------------------------------------

_BAND = re.compile(r"(LTE|NR5G|NR)\s*(?:BAND\s*|N)([0-9]{1,3})\Z", re.IGNORECASE)
_RANGES = {"+QRSRP": ("rsrp_dbm", -139, -30), "+QRSRQ": ("rsrq_db", -50, 25), "+QSINR": ("sinr_db", -40, 60)}
"""−140 of a RSRP, 0 of a branch that is off, and −32768 are none."""


def _with_further(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks; nothing of another technology than its own, nor of another cell."""
    networks = rows_of(lines, "+QNWINFO")
    if reading.state == "unknown" and any(at(row, 0).lower() == "no service" for row in networks):
        reading = replace(reading, state="no_service")
    reported = _joined([one for one in map(_network, networks) if one.rat is not None])
    for other in (_carriers(rows_of(lines, "+QCAINFO")), _antennas(lines)):
        if other.rat in (None, reported.rat) or reported.rat is None:
            reported = filled(reported, other)
    pairs = ((reading.earfcn, reported.earfcn), (reading.plmn, reported.plmn))
    elsewhere = any(None not in pair and pair[0] != pair[1] for pair in pairs)
    return (
        reading
        if reported.rat is None or reading.rat not in (None, reported.rat) or elsewhere
        else filled(reading, reported)
    )


def _network(row: Row) -> Reading:
    """``+QNWINFO: "<technology>","<mcc mnc>","<band>",<channel>``; NSA is a line of LTE and one of NR."""
    rat = _LTE.get(at(row, 0).upper()) or technology_named(at(row, 0))
    if rat in (None, "WCDMA", "GSM"):
        return cell(rat, "- plmn", row)
    label = _BAND.match(at(row, 2))
    return cell(rat, "- plmn - earfcn", row, band=int(label.group(2)) or None if label else None)


def _carriers(rows: Sequence[Row]) -> Reading:
    """``+QCAINFO: "PCC",<channel>,<bandwidth>,"<band>",<state>,<pci>,…`` of LTE, the bandwidth in resource blocks. NR (``NR5G BAND 78``)
    has an index for it, and <state> only in a longer row of a secondary carrier; RM500U (``NR N78``) prints MHz and always <state>.
    A secondary carrier (``"SCC"``) of NR beside a primary one of LTE is NSA's; others are not read."""
    primary = next((_carrier(row) for row in rows if at(row, 0).upper() == "PCC"), Reading())
    secondary = next((one for one in map(_carrier, rows) if one.rat == "NR-SA"), None)
    return with_secondary(primary, secondary) if primary.rat == "LTE" and secondary is not None else primary


def _carrier(row: Row) -> Reading:
    label = _BAND.match(at(row, 3))
    if label is None:
        return Reading()
    kind = label.group(1).upper()
    if kind == "LTE":
        return cell("LTE", "- earfcn bandwidth_mhz:blocks band - pci", row)
    has_state = kind == "NR" or (at(row, 0).upper() == "SCC" and len(row) > 5)
    width = "mhz" if kind == "NR" else "index"
    return cell("NR-SA", f"- earfcn bandwidth_mhz:{width} band {'- ' if has_state else ''}pci", row)


def _antennas(lines: Sequence[str]) -> Reading:
    """``+QRSRP: <first antenna>,<second>,<third>,<fourth>[,<technology>]``, a line for each technology; the first antenna is the
    main one. Older firmware prints no technology: an LTE modem's then."""
    cells: dict[str, Reading] = {}
    for name, (field, lowest, highest) in _RANGES.items():
        for row in rows_of(lines, name):
            rat = {"": "LTE", "LTE": "LTE", "NR5G": "NR-SA"}.get(at(row, 4).upper())
            level = getattr(cell(rat, field, row), field)
            if rat is not None and within(level, lowest, highest) is not None:
                cells[rat] = replace(cells.get(rat, Reading(rat=rat)), **{field: level})
    return _joined(list(cells.values()))


def _joined(cells: Sequence[Reading]) -> Reading:
    """LTE beside NR is NSA."""
    by_rat = {one.rat: one for one in cells}
    if "LTE" in by_rat and "NR-SA" in by_rat:
        return with_secondary(by_rat["LTE"], by_rat["NR-SA"])
    return cells[-1] if cells else Reading()


# One command line: the serving cell, and +QCSQ to know the scale of its SINR.
# GNSS: Quectel EC2x/EG9x/EG2x-G/EM05 GNSS application note: +QGPSCFG outport, +QGPS; on already: +CME ERROR: 504.
DRIVER = Driver(
    "quectel",
    setup=("AT+CEREG=2",),
    poll=('AT+QENG="servingcell";+QCSQ',),
    decode=decode,
    knows=("quectel",),
    reads=("AT+QNWINFO", "AT+QCAINFO", "AT+QRSRP", "AT+QRSRQ", "AT+QSINR"),
    gnss=('AT+QGPSCFG="outport","usbnmea"', "AT+QGPS=1"),
    devices=(
        device("2c7c:0125", "EC25", nmea=1, at=2, at_second=3),
        device("2c7c:0306", "EG06, EP06", nmea=1, at=2, at_second=3),
        device("2c7c:0800", "RM500Q", nmea=1, at=2, at_second=3),
    ),
)
