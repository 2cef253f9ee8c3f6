"""What the server itself records, once a minute: of its probes, its gateway, its machine, its ledger. Probes may not send these.

2026-11-21: ``expected``, ``probe_state``.
2026-11-22: ``gateway``, ``gateway_process``, ``server_health``, ``server_disk``, ``server_traces``, ``ledger``, ``ledger_records``;
``run``, ``experiment`` and ``campaign`` of ``probe_state``; the derived ``coverage``, ``coverage_day``, ``probe_area_day``, ``area``,
``area_day``, ``pair``, ``pair_day``.
2026-11-26: ``run_trace`` and ``run_trace_second``.
"""

from __future__ import annotations

from collections.abc import Mapping

from tandem.schema import line_protocol, record
from tandem.schema.metrics import MEASUREMENTS, Field, Measurement
from tandem.schema.record import RecordError, Table, Value
from tandem_server.schema.derived import DERIVED_MEASUREMENTS

PROBE_STATES = (
    "measuring", "idle", "online_not_measuring", "not_uploading", "silent", "never_seen", "revoked",
)  # fmt: skip
"""docs/reference/ledger.md has the rules. ``state_code`` is the place in this list, from 0."""

EXPECTED = Measurement(
    "expected",
    "one point a minute for every registered, unrevoked probe, whether it is heard of or not: what a silent one is missed by",
    ("probe",),
    (Field("seen", "int", "", "1 when the probe reached the gateway lately ([states] silent_after_s), else 0", 0, 1),),
)

PROBE_STATE = Measurement(
    "probe_state",
    "the state of every registered, unrevoked probe, once a minute",
    ("probe",),
    (
        Field("state", "str", "", "one of PROBE_STATES"),
        Field("state_code", "int", "", "its place in that list", 0, len(PROBE_STATES) - 1),
        Field("since_s", "float", "s", "how long it has been in it", 0),
        Field("last_seen_s", "float", "s", "since its last request; absent when there was none", 0),
        Field("unsent_records", "int", "", "waiting in its spool, as it last reported", 0),
        Field("unsent_oldest_s", "float", "s", "age of the oldest of them now", 0),
        Field("run", "str", "", "id of the run that it is at; absent when it is at none"),
        Field("experiment", "str", "", "of that run"),
        Field("campaign", "str", "", "of that run, else the campaign that is under way there; absent without one"),
    ),
)

GATEWAY = Measurement(
    "gateway",
    "the requests of one probe to one gateway process in one minute, at its beginning; no point without a request",
    ("probe", "process"),
    (
        Field("requests", "int", "", "with this probe's token, of any kind", 0),
        Field("lines_accepted", "int", "", "that the database has", 0),
        Field("lines_rejected", "int", "", "refused for good, each with its reason", 0),
        Field("reason", "str", "", "of the newest of the rejected; absent when there was none"),
        Field("received_bytes", "int", "B", "of requests' bodies, as they came", 0),
        Field("answers_429", "int", "", "requests to be repeated later: this probe takes more than its share", 0),
        Field("answers_503", "int", "", "requests to be repeated later: the server has no room, or no database", 0),
        Field("answers_refused", "int", "", "requests that got another answer of 400 to 499", 0),
    ),
)
"""``process``: its number, from 1; all fields but ``reason`` add up over processes and minutes. Several starts of one process in one
minute leave several points: their times differ by less than a second."""

GATEWAY_PROCESS = Measurement(
    "gateway_process",
    "one gateway process in one minute, at its beginning",
    ("process",),
    (
        Field("period_s", "float", "s", "how much of the minute it is about", 0),
        Field("strangers", "int", "", "requests without a good token", 0),
        Field("writes", "int", "", "that the database acknowledged; each holds the lines of several requests", 0),
        Field("writes_failed", "int", "", "that it did not: it was away, or refused all", 0),
        Field("written_lines", "int", "", "acknowledged by it", 0),
        Field("write_s", "float", "s", "spent in writes that it acknowledged, all together", 0),
        Field("acknowledged_requests", "int", "", "with lines, answered once the database had them", 0),
        Field("acknowledged_median_ms", "float", "ms", "from the body read to the database's word", 0),
        Field("acknowledged_p95_ms", "float", "ms", "likewise: 95 of 100 took no longer", 0),
        Field("acknowledged_most_ms", "float", "ms", "likewise: the longest", 0),
        Field("slow_requests", "int", "", "of these, that took more than a second", 0),
        Field("requests_at_once", "int", "", "most at one moment", 0),
        Field("bytes_at_once", "int", "B", "of requests held in memory, most at one moment", 0),
        Field("rss_bytes", "int", "B", "resident memory now", 0),
        Field("cpu_s", "float", "s", "processor time that it took", 0),
        Field("uptime_s", "float", "s", "since it started", 0),
    ),
)

