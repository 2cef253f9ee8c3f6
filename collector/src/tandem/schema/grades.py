"""How what is recorded is shown: titles, usual ranges, thresholds, colours by meaning, words for states. Standard library only.

Terminal, boards and alarms take all of it from here, so that one quantity is called, coloured and judged the same everywhere. What has
no grade here has none anywhere. Everything is looked up by measurement and field, as the schema calls them:

    scale("radio", "rsrp_dbm")        # Scale(good=-90, fair=-105, source=…), or None where nothing is good or poor
    scale("radio", "rsrp_dbm").steps  # ((None, "poor"), (-105, "fair"), (-90, "good")): as Grafana writes thresholds
    tone_of("radio", "rsrp_dbm", -97) # "fair"
    COLOURS["fair"].web, .terminal    # "#F2CC0C", "yellow"
    usual("radio", "rsrp_dbm")        # Range(-125, -70)
    title("radio", "rsrp_dbm")        # "RSRP"
    meanings("radio", "state")        # {"connected": Meaning("connected", "good"), …}, or {} where a field has no such words

To add a field's grade, range or words: one line in ``SCALES``, ``USUAL`` or ``STATES``; a new event kind needs its line in ``EVENTS``. What
the server records has its own in ``tandem_server.schema.grades``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tandem.schema.metrics import CAMPAIGN_STATES, MEASUREMENTS, MODEM_STATES, VERDICTS, Field, Measurement

Tone = Literal["good", "fair", "poor", "notice", "quiet"]
"""``good``, ``fair``, ``poor``: the grades. ``notice``: worth a look, neither good nor poor (a handover, a movement). ``quiet``: not
known, not there, or of no weight."""


@dataclass(frozen=True, slots=True)
class Colour:
    """``terminal``: one of the sixteen named ANSI colours, so that it follows the terminal's own theme. ``web``: sRGB as #RRGGBB.
    ``mark``: ASCII that says it to who sees no colours; empty where nothing needs saying."""

    terminal: str
    web: str
    mark: str = ""


COLOURS: dict[Tone, Colour] = {
    "good": Colour("green", "#73BF69"),
    "fair": Colour("yellow", "#F2CC0C", "!"),
    "poor": Colour("red", "#F2495C", "!!"),
    "notice": Colour("bright_blue", "#5794F2", "*"),
    "quiet": Colour("bright_black", "#8E8E8E"),
}

PATH_COLOURS = (
    Colour("cyan", "#00A6C0"), Colour("magenta", "#B877D9"), Colour("blue", "#3D5AC8"),
    Colour("bright_cyan", "#7AD7E6"), Colour("bright_magenta", "#DEB6F2"), Colour("white", "#C0B283"),
)  # fmt: skip
"""One a path, in the order of their names; none of them is a grade's."""


@dataclass(frozen=True, slots=True)
class Meaning:
    """Of a state or a kind of event: ``words`` for people, lower case, and how it is to be seen."""

    words: str
    tone: Tone


def path_colours(names: Iterable[str]) -> dict[str, Colour]:
    """A colour for each path, whatever the order of ``names``; they repeat from the seventh on."""
    return {name: PATH_COLOURS[n % len(PATH_COLOURS)] for n, name in enumerate(sorted(set(names)))}


@dataclass(frozen=True, slots=True)
class Scale:
    """``good``: the limit between good and fair, ``fair``: between fair and poor, in the field's unit; ``good`` above ``fair`` where
    more is better, else below. ``source``: who says so. A value at a limit belongs to what is above it, in both directions, as in
    Grafana's thresholds."""

    good: float
    fair: float
    source: str

    @property
    def more_is_better(self) -> bool:
        return self.good > self.fair

    @property
    def steps(self) -> tuple[tuple[float | None, Tone], ...]:
        """From the lowest up: from which value on which tone; None stands for everything below the first limit."""
        if self.more_is_better:
            return (None, "poor"), (self.fair, "fair"), (self.good, "good")
        return (None, "good"), (self.good, "fair"), (self.fair, "poor")

    def tone(self, value: Any) -> Tone:  # noqa: ANN401 a JSON value
        """Of ``value``; ``quiet`` for what is no number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return "quiet"
        found: Tone = self.steps[0][1]
        for limit, tone in self.steps[1:]:
            if limit is not None and value >= limit:
                found = tone
        return found


@dataclass(frozen=True, slots=True)
class Range:
    """In the field's unit; None where a chart should follow the values. Values outside are shown, too: soft limits."""

    low: float | None
    high: float | None


