"""Roll-ups of what the server records of its probes and of itself."""

from __future__ import annotations

from tandem.schema.metrics import PROBE_STATES
from tandem.schema.rollups.table import Rolled, Rollup, floors, lasts, peaks, spreads, sums, told

SERVER = (
    Rollup("expected", ("probe",), "seen", (Rolled("seen", "mean", ("min",)),)),
    Rollup(
        "probe_state",
        ("probe",),
        "state_code",
        (
            *told("state", *PROBE_STATES),
            *lasts("state_code", "since_s", "run", "experiment", "campaign"),
            *peaks("last_seen_s", "unsent_records", "unsent_oldest_s"),
        ),
    ),
    Rollup(
        "gateway",
        ("probe",),
        "requests",
        (
            *sums("requests", "lines_accepted", "lines_rejected", "received_bytes"),
            *sums("answers_429", "answers_503", "answers_refused"),
            *lasts("reason"),
        ),
    ),
    Rollup(
        "gateway_process",
        ("process",),
        "period_s",
        (
            *sums("period_s", "strangers", "writes", "writes_failed", "written_lines", "write_s"),
            *sums("acknowledged_requests", "slow_requests", "cpu_s"),
            *spreads("acknowledged_median_ms", "acknowledged_p95_ms"),
            *peaks("acknowledged_most_ms", "requests_at_once", "bytes_at_once", "rss_bytes"),
            *lasts("uptime_s"),
        ),
    ),
    Rollup(
        "server_health",
        (),
        "cores",
        (
            *spreads("load_1min", "cpu_percent", "database_answer_ms"),
            *floors("memory_available_bytes"),
            *lasts("cores", "memory_total_bytes", "uptime_s", "database", "version", "probes"),
        ),
    ),
    Rollup(
        "server_disk", ("place",), "free_bytes", floors("free_bytes") + lasts("used_bytes", "free_inodes", "held_bytes")
    ),
    Rollup(
        "server_traces",
        ("probe",),
        "received",
        lasts("received", "received_bytes", "stored_bytes", "unfinished", "unfinished_bytes", "unfinished_oldest_s"),
    ),
    Rollup(
        "ledger",
        ("probe", "campaign"),
        "runs_complete",
        lasts("runs_complete", "runs_expired", "runs_under_way", "runs_waiting", "runs_missing", "runs_failed")
        + lasts("runs_uncounted")
        + lasts("records_promised", "records_arrived", "files_promised", "files_received")
        + peaks("incomplete_s", "files_incomplete_s"),
    ),
    Rollup(
        "ledger_records",
        ("probe",),
        "made",
        lasts("made", "arrived", "rejected", "dropped", "waiting", "unexplained"),
    ),
)
