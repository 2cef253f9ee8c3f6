"""Numbers in the answers of modems, None instead of an exception and instead of the codes for "not known"; and the codes of 3GPP TS 27.007
(+CSQ clause 8.5, +CESQ clause 8.69) as quantities, once for every family that prints them: the lower edges of the bins."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from tandem.modem.base import Reading

_WHOLE = re.compile(r"[-+]?[0-9]{1,18}\Z")
_DECIMAL = re.compile(r"[-+]?[0-9]{1,9}(?:\.[0-9]{0,9})?\Z")
_HEX = re.compile(r"(?:0[xX])?([0-9A-Fa-f]{1,16})\Z")


def at(values: Sequence[str], index: int) -> str:
    """The value at ``index``; empty when the line is shorter."""
    return values[index] if 0 <= index < len(values) else ""


def whole(text: str) -> int | None:
    """A decimal whole number."""
    return int(text) if _WHOLE.match(text) else None


def decimal(text: str) -> float | None:
    """A decimal number."""
    return float(text) if _DECIMAL.match(text) else None


def hexadecimal(text: str) -> int | None:
    """A hexadecimal number, with or without 0x; also when all its digits are decimal ones."""
    match = _HEX.match(text)
    return int(match.group(1), 16) if match else None


def code(text: str, lowest: int, highest: int) -> int | None:
    """A whole number within the codes of a table; None outside (99, 255 and the like mean "not known")."""
    value = whole(text)
    return value if value is not None and lowest <= value <= highest else None


def within(value: float | None, lowest: float, highest: float) -> float | None:
    """The value when it is between the limits."""
    return value if value is not None and lowest <= value <= highest else None


def plmn(mcc: str, mnc: str) -> str | None:
    """MCC and MNC as five or six digits (3GPP TS 23.003 clause 2.2). An MNC printed as a number gets its zero back."""
    if re.fullmatch(r"[0-9]{3}", mcc) and re.fullmatch(r"[0-9]{1,3}", mnc) and mcc != "000":
        return mcc + mnc.zfill(2)
    return None


_LTE_MHZ = (1.4, 3.0, 5.0, 10.0, 15.0, 20.0)
_LTE_BLOCKS = (6, 15, 25, 50, 75, 100)
_NR_MHZ = (5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0, 200.0, 400.0)


def lte_bandwidth_mhz(index: str, in_mhz: bool = False) -> float | None:
    """The channel bandwidth of a maker's index 0 to 5; ``in_mhz``: it is printed as it is."""
    return _bandwidth(index, _LTE_MHZ, in_mhz)


def _bandwidth(text: str, table: Sequence[float], in_mhz: bool) -> float | None:
    found = whole(text)
    if in_mhz:
        return next((width for width in table if found is not None and int(width) == found), None)
    return table[found] if found is not None and 0 <= found < len(table) else None


def bandwidth_of_blocks_mhz(blocks: str) -> float | None:
    """The channel bandwidth of a number of resource blocks (3GPP TS 36.101 table 5.6-1)."""
    found = whole(blocks)
    return _LTE_MHZ[_LTE_BLOCKS.index(found)] if found in _LTE_BLOCKS else None


def nr_bandwidth_mhz(index: str, in_mhz: bool = False) -> float | None:
    """The channel bandwidth of Qualcomm's index 0 to 14, which Quectel and SIMCom print for NR; ``in_mhz``: as it is."""
    return _bandwidth(index, _NR_MHZ, in_mhz)


def area_code(found: int | None, highest: int = 0xFFFF) -> int | None:
    """A location or tracking area (``highest`` 0xFFFFFF on 5G); 0, FFFE and FFFF mean none (TS 23.003 clauses 4.1, 19.4.2.3).

    What is too large stays: it is no code for "none", and the schema's check leaves it out and counts it.
    """
    if found is None or found <= 0 or found in (0xFFFE, 0xFFFF, highest - 1, highest):
        return None
    return found


_ALL_ONES = {"GSM": 0xFFFF, "NR-SA": 0xFFFFFFFFF}


def cell_identity(found: int | None, rat: str | None) -> int | None:
    """A cell identity: 16 bits on 2G, 28 on 3G and LTE, 36 on NR-SA; all ones and more mean none."""
    return found if found is not None and 0 <= found < _ALL_ONES.get(rat or "", 0xFFFFFFF) else None