SUFFIXES = (
    "_bit_per_s", "_dbm", "_db", "_ns", "_ms", "_mhz", "_degc", "_percent", "_deg", "_m_per_s", "_ppm", "_m", "_s",
)  # fmt: skip
"""Name endings that say the unit, which the axis says already. ``_bytes`` stays: it is the noun, too."""

WORDS = {
    "rsrp": "RSRP", "rsrq": "RSRQ", "sinr": "SINR", "rssi": "RSSI", "rtt": "RTT", "cpu": "CPU", "rss": "resident", "plmn": "PLMN",
    "tac": "TAC", "eci": "ECI", "enb": "eNodeB", "pci": "PCI", "earfcn": "EARFCN", "id": "identity", "rcv": "receiver's",
    "retrans": "retransmitted", "retransmits": "retransmitted", "cwnd": "congestion window", "ooo": "out-of-order",
    "notsent": "not yet sent", "seq": "number in the spool", "acked": "acknowledged", "ok": "succeeded", "sim": "SIM",
    "eol": "end of life", "utc": "UTC",
}  # fmt: skip
"""Words of field names that are abbreviations, as the field writes them."""


def title_of(field: Field) -> str:
    """The name of ``field`` in words, without its unit: ``rtt_min_ms`` → ``RTT min``."""
    name = next(
        (field.name.removesuffix(end) for end in SUFFIXES if field.unit and field.name.endswith(end)), field.name
    )
    words = " ".join(WORDS.get(word, word) for word in name.split("_"))
    return words if words.startswith("eNodeB") else words[:1].upper() + words[1:]


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
    """Of an event's tag ``kind`` and its field ``state``; a kind that this version does not know is shown as it is."""
    if state == "ends" and kind in _OVER:
        return Meaning(_OVER[kind], "good")
    if kind == "path_state" and state is not None:
        return Meaning("path", "good" if state == "up" else "poor")
    return EVENTS.get(str(kind)) or Meaning(str(kind).replace("_", " "), "notice")


_TELTONIKA = "Teltonika, Mobile Signal Strength Recommendations"
_DIGI = "Digi, Meter Engineers Handbook for Cellular Communication"
_PI = "Raspberry Pi documentation, frequency management and thermal control"

_RSRP = Scale(-90, -105, f"good as {_TELTONIKA}; poor below what Android (SignalStrength.java) calls moderate")
_RSRQ = Scale(-10, -15, _TELTONIKA)
_SINR = Scale(13, 0, f"{_TELTONIKA}; 13 dB is Android's highest level, too")
_RTT = Scale(
    300, 800, "twice the one-way 150 ms and 400 ms of ITU-T G.114, for talk; loaded links measure more than idle ones"
)
_GOODPUT = Scale(5e6, 1e6, "stated: video in 1080p, and in 480p, as video services require it")
UNSENT = Scale(
    600, 3600, "unsent_after_s of the server (docs/reference/ledger.md); an hour, as the probe itself speaks up"
)
_TEMPERATURE = Scale(60, 80, f"{_PI}: soft limit, and where the processor is throttled")
_CLOCK = Scale(100, 1000, "stated: above 100 ms a record says so (utc_error_ms); above a second polls change places")
_WORN = Scale(80, 90, "JESD84-B51 warns at 80 % of the reserved blocks; stated: 90 %, a new card before it fails")
NONE = Scale(1, 1, "stated: each one is one too many")
_BUFFER = Scale(10_000, 2_000, "stated: ten seconds bridge most outages of a commute; two are less than a segment")

