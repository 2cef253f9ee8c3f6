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
