"""Roll-ups of what runs measure: connections, plays, findings, campaigns."""

from __future__ import annotations

from tandem.schema.metrics.campaign import CAMPAIGN_STATES
from tandem.schema.rollups.table import Rolled, Rollup, flags, lasts, means, peaks, spreads, sums, told

_PATH = ("probe", "path", "operator")

TRANSPORT = (
    Rollup(
        "subflow",
        (*_PATH, "end"),
        "goodput_bit_per_s",
        (*spreads("goodput_bit_per_s", "rtt_ms", "rcv_rtt_ms"), Rolled("cwnd_segments", "mean", ("max",))),
    ),
    Rollup(
        "connection",
        ("probe", "kind", "path", "end"),
        "goodput_bit_per_s",
        (*spreads("goodput_bit_per_s"), Rolled("subflows", "mean", ("min", "max")), *flags("fallback")),
    ),
)
RUNS = (
    Rollup("run_begun", ("probe", "kind", "path", "pairing", "experiment", "campaign"), "seq", ()),
    Rollup(
        "run",
        ("probe", "kind", "path", "pairing", "experiment", "campaign"),
        "seq",
        (
            *sums("bytes", "duration_s"),
            *spreads("goodput_bit_per_s", "connect_ms", "first_byte_ms"),
            *flags("fallback", "ok"),
            *lasts("failure"),
        ),
    ),
    Rollup("run_usage", _PATH, "seq", sums("received_bytes", "sent_bytes")),
    Rollup(
        "dash",
        ("probe", "kind", "path", "operator", "rule", "campaign"),
        "seq",
        (
            *sums("segments", "bytes", "media_s", "play_s", "stalls", "stalled_s", "switches", "reconnects"),
            *spreads("goodput_bit_per_s", "startup_delay_ms", "bitrate_bit_per_s", "stall_ratio", "qoe_bit_per_s"),
            *means("media_bit_per_s", "primary_share", "connect_ms", "first_byte_ms"),
            *flags("whole", "fallback"),
        ),
    ),
    Rollup(
        "dash_segment",
        ("probe", "kind", "path", "operator"),
        "seq",
        (
            *sums("bytes", "stall_ms"),
            *spreads("buffer_level_ms", "goodput_bit_per_s", "bitrate_bit_per_s"),
            *means("first_byte_ms", "duration_ms", "primary_share"),
        ),
    ),
    Rollup(
        "aggregation",
        ("probe", "experiment", "mode", "path", "operator", "campaign"),
        "seq",
        (
            *spreads("benefit", "benefit_raw", "tdi", "bandwidth_ratio", "goodput_bit_per_s"),
            *means("c_max_bit_per_s", "c_sum_bit_per_s", "c_total_bit_per_s"),
            *means("delay_ms", "fastest_ms", "ideal_ms", "most_loaded_share"),
            *flags("fallback"),
        ),
    ),
    Rollup(
        "verdict", ("probe", "path", "operator", "role", "verdict", "campaign"), "seq", lasts("verdict_code", "where")
    ),
    Rollup(
        "campaign",
        ("probe", "campaign"),
        "seq",
        (
            *told("state", *CAMPAIGN_STATES),
            *lasts("state_code", "made", "of", "ok", "failed", "cut_off", "step", "said", "age_s"),
        ),
    ),
    Rollup("campaign_step", ("probe", "campaign", "step"), "seq", lasts("made", "of")),
    Rollup(
        "campaign_data",
        ("probe", "campaign", "role", "path", "operator"),
        "seq",
        (
            *lasts("budget_bytes", "day_budget_bytes", "left_bytes", "expected_bytes", "reset_in_s"),
            *peaks("used_bytes", "used_today_bytes"),
        ),
    ),
)