SCALES: dict[str, Scale] = {
    "radio.rsrp_dbm": _RSRP,
    "radio.rsrq_db": _RSRQ,
    "radio.sinr_db": _SINR,
    "radio.nr_rsrp_dbm": _RSRP,
    "radio.nr_rsrq_db": _RSRQ,
    "radio.nr_sinr_db": _SINR,
    "radio.rssi_dbm": Scale(-70, -85, _DIGI),
    "radio.rscp_dbm": Scale(-85, -100, "stated: as the RSSI limits, for one code of several"),
    "radio.ecno_db": Scale(-6, -10, _DIGI),
    "radio.poll_late_ms": Scale(100, 1000, "stated: late is 100 ms (app/poll_account.py); a second is a poll missed"),
    "radio.poll_duration_ms": Scale(500, 1000, "stated: half a period, and a whole one, at one poll a second"),
    "subflow.goodput_bit_per_s": _GOODPUT,
    "subflow.rtt_ms": _RTT,
    "subflow.rtt_min_ms": _RTT,
    "subflow.rcv_rtt_ms": _RTT,
    "connection.goodput_bit_per_s": _GOODPUT,
    "run.goodput_bit_per_s": _GOODPUT,
    "run.connect_ms": _RTT,
    "round_trip.rtt_ms": _RTT,
    "health.processor_temperature_degc": _TEMPERATURE,
    "temperature.temperature_degc": _TEMPERATURE,
    "health.disk_free_bytes": Scale(
        1.25e9, 1e9, "the probe's own alarm disk_low begins below 1 GB and ends above 1.25 GB; small disks: a tenth"
    ),
    "health.spool_oldest_s": UNSENT,
    "spool.oldest_s": UNSENT,
    "spool.rejected": NONE,
    "spool.dropped": NONE,
    "card.life_used_a_percent": _WORN,
    "card.life_used_b_percent": _WORN,
    "card.pre_eol_code": Scale(2, 3, "JESD84-B51 PRE_EOL_INFO: 2 warning, 3 urgent"),
    "clock.error_ms": _CLOCK,
    "clock.age_s": Scale(300, 3600, "no source for five minutes is not vouched (schema); stated: an hour"),
    "position.hdop": Scale(5, 10, "the usual table of dilution of precision: up to 5 good, up to 10 moderate"),
    "position.horizontal_error_m": Scale(10, 50, "stated: a road's width; above 50 m no speed is taken from a fix"),
    "dash_segment.buffer_level_ms": _BUFFER,
    "dash_playback.buffer_level_ms": _BUFFER,
    "dash.startup_delay_ms": Scale(
        2000, 5000, "Krishnan and Sitaraman, IMC 2012: viewers leave from 2 s on; stated: 5 s"
    ),
    "dash.stall_ratio": Scale(0.01, 0.05, "Krishnan and Sitaraman, IMC 2012: 1 % shortens viewing; stated: 5 %"),
    "dash.goodput_bit_per_s": _GOODPUT,
    "aggregation.benefit": Scale(0.5, 0, "0 is the best path alone (Cordero, section 3.1); stated: half of the ideal"),
    "aggregation.tdi": Scale(0.95, 0.8, "1: the paths share no bottleneck (Cordero, section 3.1); stated: the limits"),
}

SHARES: dict[str, Scale] = {
    "plan": Scale(0.8, 1.0, "stated: expected bytes of a SIM's plan at its reset; more than the plan costs money"),
    "budget": Scale(0.8, 1.0, "stated: bytes spent of a campaign's budget"),
    "disk_used": Scale(0.8, 0.9, "the probe's alarm disk_low: less than a tenth free; stated: a fifth"),
    "spool_used": Scale(0.5, 0.8, "stated: bytes of the spool's cap; at the cap records are dropped"),
    "complete": Scale(1.0, 0.95, "stated: of records promised; anything missing is to be explained"),
    "polls_ok": Scale(0.98, 0.9, "stated: of polls made; one in ten lost hides handovers"),
}
"""Of quantities that are a share of two fields, from 0 on; by name."""

