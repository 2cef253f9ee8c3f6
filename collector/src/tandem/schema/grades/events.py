"""What the kinds of events are called, and how each is to be seen."""

from __future__ import annotations

from typing import Any

from tandem.schema.grades.tones import Meaning

EVENTS: dict[str, Meaning] = {
    "mobility_start": Meaning("moving", "notice"),
    "mobility_stop": Meaning("standing still", "notice"),
    "signal_drop": Meaning("signal drop", "fair"),
    "handover": Meaning("handover", "notice"),
    "service_lost": Meaning("service lost", "poor"),
    "service_back": Meaning("service back", "good"),
    "modem_lost": Meaning("modem lost", "poor"),
    "modem_back": Meaning("modem back", "good"),
    "path_up": Meaning("path up", "good"),
    "path_down": Meaning("path down", "poor"),
    "path_state": Meaning("path", "notice"),
    "endpoint_restored": Meaning("endpoint restored", "notice"),
    "subflow_restored": Meaning("subflow restored", "good"),
    "recovery_step": Meaning("recovery step", "fair"),
    "recovery_gave_up": Meaning("recovery gave up", "poor"),
    "recovered": Meaning("recovered", "good"),
    "sim_mismatch": Meaning("wrong SIM", "poor"),
    "position_fix": Meaning("position known", "good"),
    "position_lost": Meaning("position lost", "fair"),
    "capture_budget": Meaning("capture budget", "fair"),
    "capture_salvaged": Meaning("capture salvaged", "notice"),
    "capture_missing": Meaning("no capture at the server", "fair"),
    "spool_dropped": Meaning("records dropped", "poor"),
    "record_rejected": Meaning("records refused", "poor"),
    "trace_received": Meaning("trace received", "good"),
    "trace_damaged": Meaning("trace damaged", "poor"),
    "trace_missing": Meaning("trace missing", "poor"),
    "trace_refused": Meaning("trace refused", "poor"),
    "clock_step": Meaning("clock stepped", "fair"),
    "collector_start": Meaning("collector started", "notice"),
    "collector_stop": Meaning("collector stopping", "notice"),
    "undervoltage": Meaning("supply too low", "poor"),
    "throttled": Meaning("slowed down", "fair"),
    "disk_low": Meaning("disk low", "poor"),
    "plan_over": Meaning("over its plan", "poor"),
    "card_worn": Meaning("card worn", "poor"),
    "steering": Meaning("steering", "notice"),
}

_OVER = {
    "undervoltage": "supply back",
    "throttled": "no longer slowed",
    "disk_low": "disk has room",
    "plan_over": "within its plan",
    "card_worn": "card fine",
}
"""Kinds that begin and end: what their end is called."""


def event_meaning(kind: Any, state: Any = None) -> Meaning:  # noqa: ANN401 JSON values
    """Of an event's tag ``kind`` and its field ``state``; a kind that this version does not know is told as it is."""
    if state == "ends" and kind in _OVER:
        return Meaning(_OVER[kind], "good")
    if kind == "path_state" and state is not None:
        return Meaning("path", "good" if state == "up" else "poor")
    return EVENTS.get(str(kind)) or Meaning(str(kind).replace("_", " "), "notice")
