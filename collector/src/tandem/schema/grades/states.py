"""What the words of the schema mean: every state, and every yes or no, as people read it and how it is to be seen."""

from __future__ import annotations

from typing import Any

from tandem.schema.grades.events import EVENTS
from tandem.schema.grades.titles import measurement_of
from tandem.schema.grades.tones import Meaning
from tandem.schema.metrics import CAMPAIGN_STATES, MODEM_STATES, PROBE_STATES, VERDICTS
from tandem.schema.metrics.coverage import DERIVED_POLICIES

Words = dict[str, Meaning]
"""By the value as text; of a yes or no ``true`` and ``false``, as line protocol and JSON write them."""

_RADIO: Words = {
    "connected": Meaning("connected", "good"),
    "idle": Meaning("idle", "good"),
    "searching": Meaning("searching", "fair"),
    "limited": Meaning("emergency calls only", "fair"),
    "no_service": Meaning("no service", "poor"),
    "unknown": Meaning("in service", "good"),
    "no_answer": Meaning("no answer", "poor"),
    "port_lost": Meaning("modem gone", "poor"),
}

_MODEM: Words = {
    "usable": Meaning("usable", "good"),
    "recovering": Meaning("recovering", "fair"),
    "lost": Meaning("lost", "poor"),
    "unknown": Meaning("not polled yet", "quiet"),
}

_ROUND_TRIP: Words = {
    "answered": Meaning("answered", "good"),
    "late": Meaning("answered late", "fair"),
    "lost": Meaning("lost", "poor"),
    "down": Meaning("path down", "poor"),
    "paused": Meaning("paused for a run", "quiet"),
    "budget": Meaning("nothing left for it", "quiet"),
    "unserved": Meaning("not served", "quiet"),
}

_PROBE: Words = {
    "measuring": Meaning("measuring", "good"),
    "idle": Meaning("idle", "good"),
    "online_not_measuring": Meaning("online, not measuring", "poor"),
    "not_uploading": Meaning("not uploading", "poor"),
    "silent": Meaning("silent", "poor"),
    "never_seen": Meaning("never seen", "quiet"),
    "revoked": Meaning("revoked", "quiet"),
}

_PLAYBACK: Words = {
    "starting": Meaning("starting", "notice"),
    "playing": Meaning("playing", "good"),
    "stalled": Meaning("standing still", "poor"),
    "ended": Meaning("ended", "quiet"),
}

_CAMPAIGN: Words = {
    "running": Meaning("running", "good"),
    "waiting": Meaning("waiting", "notice"),
    "done": Meaning("done", "good"),
    "stopped": Meaning("stopped", "quiet"),
    "paused": Meaning("paused", "fair"),
    "withdrawn": Meaning("withdrawn", "quiet"),
}

_VERDICT: Words = {
    "native": Meaning("works", "good"),
    "fallback": Meaning("falls back to TCP", "fair"),
    "stripped": Meaning("options removed", "fair"),
    "reset": Meaning("subflow reset", "poor"),
    "dropped": Meaning("segments dropped", "poor"),
    "unreachable": Meaning("not even TCP", "poor"),
    "untested": Meaning("not looked at", "quiet"),
}

_SPEED: Words = {"low": Meaning("on foot", "notice"), "high": Meaning("driving", "notice")}
_MOBILITY: Words = {
    "still": Meaning("still", "quiet"),
    **_SPEED,
    "moving": Meaning("moving", "notice"),
    "": Meaning("not known", "quiet"),
}
_FIX: Words = {"none": Meaning("no fix", "fair"), "2d": Meaning("2D", "good"), "3d": Meaning("3D", "good")}


def _yes(true: Meaning, false: Meaning) -> Words:
    return {"true": true, "false": false}


def _wrong(true: str, false: str = "no") -> Words:
    return _yes(Meaning(true, "poor"), Meaning(false, "good"))


_FELL_BACK = _yes(Meaning("fell back to TCP", "fair"), Meaning("no fallback", "good"))
_SINCE = ("undervoltage", "frequency_capped", "throttled", "soft_temperature_limit")