_USUAL_RSRP, _USUAL_RSRQ, _USUAL_SINR = Range(-125, -70), Range(-20, -3), Range(-10, 30)

USUAL: dict[str, Range] = {
    "radio.rsrp_dbm": _USUAL_RSRP,
    "radio.rsrq_db": _USUAL_RSRQ,
    "radio.sinr_db": _USUAL_SINR,
    "radio.nr_rsrp_dbm": _USUAL_RSRP,
    "radio.nr_rsrq_db": _USUAL_RSRQ,
    "radio.nr_sinr_db": _USUAL_SINR,
    "radio.rssi_dbm": Range(-110, -50),
    "radio.rscp_dbm": Range(-120, -60),
    "radio.ecno_db": Range(-24, 0),
    "health.processor_temperature_degc": Range(20, 90),
    "temperature.temperature_degc": Range(20, 90),
    "aggregation.benefit": Range(-1, 1),
    "aggregation.tdi": Range(0, 1.1),
    "event.change_db": Range(-30, 30),
    "position.track_deg": Range(0, 360),
    "clock.system_error_ms": Range(None, None),
    "clock.last_offset_ms": Range(None, None),
}

Words = dict[str, Meaning]
"""By the value as text; of a yes or no ``true`` and ``false``, as line protocol and JSON write them."""


def yes_or_no(true: Meaning, false: Meaning) -> Words:
    return {"true": true, "false": false}


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
_FIX: Words = {"none": Meaning("no fix", "fair"), "2d": Meaning("2D", "good"), "3d": Meaning("3D", "good")}


_FELL_BACK = yes_or_no(Meaning("fell back to TCP", "fair"), Meaning("no fallback", "good"))
_SINCE = ("undervoltage", "frequency_capped", "throttled", "soft_temperature_limit")

STATES: dict[str, Words] = {
    "radio.state": _RADIO,
    "registration.state": {k: v for k, v in _RADIO.items() if k not in ("no_answer", "port_lost")},
    "registration.registered": yes_or_no(Meaning("registered", "good"), Meaning("not registered", "poor")),
    "radio.stale": yes_or_no(Meaning("repeats itself", "fair"), Meaning("fresh", "good")),
    "modem_health.state": _MODEM,
    "modem_health.state_code": {str(n): _MODEM[state] for n, state in enumerate(MODEM_STATES)},
    "modem_health.sickness": {"silent": Meaning("silent", "poor"), "refusing": Meaning("refuses", "poor")},
    "dash_playback.state": _PLAYBACK,
    "campaign.state": _CAMPAIGN,
    "campaign.state_code": {str(n): _CAMPAIGN[state] for n, state in enumerate(CAMPAIGN_STATES)},
    "campaign.from_server": yes_or_no(Meaning("pushed by the server", "quiet"), Meaning("begun by a person", "quiet")),
    "verdict.verdict": _VERDICT,
    "verdict.verdict_code": {str(n): _VERDICT[verdict] for n, verdict in enumerate(VERDICTS)},
    "verdict.role": {"primary": Meaning("first subflow", "quiet"), "join": Meaning("joining subflow", "quiet")},
    "dash.whole": yes_or_no(Meaning("to its end", "good"), Meaning("cut short", "poor")),
    "health.mobile": yes_or_no(Meaning("moving", "notice"), Meaning("standing still", "quiet")),
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
    "round_trip.beside_run": yes_or_no(Meaning("beside a run", "notice"), Meaning("alone", "quiet")),
    "position.fix": _FIX,
    "health.clock_synchronised": yes_or_no(Meaning("set", "good"), Meaning("not set", "poor")),
    "clock.synchronised": yes_or_no(Meaning("set", "good"), Meaning("not set", "poor")),
    "clock.vouched": yes_or_no(Meaning("vouched for", "good"), Meaning("nobody vouches", "fair")),
    "health.undervoltage": yes_or_no(Meaning("too low", "poor"), Meaning("ok", "good")),
    "health.frequency_capped": yes_or_no(Meaning("capped", "fair"), Meaning("not capped", "good")),
    "health.throttled": yes_or_no(Meaning("slowed down", "fair"), Meaning("not slowed", "good")),
    "health.soft_temperature_limit": yes_or_no(Meaning("reached", "fair"), Meaning("no", "good")),
    **{
        f"health.{name}_since_boot": yes_or_no(Meaning("has been", "fair"), Meaning("never", "good")) for name in _SINCE
    },
    "run.ok": yes_or_no(Meaning("ok", "good"), Meaning("failed", "poor")),
    "subflow.backup": yes_or_no(Meaning("backup", "notice"), Meaning("in use", "quiet")),
}
"""By ``measurement.field``; ``event.kind`` is a tag."""

