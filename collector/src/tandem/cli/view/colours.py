"""Colours with a meaning: one a path, one a state. Named ANSI colours, so that they follow the terminal's own theme."""

from __future__ import annotations

from typing import Any

PATHS = ("cyan", "magenta", "blue", "bright_cyan", "bright_magenta", "bright_blue")
GOOD, FAIR, POOR = "green", "yellow", "red"
QUIET = "bright_black"

# RSRP as operators grade it for LTE: good above -90 dBm, poor from -105 dBm down.
_GOOD_DBM, _FAIR_DBM = -90, -105

EVENTS = {
    "mobility_start": FAIR,
    "mobility_stop": GOOD,
    "signal_drop": POOR,
    "handover": "bright_blue",
    "service_lost": POOR,
    "service_back": GOOD,
    "modem_lost": POOR,
    "modem_back": GOOD,
    "path_up": GOOD,
    "path_down": POOR,
    "spool_dropped": POOR,
    "record_rejected": POOR,
    "capture_budget": FAIR,
    "clock_step": FAIR,
}
STATES = {"connected": GOOD, "idle": GOOD, "unknown": GOOD, "searching": FAIR, "limited": FAIR}


def rsrp(level: Any) -> str:  # noqa: ANN401 a JSON value
    """Of an RSRP in dBm."""
    if isinstance(level, bool) or not isinstance(level, int | float):
        return QUIET
    return GOOD if level >= _GOOD_DBM else FAIR if level >= _FAIR_DBM else POOR


def sinr(level: Any) -> str:  # noqa: ANN401 a JSON value
    """Of an SINR in dB."""
    if isinstance(level, bool) or not isinstance(level, int | float):
        return QUIET
    return GOOD if level >= 10 else FAIR if level >= 0 else POOR


def state(name: Any) -> str:  # noqa: ANN401 a JSON value
    """Of a modem's state."""
    return QUIET if name is None else STATES.get(str(name), POOR)


def of_paths(names: list[str]) -> dict[str, str]:
    """A colour for each path."""
    return {name: PATHS[n % len(PATHS)] for n, name in enumerate(names)}
