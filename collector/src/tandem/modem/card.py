"""The SIM card in a modem, looked at when somebody asks: whether it is usable, and whether it is the one that was named."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tandem.at.channel import Channel
from tandem.at.cme import explained
from tandem.at.dialogue import Response
from tandem.at.grammar import values
from tandem.modem.mm_decode import FAILED, FAILED_REASONS, LOCKED
from tandem.modem.sim import card_hash

READY = "ready"
WANTS_PIN = "the SIM wants its PIN"
_WORDS = {"READY": READY, "SIM PIN": WANTS_PIN, "SIM PUK": "the SIM wants its PUK"}
_DEADLINE_S = 2.0


@dataclass(frozen=True, slots=True)
class Card:
    """``state``: ``ready``, or why it is of no use. ``named``: whether it is the SIM that the configuration names; None: it names
    none, or the modem does not tell."""

    state: str
    named: bool | None = None


def card_at(channel: Channel, wanted: str | None, secret: bytes | None) -> Card:
    """At an AT port. ``wanted``: the hash of the SIM that must be there, made with ``secret``. NoAnswer, PortLost."""
    state = pin_state(channel.ask("AT+CPIN?", _DEADLINE_S))
    if state != READY or wanted is None or secret is None:
        return Card(state)
    found = card_hash(channel, secret)
    return Card(state, None if found is None else found == wanted)


def card_managed(modem: Mapping[str, Any]) -> Card:
    """From ModemManager's properties of a modem (org.freedesktop.ModemManager1.Modem); it tells no hash."""
    state = modem.get("State")
    if state == LOCKED:
        return Card("the SIM is locked")
    if state == FAILED:
        reason = FAILED_REASONS.get(modem.get("StateFailedReason", 0), "unknown")
        return Card("ModemManager gave the modem up: " + reason.replace("_", " "))
    return Card(READY)


def pin_state(answer: Response) -> str:
    """``+CPIN: READY`` (27.007 clause 8.3) and its like in words."""
    if not answer.final.ok:
        return explained(answer.final.code)
    told = next((values(line)[0].upper() for line in answer.lines if values(line)), "")
    return _WORDS.get(told, told.lower() or READY)