BY_NAME: dict[str, Words] = {"fallback": _FELL_BACK}
"""Of fields that are called so, and mean the same, in whatever measurement."""

_PLAIN = yes_or_no(Meaning("yes", "quiet"), Meaning("no", "quiet"))


@dataclass(frozen=True, slots=True)
class Grades:
    """How ``measurements`` are shown: grades, ranges and words by ``MEASUREMENT.FIELD``."""

    measurements: Mapping[str, Measurement]
    scales: Mapping[str, Scale]
    ranges: Mapping[str, Range]
    words: Mapping[str, Words]

    def scale(self, measurement: str, field: str) -> Scale | None:
        """The limits of ``field`` of ``measurement``; None where it is not graded."""
        return self.scales.get(f"{measurement}.{field}")

    def tone_of(self, measurement: str, field: str, value: Any) -> Tone:  # noqa: ANN401 a JSON value
        """The grade of ``value``; ``quiet`` for what is no number, and where the field is not graded."""
        found = self.scale(measurement, field)
        return "quiet" if found is None else found.tone(value)

    def title(self, measurement: str, field: str) -> str:
        """What ``field`` of ``measurement`` is called; KeyError when the schema has none."""
        return title_of(self.measurements[measurement].field(field))

    def usual(self, measurement: str, field: str) -> Range:
        """The usual range of ``field`` of ``measurement``; from 0 upwards where it cannot be less, else open. KeyError when the schema
        has no such field."""
        known = self.ranges.get(f"{measurement}.{field}")
        if known is not None:
            return known
        return Range(0 if self.measurements[measurement].field(field).minimum == 0 else None, None)

    def meanings(self, measurement: str, field: str) -> Words:
        """Every word of ``field`` (or tag); yes and no where nothing more is known of one that is either; empty where the field has no
        closed list of words. KeyError when the schema has no such field or tag."""
        found = self.words.get(f"{measurement}.{field}") or BY_NAME.get(field)
        if found is not None:
            return found
        of = self.measurements[measurement]
        return _PLAIN if field not in of.tags and of.field(field).kind == "bool" else {}

    def meaning(self, measurement: str, field: str, value: Any) -> Meaning:  # noqa: ANN401 a JSON value
        """Of one value; an unknown word is shown as it is, and quiet, and so is what is absent."""
        if value is None:
            return Meaning("–", "quiet")
        text = str(value).lower() if isinstance(value, bool) else str(value)
        return self.meanings(measurement, field).get(text) or Meaning(text.replace("_", " "), "quiet")


_PROBE = Grades(MEASUREMENTS, SCALES, USUAL, STATES)
scale, tone_of, title, usual = _PROBE.scale, _PROBE.tone_of, _PROBE.title, _PROBE.usual
meanings, meaning = _PROBE.meanings, _PROBE.meaning


def disk_tone(free_bytes: float, used_bytes: float) -> Tone:
    """Of a probe's disk, as its alarm disk_low judges: of one under ten gigabytes a tenth is enough."""
    limits = SCALES["health.disk_free_bytes"]
    low = min(limits.fair, (1 - SHARES["disk_used"].fair) * (free_bytes + used_bytes))
    return limits.tone(free_bytes * limits.fair / low) if low > 0 else "quiet"
