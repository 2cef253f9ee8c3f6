"""Numbers in the answers of modems: None instead of an exception, and instead of the codes for "not known"."""

from __future__ import annotations

import re
from collections.abc import Sequence

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
