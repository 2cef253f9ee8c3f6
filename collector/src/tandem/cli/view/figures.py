"""Quantities as short text. Pure; absent quantities are a dash."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

ABSENT = "–"
_BARS = "▁▂▃▄▅▆▇█"


def number(value: Any, digits: int = 0, unit: str = "") -> str:  # noqa: ANN401 a JSON value
    """With ``digits`` after the point and its unit."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ABSENT
    return f"{value:.{digits}f}{unit}"


def rate(bit_per_s: Any) -> str:  # noqa: ANN401 as above
    """In Mbit/s, three digits that count; kbit/s below one."""
    if isinstance(bit_per_s, bool) or not isinstance(bit_per_s, int | float):
        return ABSENT
    mega = bit_per_s / 1e6
    if 0 < mega < 1:
        return f"{bit_per_s / 1e3:.0f} kbit/s"
    return f"{mega:.0f} Mbit/s" if mega >= 100 else f"{mega:.1f} Mbit/s"


def size(count: Any) -> str:  # noqa: ANN401 as above
    """Bytes in kB, MB, GB (powers of ten, as links are measured)."""
    if isinstance(count, bool) or not isinstance(count, int | float):
        return ABSENT
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            value = count / scale
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
    return f"{count:.0f} B"


def duration(seconds: Any) -> str:  # noqa: ANN401 as above
    """As 8 s, 2:05, 1:02:03."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return ABSENT
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def clock(utc_ns: Any) -> str:  # noqa: ANN401 as above
    """Time of day of this machine's zone; blanks while the clock is not set."""
    if isinstance(utc_ns, bool) or not isinstance(utc_ns, int):
        return "--:--:--"
    return time.strftime("%H:%M:%S", time.localtime(utc_ns / 1e9))


def kind_words(run: dict[str, Any]) -> str:
    """What a run is: ``mptcp``, ``tcp``, or another experiment's name."""
    return str(run.get("experiment") if run.get("kind") == "any" else run.get("kind"))


def phase_words(phase: Any) -> str:  # noqa: ANN401 as above
    """As ``phase 3 of 12: mptcp 1000 kB``; empty where there is none."""
    if not isinstance(phase, dict) or not phase.get("of"):
        return ""
    return f"phase {phase.get('number')} of {phase['of']}: {phase.get('name')}"


def sparkline(values: Sequence[Any], width: int, low: float, high: float) -> str:
    """The last ``width`` values between ``low`` and ``high`` (cut outside), a blank for none; right-aligned."""
    shown = values[-width:] if width > 0 else []
    span = high - low
    text = ""
    for value in shown:
        if isinstance(value, bool) or not isinstance(value, int | float) or span <= 0:
            text += " "
            continue
        share = min(1.0, max(0.0, (value - low) / span))
        text += _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]
    return text.rjust(width)


def cell(modem: dict[str, Any]) -> str:
    """The serving cell: eNodeB and sector."""
    enb, sector = modem.get("enb_id"), modem.get("sector_id")
    return ABSENT if enb is None else f"eNB {enb}/{sector}"


EVENT_WORDS = {
    "mobility_start": "moving",
    "mobility_stop": "still",
    "signal_drop": "signal drop",
    "modem_lost": "modem lost",
    "modem_back": "modem back",
    "path_up": "path up",
    "path_down": "path down",
    "endpoint_restored": "endpoint restored",
    "path_state": "path",
    "subflow_restored": "subflow restored",
    "capture_budget": "capture budget",
    "spool_dropped": "records dropped",
    "record_rejected": "records rejected",
    "clock_step": "clock stepped",
    "collector_start": "started",
    "collector_stop": "stopping",
}


def event_words(kind: Any) -> str:  # noqa: ANN401 as above
    """An event's kind in words."""
    return EVENT_WORDS.get(str(kind), str(kind))


def radio_words(modem: dict[str, Any]) -> str:
    """A modem's state, with its radio technology when it has service."""
    state = str(modem.get("state") or "no poll yet").replace("_", " ")
    if modem.get("failure"):
        return f"refuses: {str(modem['failure']).replace('_', ' ')}"
    rat = modem.get("rat")
    return f"{rat}, {state}" if rat and modem.get("state") in ("connected", "idle", "unknown") else state
