"""The limits of every graded field, with their source. A field that is not here is not graded: more of it is neither good nor poor."""

from __future__ import annotations

from typing import Any

from tandem.schema.grades.scale import Scale
from tandem.schema.grades.tones import Tone

_TELTONIKA = "Teltonika, Mobile Signal Strength Recommendations"
_DIGI = "Digi, Meter Engineers Handbook for Cellular Communication"
_PI = "Raspberry Pi documentation, frequency management and thermal control"

_RSRP = Scale(-90, -105, f"good as {_TELTONIKA}; poor below what Android (SignalStrength.java) calls moderate")
_RSRQ = Scale(-10, -15, _TELTONIKA)
_SINR = Scale(13, 0, f"{_TELTONIKA}; 13 dB is Android's highest level, too")
_RTT = Scale(
    300, 800, "twice the one-way 150 ms and 400 ms of ITU-T G.114, for talk; loaded links measure more than idle ones"
)
_GOODPUT = Scale(5e6, 1e6, "stated: video in 1080p, and in 480p, as video services ask for it")
_UNSENT = Scale(
    600, 3600, "unsent_after_s of the server (docs/reference/ledger.md); an hour, as the probe itself speaks up"
)
_TEMPERATURE = Scale(60, 80, f"{_PI}: soft limit, and where the processor is throttled")
_CLOCK = Scale(100, 1000, "stated: above 100 ms a record says so (utc_error_ms); above a second polls change places")
_WORN = Scale(80, 90, "JESD84-B51 warns at 80 % of the reserved blocks; stated: 90 %, a new card before it fails")
_NONE = Scale(1, 1, "stated: each one is one too many")
_BUFFER = Scale(10_000, 2_000, "stated: ten seconds bridge most outages of a commute; two are less than a segment")
_TRACES = Scale(86_400, 129_600, "stated: a day; traces_after_s of the server (docs/reference/ledger.md)")

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
    "health.spool_oldest_s": _UNSENT,
    "spool.oldest_s": _UNSENT,
    "spool.rejected": _NONE,
    "spool.dropped": _NONE,
    "probe_state.unsent_oldest_s": _UNSENT,
    "probe_state.last_seen_s": Scale(
        120, 300, "stated: two minutes; silent_after_s of the server (docs/reference/ledger.md)"
    ),
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
    "gateway.lines_rejected": _NONE,
    "gateway_process.writes_failed": _NONE,
    "gateway_process.acknowledged_p95_ms": Scale(1000, 5000, "the gateway calls more than a second slow; stated: 5 s"),
    "server_health.cpu_percent": Scale(70, 90, "stated: room for a backlog; none"),
    "server_health.database_answer_ms": Scale(100, 1000, "stated: a ping of a database on the same machine"),
    "server_traces.unfinished_oldest_s": _TRACES,
    "ledger.runs_missing": _NONE,
    "ledger.incomplete_s": _TRACES,
    "ledger.files_incomplete_s": _TRACES,
    "ledger_records.unexplained": _NONE,
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


def scale(measurement: str, field: str) -> Scale | None:
    """The limits of ``field`` of ``measurement``; None where it is not graded."""
    return SCALES.get(f"{measurement}.{field}")


def tone_of(measurement: str, field: str, value: Any) -> Tone:  # noqa: ANN401 a JSON value
    """The grade of ``value``; ``quiet`` for what is no number, and where the field is not graded."""
    found = scale(measurement, field)
    return "quiet" if found is None else found.tone(value)


def disk_tone(free_bytes: float, used_bytes: float) -> Tone:
    """Of a probe's disk, as its alarm disk_low judges: of one under ten gigabytes a tenth is enough."""
    limits = SCALES["health.disk_free_bytes"]
    low = min(limits.fair, (1 - SHARES["disk_used"].fair) * (free_bytes + used_bytes))
    return limits.tone(free_bytes * limits.fair / low) if low > 0 else "quiet"
