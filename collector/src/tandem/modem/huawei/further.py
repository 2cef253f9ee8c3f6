"""What Huawei's ^SYSINFOEX, ^LTERSRP, ^CERSSI, ^RSSI and ^HFREQINFO tell beyond ^HCSQ and ^MONSC: older firmware has nothing else,
and some of them arrive unasked.

Source: Huawei ME909s and MU509 AT command interface specifications (SYSINFOEX, RSSI) and public readers of E3276, E5172 and B593
(LTERSRP, CERSSI) and of E3372 and MT5700M (HFREQINFO).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from tandem.at.grammar import prefix, values
from tandem.modem.base import Reading
from tandem.modem.bins import rssi_dbm, with_secondary
from tandem.modem.scalars import at, code, decimal, within
from tandem.modem.ts27007 import last_values

NAMES = ("^SYSINFOEX", "^LTERSRP", "^CERSSI", "^RSSI", "^HFREQINFO")
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
    reading = _filled(reading, told)
    return _filled(reading, _carrier(reading, lines))


def _filled(reading: Reading, told: dict[str, Any]) -> Reading:
    missing = {name: value for name, value in told.items() if value is not None and getattr(reading, name) is None}
    return replace(reading, **missing)


def _carrier(reading: Reading, lines: Sequence[str]) -> dict[str, Any]:
    """``^HFREQINFO: <n>,<technology>,<band>,<channel>,<frequency>,<bandwidth in kHz>,<the same uplink>[,<next carrier>…]``, 6 for LTE
    and 7 for NR, NSA a line of each. Nothing of another technology or channel than the reading's."""
    by_rat: dict[str, Reading] = {}
    for row in (values(line) for line in lines if prefix(line) == "^HFREQINFO"):
        rat, highest = {"6": ("LTE", 262143), "7": ("NR-SA", 3279165)}.get(at(row, 1), ("another", 0))
        width = within(decimal(at(row, 5)), 1400, 400_000)
        by_rat[rat] = Reading(
            rat=rat,
            band=code(at(row, 2), 1, 512),
            earfcn=code(at(row, 3), 0, highest),
            bandwidth_mhz=None if width is None else width / 1000,
        )
    if {"LTE", "NR-SA"} <= set(by_rat):
        by_rat = {"NR-NSA": with_secondary(by_rat["LTE"], by_rat["NR-SA"]), **by_rat}
    by_rat.pop("another", None)
    told = next((one for rat, one in by_rat.items() if reading.rat in (None, rat)), Reading())
    channels = ((reading.earfcn, told.earfcn), (reading.nr_arfcn, told.nr_arfcn))
    return {} if any(None not in pair and pair[0] != pair[1] for pair in channels) else vars(told)


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