SERVER_HEALTH = Measurement(
    "server_health",
    "the machine that the server is on, once a minute",
    (),
    (
        Field("load_1min", "float", "", "of /proc/loadavg: mean of runnable and waiting threads", 0),
        Field("cores", "int", "", "processors that the worker may use", 1),
        Field("cpu_percent", "float", "%", "busy part of all processors since the point before: /proc/stat", 0, 100),
        Field("memory_total_bytes", "int", "B", "MemTotal of /proc/meminfo", 0),
        Field("memory_available_bytes", "int", "B", "MemAvailable of it", 0),
        Field("uptime_s", "float", "s", "of the machine: /proc/uptime", 0),
        Field("database_answer_ms", "float", "ms", "how long the database took to answer a ping", 0),
        Field("database", "str", "", "the version that it reports"),
        Field("version", "str", "", "of this server"),
        Field("probes", "int", "", "registered and not revoked", 0),
    ),
)

SERVER_PLACES = ("store", "traces", "registry", "results", "captures", "content")
"""``place`` of a server_disk point: the private database's folder, received and unfinished traces, the registry's file, what probes
handed in with sessions, captures at the endpoint, presentations and stored pages."""

SERVER_DISK = Measurement(
    "server_disk",
    "one of the server's folders and the file system that it is on, once a minute; none of what another machine holds",
    ("place",),
    (
        Field("free_bytes", "int", "B", "statvfs f_bavail of its file system: for ordinary users", 0),
        Field("used_bytes", "int", "B", "statvfs f_blocks - f_bfree of it", 0),
        Field("free_inodes", "int", "", "statvfs f_favail; absent where the file system has no fixed number", 0),
        Field("held_bytes", "int", "B", "of the folder's own files, counted every ten minutes", 0),
    ),
)

SERVER_TRACES = Measurement(
    "server_traces",
    "traces of one probe, once a minute; no point of one that never offered a trace",
    ("probe",),
    (
        Field("received", "int", "", "that the server has for good", 0),
        Field("received_bytes", "int", "B", "of these files", 0),
        Field("stored_bytes", "int", "B", "of them as they are stored", 0),
        Field("unfinished", "int", "", "offered and not whole yet", 0),
        Field("unfinished_bytes", "int", "B", "of these streams, that have still to come", 0),
        Field("unfinished_oldest_s", "float", "s", "since the oldest of these was offered; absent without one", 0),
    ),
)

LEDGER = Measurement(
    "ledger",
    "one probe's runs of one campaign in the ledger (docs/reference/ledger.md), once a minute; without the tag: those of no campaign",
    ("probe", "campaign"),
    (
        Field("runs_complete", "int", "", "all that they promised is here", 0),
        Field("runs_expired", "int", "", "they began before what the database keeps", 0),
        Field("runs_under_way", "int", "", "no manifest yet, and a session open or ended not long ago", 0),
        Field("runs_waiting", "int", "", "what is not here may still be at the probe", 0),
        Field("runs_missing", "int", "", "something is gone, or nobody knows where it is", 0),
        Field("runs_uncounted", "int", "", "not looked at yet: just come, or the server was brought up to date", 0),
        Field("runs_failed", "int", "", "of those with a manifest, that measured a failure: they count above too", 0),
        Field("records_promised", "int", "", "by the manifests of these runs", 0),
        Field("records_arrived", "int", "", "of these, in the database", 0),
        Field("files_promised", "int", "", "by the manifests of these runs", 0),
        Field("files_received", "int", "", "of these, received", 0),
        Field("incomplete_s", "float", "s", "since the oldest run ended whose records or manifest are not all here", 0),
        Field("files_incomplete_s", "float", "s", "likewise of files: captures go at night", 0),
    ),
)