# ---------------------------------------------------------------------------------------------------------------------
# The codes of 3GPP TS 27.007 (+CSQ clause 8.5, +CESQ clause 8.69) as quantities, once for every family that prints
# them, and the two places that a NR cell's quantities have in a reading. Values are the lower edges of the bins; None
# stays None, and a code that stands in no table has no quantity.


def rssi_dbm(found: int | None) -> float | None:
    """+CSQ's, 0 to 31: −113 + 2v."""
    return scaled(found, 2, -113, 31)


def rxlev_dbm(found: int | None) -> float | None:
    """2G, 0 to 63: −111 + v."""
    return scaled(found, 1, -111, 63)


def rscp_dbm(found: int | None) -> float | None:
    """3G, 0 to 96: −121 + v."""
    return scaled(found, 1, -121, 96)


def ecno_db(found: int | None) -> float | None:
    """3G, 0 to 49: −24.5 + v/2."""
    return scaled(found, 0.5, -24.5, 49)


def rsrp_dbm(found: int | None) -> float | None:
    """LTE, 0 to 97: −141 + v."""
    return scaled(found, 1, -141, 97)


def rsrq_db(found: int | None) -> float | None:
    """LTE, 0 to 34: −20 + v/2."""
    return scaled(found, 0.5, -20, 34)


def ss_rsrp_dbm(found: int | None) -> float | None:
    """NR, 0 to 126: −157 + v."""
    return scaled(found, 1, -157, 126)


def ss_rsrq_db(found: int | None) -> float | None:
    """NR, 0 to 126: (v − 87)/2."""
    return scaled(found, 0.5, -43.5, 126)


def ss_sinr_db(found: int | None) -> float | None:
    """NR, 0 to 127: (v − 47)/2."""
    return scaled(found, 0.5, -23.5, 127)


def scaled(found: int | None, step: float, offset: float, highest: int, lowest: int = 0) -> float | None:
    """``offset`` + ``step``·``found``, to a tenth and always a float; None outside the table."""
    if found is None or not lowest <= found <= highest:
        return None
    return round(float(offset) + step * found, 1)


def as_read(text: str, *unknown: int) -> int | None:
    """A code as it is printed, an octet, also one that stands in no table: its quantity is None then. 255 and ``unknown``
    are no codes."""
    found = code(text, 0, 254)
    return None if found in unknown else found


def with_lte_codes(reading: Reading, rsrp: str, rsrq: str) -> Reading:
    """The reading with LTE's RSRP and RSRQ, printed as +CESQ's codes."""
    power, quality = as_read(rsrp), as_read(rsrq)
    return replace(
        reading, rsrp_code=power, rsrp_dbm=rsrp_dbm(power), rsrq_code=quality, rsrq_db=rsrq_db(quality)
    )  # fmt: skip


def with_wcdma_codes(reading: Reading, rscp: str, ecno: str) -> Reading:
    """The reading with 3G's RSCP and Ec/N0, printed as +CESQ's codes."""
    power, quality = as_read(rscp), as_read(ecno)
    return replace(
        reading, rscp_code=power, rscp_dbm=rscp_dbm(power), ecno_code=quality, ecno_db=ecno_db(quality)
    )  # fmt: skip


def with_gsm_code(reading: Reading, rxlev: str) -> Reading:
    """The reading with 2G's level, printed as +CESQ's code."""
    level = as_read(rxlev, 99)
    return replace(reading, rssi_code=level, rssi_dbm=rxlev_dbm(level))


def with_secondary(anchor: Reading, nr: Reading) -> Reading:
    """The LTE anchor with the quantities of ``nr``, a standalone cell's, as its secondary cell's: NR-NSA."""
    return replace(
        anchor,
        rat="NR-NSA",
        nr_rsrp_dbm=nr.rsrp_dbm,
        nr_rsrq_db=nr.rsrq_db,
        nr_sinr_db=nr.sinr_db,
        nr_rsrp_code=nr.rsrp_code,
        nr_rsrq_code=nr.rsrq_code,
        nr_sinr_code=nr.sinr_code,
        nr_pci=nr.pci,
        nr_arfcn=nr.earfcn,
        nr_band=nr.band,
    )