STATES: dict[str, Words] = {
    "radio.state": _RADIO,
    "registration.state": {k: v for k, v in _RADIO.items() if k not in ("no_answer", "port_lost")},
    "registration.registered": _yes(Meaning("registered", "good"), Meaning("not registered", "poor")),
    "radio.stale": _yes(Meaning("repeats itself", "fair"), Meaning("fresh", "good")),
    "modem_health.state": _MODEM,
    "modem_health.state_code": {str(n): _MODEM[state] for n, state in enumerate(MODEM_STATES)},
    "modem_health.sickness": {
        "silent": Meaning("silent", "poor"),
        "refusing": Meaning("refuses", "poor"),
    },
    "probe_state.state": _PROBE,
    "probe_state.state_code": {str(n): _PROBE[state] for n, state in enumerate(PROBE_STATES)},
    "dash_playback.state": _PLAYBACK,
    "campaign.state": _CAMPAIGN,
    "campaign.state_code": {str(n): _CAMPAIGN[state] for n, state in enumerate(CAMPAIGN_STATES)},
    "campaign.from_server": _yes(Meaning("pushed by the server", "quiet"), Meaning("begun by a person", "quiet")),
    "verdict.verdict": _VERDICT,
    "verdict.verdict_code": {str(n): _VERDICT[verdict] for n, verdict in enumerate(VERDICTS)},
    "verdict.role": {"primary": Meaning("first subflow", "quiet"), "join": Meaning("joining subflow", "quiet")},
    "dash.whole": _yes(Meaning("to its end", "good"), Meaning("cut short", "poor")),
    "expected.seen": {"0": Meaning("silent", "poor"), "1": Meaning("heard of", "good")},
    "health.mobile": _yes(Meaning("moving", "notice"), Meaning("standing still", "quiet")),
    "health.speed_class": _SPEED,
    "event.speed_class": _SPEED,
    "event.kind": EVENTS,
    "event.handover_kind": {"enb": Meaning("another site", "notice"), "sector": Meaning("another sector", "notice")},
    "event.state": {
        **{k: v for k, v in _RADIO.items() if k in ("searching", "limited", "no_service")},
        "up": Meaning("up", "good"),
        "down": Meaning("down", "poor"),
        "no_address": Meaning("without an address", "poor"),
        "ipv6_only_unusable": Meaning("IPv6 only, not usable", "poor"),
        "colliding": Meaning("address taken by another path", "poor"),
        "no_route": Meaning("without a route", "poor"),
        "begins": Meaning("begins", "poor"),
        "ends": Meaning("ends", "good"),
    },
    "round_trip.outcome": _ROUND_TRIP,
    "round_trip.beside_run": _yes(Meaning("beside a run", "notice"), Meaning("alone", "quiet")),
    "position.fix": _FIX,
    "health.clock_synchronised": _yes(Meaning("set", "good"), Meaning("not set", "poor")),
    "clock.synchronised": _yes(Meaning("set", "good"), Meaning("not set", "poor")),
    "clock.vouched": _yes(Meaning("vouched for", "good"), Meaning("nobody vouches", "fair")),
    "health.undervoltage": _wrong("too low", "ok"),
    "health.frequency_capped": _yes(Meaning("capped", "fair"), Meaning("not capped", "good")),
    "health.throttled": _yes(Meaning("slowed down", "fair"), Meaning("not slowed", "good")),
    "health.soft_temperature_limit": _yes(Meaning("reached", "fair"), Meaning("no", "good")),
    **{f"health.{name}_since_boot": _yes(Meaning("has been", "fair"), Meaning("never", "good")) for name in _SINCE},
    **{f"{measurement}.mobility": _MOBILITY for measurement in DERIVED_POLICIES if not measurement.startswith("area")},
    "run.ok": _yes(Meaning("ok", "good"), Meaning("failed", "poor")),
    "subflow.backup": _yes(Meaning("backup", "notice"), Meaning("in use", "quiet")),
}
"""By ``measurement.field``; ``event.kind`` is a tag."""


BY_NAME: dict[str, Words] = {"fallback": _FELL_BACK}
"""Of fields that are called so, and mean the same, in whatever measurement."""

_PLAIN = _yes(Meaning("yes", "quiet"), Meaning("no", "quiet"))


def meanings(measurement: str, field: str) -> Words:
    """Every word of ``field`` (or tag); yes and no where nothing more is known of one that is either; empty where the field has no
    closed list of words. KeyError when the schema has no such field or tag."""
    found = STATES.get(f"{measurement}.{field}") or BY_NAME.get(field)
    if found is not None:
        return found
    of = measurement_of(measurement)
    return _PLAIN if field not in of.tags and of.field(field).kind == "bool" else {}


def meaning(measurement: str, field: str, value: Any) -> Meaning:  # noqa: ANN401 a JSON value
    """Of one value; what is not known is told as it is, and quiet, and so is what is absent."""
    if value is None:
        return Meaning("–", "quiet")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return meanings(measurement, field).get(text) or Meaning(text.replace("_", " "), "quiet")
