"""Reads the radio part of a timeline file (format ``tandem-timeline/1``, JSON lines), strictly.

The bench writes the file; this reader does not trust it, because a modem that answers nonsense would be taken for a fault of
the collector. Keys of the link (rates, delays, losses) are not looked at.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tandem_bench import UsageError
from tandem_bench.modem.radio import NO_SERVICE, Radio, Rat

FORMAT = "tandem-timeline/1"

_RATS: dict[str, Rat] = {
    "LTE": "LTE", "4G": "LTE", "NR-NSA": "NR-NSA", "NR-SA": "NR-SA", "NR": "NR-SA", "WCDMA": "WCDMA", "UMTS": "WCDMA",
    "3G": "WCDMA", "GSM": "GSM", "EDGE": "GSM", "2G": "GSM",
}  # fmt: skip

_LEVELS = {"rsrp_dbm": (-160, -20), "rsrq_db": (-50, 25), "sinr_db": (-40, 60), "rssi_dbm": (-140, 0)}
_NUMBERS = {
    "tac": (0, 0xFFFFFF),
    "eci": (0, 2**36 - 1),
    "pci": (0, 1007),
    "earfcn": (0, 3279165),
    "band": (1, 1024),
}
_OPTIONAL_LEVELS = {"nr_rsrp_dbm": (-160, -20), "nr_rsrq_db": (-50, 25), "nr_sinr_db": (-40, 60)}
_OPTIONAL_NUMBERS = {"nr_pci": (0, 1007), "nr_arfcn": (0, 3279165), "nr_band": (1, 1024)}
_REQUIRED = {"t_s", "plmn", "rat", "registered", *_LEVELS, *_NUMBERS}


class TimelineError(UsageError):
    """The file is no timeline; the message is one line with file, line and what is wrong."""


@dataclass(frozen=True)
class Timeline:
    """The radio conditions of one operator, one ``Radio`` every ``tick_s`` seconds from 0."""

    operator: str
    tick_s: float
    ticks: tuple[Radio, ...]
    changes_s: tuple[float, ...]

    def at(self, t_s: float) -> Radio:
        """Conditions at ``t_s``: the first tick before 0, the last one after the end."""
        index = math.floor(t_s / self.tick_s + 1e-9)
        return self.ticks[max(0, min(len(self.ticks) - 1, index))]

    def next_change_s(self, t_s: float) -> float | None:
        """When, after ``t_s``, registration, technology or cell change next; None when they do not."""
        index = bisect_right(self.changes_s, t_s)
        return self.changes_s[index] if index < len(self.changes_s) else None

    @property
    def home_plmn(self) -> str:
        """The first PLMN that appears: that of the SIM. ``00101`` (the test network) when none does."""
        return next((tick.plmn for tick in self.ticks if tick.plmn), "00101")


def read(path: Path) -> Timeline:
    """Read ``path``; TimelineError when it cannot be used."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        what = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise TimelineError(f"{path}: {what}; give a timeline file") from None
    if not lines:
        raise TimelineError(f"{path}: empty; give a timeline file")
    operator, tick_s = _header(path, lines[0])
    ticks: list[Radio] = []
    for number, line in enumerate(lines[1:], start=2):
        where = f"{path}:{number}"
        entry = _object(where, line)
        missing = sorted(_REQUIRED - entry.keys())
        if missing:
            raise TimelineError(f"{where}: {missing[0]!r} is missing")
        due = len(ticks) * tick_s
        t_s = _number(where, entry, "t_s", 0, math.inf)
        if t_s is None or abs(t_s - due) > tick_s / 10:
            raise TimelineError(f"{where}: t_s is {entry['t_s']}, but the ticks before it make this {due:g}")
        ticks.append(_radio(where, entry))
    if not ticks:
        raise TimelineError(f"{path}: a header, but no tick after it")
    return Timeline(operator, tick_s, tuple(ticks), _changes(ticks, tick_s))


def _changes(ticks: list[Radio], tick_s: float) -> tuple[float, ...]:
    keys = [(t.registered, t.rat, t.plmn, t.tac, t.eci, t.heard) for t in ticks]
    return tuple(round(i * tick_s, 9) for i in range(1, len(keys)) if keys[i] != keys[i - 1])


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        raise TimelineError(f"{where}: not JSON") from None
    if not isinstance(entry, dict):
        raise TimelineError(f"{where}: not a JSON object")
    return entry


def _header(path: Path, line: str) -> tuple[str, float]:
    where = f"{path}:1"
    header = _object(where, line)
    if header.get("format") != FORMAT:
        raise TimelineError(f"{where}: format is {header.get('format')!r}, not {FORMAT!r}")
    operator = header.get("operator")
    if not isinstance(operator, str) or not operator:
        raise TimelineError(f"{where}: operator must be a name")
    tick_s = _number(where, header, "tick_s", 0.001, 60)
    if tick_s is None:
        raise TimelineError(f"{where}: tick_s must be seconds")
    return operator, tick_s


def _number(where: str, entry: dict[str, Any], key: str, low: float, high: float) -> float | None:
    value = entry.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TimelineError(f"{where}: {key} is {value!r}, not a number")
    if not low <= value <= high:
        raise TimelineError(f"{where}: {key} is {value}, outside {low} to {high}")
    return value


def _whole(where: str, entry: dict[str, Any], key: str, low: int, high: int) -> int | None:
    value = _number(where, entry, key, low, high)
    if value is not None and value != int(value):
        raise TimelineError(f"{where}: {key} is {value}, not a whole number")
    return None if value is None else int(value)


def _radio(where: str, entry: dict[str, Any]) -> Radio:
    values: dict[str, Any] = {k: _number(where, entry, k, *r) for k, r in (_LEVELS | _OPTIONAL_LEVELS).items()}
    values |= {k: _whole(where, entry, k, *r) for k, r in (_NUMBERS | _OPTIONAL_NUMBERS).items()}
    registered = entry["registered"]
    if not isinstance(registered, bool):
        raise TimelineError(f"{where}: registered is {registered!r}, not true or false")
    rat = entry["rat"]
    if rat is not None and (not isinstance(rat, str) or rat.upper() not in _RATS):
        raise TimelineError(f"{where}: rat is {rat!r}; known: {', '.join(_RATS)}")
    plmn = entry["plmn"]
    if plmn is not None and not (isinstance(plmn, str) and plmn.isascii() and plmn.isdigit() and len(plmn) in (5, 6)):
        raise TimelineError(f"{where}: plmn is {plmn!r}, not 5 or 6 digits in quotes")
    bandwidth = _number(where, entry, "bandwidth_mhz", 1.4, 400)
    return Radio(
        rat=_RATS[rat.upper()] if rat else None,
        registered=registered and rat is not None,
        plmn=plmn,
        bandwidth_mhz=NO_SERVICE.bandwidth_mhz if bandwidth is None else bandwidth,
        **values,
    )