LEDGER_RECORDS = Measurement(
    "ledger_records",
    "one probe's records, of all its spools together, in the ledger, every ten minutes",
    ("probe",),
    (
        Field("made", "int", "", "numbers given out, as far as known", 0),
        Field("arrived", "int", "", "in the database", 0),
        Field("rejected", "int", "", "as the probe counts them", 0),
        Field("dropped", "int", "", "as the probe counts them", 0),
        Field("waiting", "int", "", "not settled yet, not here yet", 0),
        Field("unexplained", "int", "", "the probe counts them as delivered, and they are not here", 0),
    ),
)

RUN_TRACE = Measurement(
    "run_trace",
    "one subflow of a run in the run's captures, once they were analysed, at its beginning; without path and subflow: the connection",
    ("probe", "run", "kind", "path", "operator", "subflow"),
    (
        Field("goodput_bytes", "int", "B", "each byte of the data level once, in the direction that carried more", 0),
        Field("duplicate_bytes", "int", "B", "that the capture saw again", 0),
        Field("hole_fill_bytes", "int", "B", "that came behind later ones of their subflow: lost and sent again", 0),
        Field("reinjected_bytes", "int", "B", "that another subflow had carried before", 0),
        Field("again_percent", "float", "%", "duplicate and hole-filling bytes by all that came", 0, 100),
        Field("rtt_median_ms", "float", "ms", "of the capture's samples; absent where the capture has none", 0),
        Field("rtt_p95_ms", "float", "ms", "likewise", 0),
        Field("reorder_queue_max_bytes", "int", "B", "most that waited for a gap; of the connection only", 0),
        Field("events", "int", "", "handovers and signal drops on its path while it ran, apart from others", 0),
        Field("recoveries", "int", "", "of these, that have a t_R (docs/reference/captures.md)", 0),
        Field("t_r_median_s", "float", "s", "t_R, the time until the RTT was back: median of these", 0, 60),
        Field("t_r_max_s", "float", "s", "the longest of these", 0, 60),
    ),
)

RUN_TRACE_SECOND = Measurement(
    "run_trace_second",
    "one second of one subflow of a run in the run's captures, of long runs several seconds; without path and subflow: the connection",
    ("probe", "run", "kind", "path", "operator", "subflow"),
    (
        Field("goodput_bit_per_s", "float", "bit/s", "each byte of the data level once, as in run_trace", 0),
        Field("again_bit_per_s", "float", "bit/s", "bytes seen twice, or that filled a hole: lost and sent again", 0),
        Field("reinjected_bit_per_s", "float", "bit/s", "that another subflow had carried before", 0),
        Field("rtt_mean_ms", "float", "ms", "of the capture's samples; absent where it has none", 0),
        Field("reorder_queue_max_bytes", "int", "B", "most that waited for a gap; of the connection only", 0),
        Field("t_r_s", "float", "s", "t_R of the longest recovery that began in it, on the event's path", 0, 60),
    ),
)

SERVER_MEASUREMENTS: dict[str, Measurement] = {
    m.name: m
    for m in (
        EXPECTED,
        PROBE_STATE,
        GATEWAY,
        GATEWAY_PROCESS,
        SERVER_HEALTH,
        SERVER_DISK,
        SERVER_TRACES,
        LEDGER,
        LEDGER_RECORDS,
        RUN_TRACE,
        RUN_TRACE_SECOND,
        *DERIVED_MEASUREMENTS,
    )
}

ALL_MEASUREMENTS = {**MEASUREMENTS, **SERVER_MEASUREMENTS}
"""A probe's and the server's."""

_TABLE = Table(SERVER_MEASUREMENTS)
_SPECS = {**record.SPECS, **_TABLE.specs}

check_server = _TABLE.check
"""RecordError unless names, types and ranges are those of a measurement of the server's own."""


def check(measurement: str, tags: Mapping[str, str], fields: Mapping[str, Value]) -> None:
    """``tandem.schema.record.check``, whose RecordError also says what only the server may record."""
    if measurement in SERVER_MEASUREMENTS:
        raise RecordError(f"{measurement!r} is recorded by the server alone")
    record.check(measurement, tags, fields)


def encode_point(point: line_protocol.Point) -> str:
    """The line of a point of any measurement, a probe's or the server's."""
    return line_protocol.encode_point(point, _SPECS)
