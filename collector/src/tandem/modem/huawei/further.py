"""What Huawei's ^SYSINFOEX, ^LTERSRP, ^CERSSI and ^RSSI tell beyond ^HCSQ and ^MONSC: older firmware has nothing else, and some
of them arrive unasked.

Source: Huawei ME909s and MU509 AT command interface specifications (SYSINFOEX, RSSI) and public readers of E3276, E5172 and B593
(LTERSRP, CERSSI).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tandem.at.grammar import prefix
from tandem.modem.base import Reading
from tandem.modem.bins import rssi_dbm
from tandem.modem.scalars import at, code, decimal, within
from tandem.modem.ts27007 import last_values

NAMES = ("^SYSINFOEX", "^LTERSRP", "^CERSSI", "^RSSI")
_RATS = {"GSM": "GSM", "WCDMA": "WCDMA", "LTE": "LTE", "NR": "NR-SA", "NR-5GC": "NR-SA"}
_STATES = {"0": "no_service", "1": "limited", "3": "limited"}
"""<srv_status>: 0 none, 1 restricted, 2 service, 3 restricted to a region, 4 saving power."""


def with_further(reading: Reading, lines: Sequence[str]) -> Reading:
    """The reading with what it lacks."""
    if not any(prefix(line) in NAMES for line in lines):
        return reading
    system = last_values(lines, "^SYSINFOEX")
    told: dict[str, Any] = {"rat": _RATS.get(at(system, 6).upper())}
    if reading.state == "unknown":
        told_state = _STATES.get(at(system, 0), "unknown")
        reading = replace(reading, state=told_state)
    if (reading.rat or told["rat"]) in (None, "LTE", "NR-NSA"):
        told |= _lte(last_values(lines, "^LTERSRP"), last_values(lines, "^CERSSI"))
    level = code(at(last_values(lines, "^RSSI"), 0), 0, 31)
    if reading.rssi_dbm is None and reading.rssi_code is None:
        told |= {"rssi_code": level, "rssi_dbm": rssi_dbm(level)}
    missing = {name: value for name, value in told.items() if value is not None and getattr(reading, name) is None}
    return replace(reading, **missing)


def _lte(ltersrp: Sequence[str], cerssi: Sequence[str]) -> dict[str, Any]:
    """``^LTERSRP: <rsrp>,<rsrq>`` in dBm and dB. ``^CERSSI: <columns of 2G and 3G>,255,<rsrp>,<rsrq>,<sinr>,…`` likewise: how many
    columns there are in front differs, so RSRP is the first value of its range with one of RSRQ's behind it."""
    rsrp, rsrq = _level(at(ltersrp, 0)), within(decimal(at(ltersrp, 1)), -50, 0)
    sinr = None
    for i, (first, second) in enumerate(pairwise(cerssi)):
        quality = within(decimal(second), -40, 0)
        if _level(first) is not None and quality is not None and at(cerssi, i - 1) == "255":
            rsrp, rsrq, sinr = _level(first), quality, within(decimal(at(cerssi, i + 2)), -40, 60)
            break
    return {} if rsrp is None else {"rat": "LTE", "rsrp_dbm": rsrp, "rsrq_db": rsrq, "sinr_db": sinr}


def _level(text: str) -> float | None:
    return within(decimal(text), -156, -44)
