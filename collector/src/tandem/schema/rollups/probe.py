"""Roll-ups of what a probe is like: its modems and their events, the machine, its data and its spool."""

from __future__ import annotations

from tandem.schema.metrics import MODEM_STATES, RADIO_STATES, ROUND_TRIP_OUTCOMES
from tandem.schema.rollups.table import Rolled, Rollup, flags, floors, lasts, means, peaks, spreads, sums, told

_PATH = ("probe", "path", "operator")

RADIO = (
    Rollup(
        "radio",
        (*_PATH, "rat"),
        "seq",
        (
            *told("state", *RADIO_STATES),
            *spreads("rsrp_dbm", "rsrq_db", "sinr_db", "rssi_dbm", "rscp_dbm", "ecno_db"),
            *spreads("nr_rsrp_dbm", "nr_rsrq_db", "nr_sinr_db"),
            *lasts("plmn", "eci", "enb_id", "pci", "earfcn", "band", "bandwidth_mhz"),
            Rolled("poll_duration_ms", "mean", ("max",)),
            Rolled("poll_late_ms", "mean", ("max",)),
            *flags("stale"),
        ),
    ),
    Rollup(
        "event",
        ("probe", "kind", "path", "operator"),
        "seq",
        (
            *means("change_db"),
            Rolled("took_ms", "mean", ("max",)),
            *told("handover_kind", "enb", "sector"),
            *lasts("state", "step", "detail", "detector", "speed_class", "seq"),
        ),
    ),
    Rollup(
        "round_trip",
        _PATH,
        "seq",
        (*told("outcome", *ROUND_TRIP_OUTCOMES), *means("unanswered"), *spreads("rtt_ms"), *flags("beside_run")),
    ),
)
PROBE = (
    Rollup(
        "health",
        ("probe",),
        "seq",
        (
            *lasts("cpu_seconds", "uptime_s", "boot_count", "speed_class"),
            *peaks("rss_bytes", "spool_records", "spool_bytes", "spool_oldest_s", "captures_bytes"),
            *lasts("spool_limit_bytes"),
            *peaks("undervoltage_seen"),
            *peaks("traces_waiting", "traces_waiting_bytes", "disk_used_bytes"),
            *floors("disk_free_bytes", "memory_available_bytes"),
            *spreads("load_1min", "processor_temperature_degc"),
            *flags("mobile", "clock_synchronised", "undervoltage", "frequency_capped", "throttled"),
            *flags("soft_temperature_limit"),
        ),
    ),
    Rollup("temperature", ("probe", "sensor"), "seq", spreads("temperature_degc")),
    Rollup(
        "card",
        ("probe", "device"),
        "seq",
        lasts("kind", "name", "size_bytes", "read_bytes", "written_bytes")
        + lasts("life_used_a_percent", "life_used_b_percent", "pre_eol_code"),
    ),
    Rollup(
        "software",
        ("probe",),
        "seq",
        lasts("tandem", "kernel", "python", "machine", "system", "firmware", "bootloader"),
    ),
    Rollup(
        "modem_health",
        ("probe", "path", "operator", "driver"),
        "seq",
        (
            *told("state", *MODEM_STATES),
            *lasts("state_since_s", "sickness", "recovery_steps", "recovery_step", "recoveries"),
            *sums("polls_ok", "polls_failed", "period_s"),
        ),
    ),
    Rollup("usage", _PATH, "seq", lasts("received_bytes", "sent_bytes", "control_bytes", "upload_bytes")),
    Rollup(
        "sim_usage",
        _PATH,
        "seq",
        (
            *peaks("used_bytes", "used_today_bytes"),
            *lasts("whole_period", "plan_bytes", "left_bytes", "daily_bytes", "basis_days"),
            *lasts("expected_bytes", "reset_in_s", "used_up_in_s"),
        ),
    ),
    Rollup(
        "spool",
        ("probe",),
        "seq",
        (*lasts("spool", "made", "sent", "rejected", "dropped", "settled"), *peaks("oldest_s", "manifests")),
    ),
    Rollup(
        "clock",
        ("probe",),
        "seq",
        (
            *flags("synchronised", "vouched"),
            *lasts("source", "steps", "stratum"),
            Rolled("error_ms", "mean", ("max",)),
            Rolled("age_s", "last", ("max",)),
            *spreads("system_error_ms"),
        ),
    ),
)
