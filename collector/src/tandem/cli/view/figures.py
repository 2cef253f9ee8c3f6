"""Quantities as short text. Pure; absent quantities are a dash."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tandem.schema.grades import event_meaning, meaning

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


def clock_words(state: dict[str, Any]) -> str:
    """Whose word the records' times rest on, and how well."""
    if not state.get("synchronised"):
        return str(state.get("trouble") or "not synchronised: records wait for their time")
    source = state.get("source")
    words = "the system's clock as it stands, nobody vouches for it" if source == "system" else f"{source}"
    if state.get("error_ms") is not None:
        words += f", within {number(state.get('error_ms'), 0, ' ms')}"
    if source != "system" and not state.get("vouched"):
        words += f", last vouched for {duration(state.get('age_s'))} ago"
    off = state.get("system_error_ms")
    if isinstance(off, int | float) and abs(off) >= 1000:
        words += f"; the system's clock is {number(off / 1000, 0, ' s')} off"
    steps = state.get("steps") or []
    return words + (f"; set {len(steps)} times" if steps else "")


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


def event_words(event: dict[str, Any]) -> str:
    """An event's kind in words."""
    return event_meaning(event.get("kind"), event.get("state")).words


def event_detail(event: dict[str, Any]) -> str:
    """What more there is to an event; that it begins or ends is said by its words."""
    return str(event.get("detail") or "").removeprefix("begins, ").removeprefix("ends, ")


def percent(share: Any) -> str:  # noqa: ANN401 as above
    """A share of 0 to 1."""
    return ABSENT if isinstance(share, bool) or not isinstance(share, int | float) else f"{100 * share:.0f} %"


def radio_words(modem: dict[str, Any]) -> str:
    """A modem's state, with its radio technology when it has service."""
    state = "no poll yet" if modem.get("state") is None else meaning("radio", "state", modem["state"]).words
    if modem.get("failure"):
        return f"refuses: {str(modem['failure']).replace('_', ' ')}"
    rat = modem.get("rat")
    return f"{rat}, {state}" if rat and modem.get("state") in ("connected", "idle", "unknown") else state
