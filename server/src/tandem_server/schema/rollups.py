"""What boards query over long times: each measurement by the minute and by the hour. The one table of it; see docs/reference/ledger.md.

Raw records are in the retention policy ``kept``, roll-ups in ``minute`` and ``hour``, in measurements of the same names. **A field has
its raw name where it means the same**, so that one query serves all: ``SELECT mean("rsrp_dbm") FROM "$resolution"."radio"``. What it holds:

- a mean (``rsrp_dbm``): of the window's records, with ``rsrp_dbm_sum`` and ``rsrp_dbm_count``. ``mean("rsrp_dbm")`` over windows counts
  each window alike; ``sum("rsrp_dbm_sum") / sum("rsrp_dbm_count")`` each record. Where people need them ``rsrp_dbm_min``, ``rsrp_dbm_max``.
- a sum (``bytes`` of a run): ``sum("bytes")`` serves all.
- the last (counters, words, how things stand): ``last("state")`` and ``non_negative_difference(last("received_bytes"))`` serve all.
- how often a word was said (``state_silent_count``): its share is ``sum("state_silent_count") / sum("records")``.
- ``records``, in every roll-up: how many raw records the window has. ``sum("records")`` of ``event`` by its tag ``kind`` counts events.

What only roll-ups have (``records``, ``_count``, ``_sum``, ``_min``, ``_max``) is queried with ``$rolled``, not ``$resolution``: it is
``minute`` where that is ``kept``. Tags that grow without end (boot, run, subflow, pair) are gone. A window's time is its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from tandem.schema.metrics import (
    CAMPAIGN_STATES,
    MODEM_STATES,
    RADIO_STATES,
    ROUND_TRIP_OUTCOMES,
    Field,
    Kind,
    Measurement,
)
from tandem_server.schema.derived import DERIVED_POLICIES
from tandem_server.schema.measurements import ALL_MEASUREMENTS, PROBE_STATES

Step = Literal["minute", "hour"]
_HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class Resolution:
    """``policy`` serves time ranges shorter than ``below_s`` (None: any). ``step_s``: a window; 0: records as they are. ``rolled``: the
    policy for what only roll-ups have."""

    policy: str
    step_s: int
    below_s: int | None
    rolled: Step


RESOLUTIONS = (
    Resolution("kept", 0, 3 * _HOUR_S + 1, "minute"),
    Resolution("minute", 60, 7 * 24 * _HOUR_S + 1, "minute"),
    Resolution("hour", 3600, None, "hour"),
)
"""From the finest on: up to three hours raw, up to seven days by the minute, by the hour above."""

FINEST = RESOLUTIONS[0]

MAPPING_POLICY, MAPPING = "boards", "resolution"
"""Retention policy and measurement of the database that hold ``RESOLUTIONS``, one point each, for ``resolution_query``."""


def resolution_query(field: Literal["resolution", "rolled"] = "resolution") -> str:
    """The InfluxQL of Grafana's variable of that name: one row, the policy for the board's time range. Refreshed when the range changes."""
    return (
        f'SELECT "{field}" FROM "{MAPPING_POLICY}"."{MAPPING}"'  # noqa: S608  constants
        ' WHERE "from_ms" <= $__to - $__from AND "below_ms" > $__to - $__from'
    )


Holds = Literal["mean", "sum", "last", "min", "max"]
Also = Literal["min", "max"]

RECORDS = "records"
"""In every roll-up: how many raw records the window has."""


@dataclass(frozen=True, slots=True)
class Rolled:
    """One raw field. ``holds``: what the roll-up's field of the same name is, over the records of the window that have it. ``also``: its
    minimum and maximum, as ``FIELD_min`` and ``FIELD_max``. ``words``: for each, ``FIELD_WORD_count``: how many records had that word.

    A mean has its sum and its count beside it, ``FIELD_sum`` and ``FIELD_count``: by these, means are put together exactly.
    """

    field: str
    holds: Holds
    also: tuple[Also, ...] = ()
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a roll-up. ``of_raw``: the InfluxQL that makes it of raw records, with the condition ``where`` if any; ``of_finer``: of
    a finer roll-up's points. Neither depends on which other windows are looked at: so any order gives the same."""

    name: str
    kind: Kind
    unit: str
    source: str
    of_raw: str
    of_finer: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Rollup:
    """One measurement's roll-up. ``tags``: those that stay, ``probe`` among them where it has one. ``counted``: a field that every record
    has, by which they are counted."""

    measurement: str
    tags: tuple[str, ...]
    counted: str
    fields: tuple[Rolled, ...]

    @property
    def raw(self) -> Measurement:
        """What it is made of."""
        return ALL_MEASUREMENTS[self.measurement]

    @property
    def columns(self) -> tuple[Column, ...]:
        """Its fields, ``records`` first."""
        count = Column(RECORDS, "int", "", "raw records in the window", _count(self.counted), _sum(RECORDS))
        return (count, *(column for one in self.fields for column in _columns(self.raw.field(one.field), one)))

    def column(self, name: str) -> Column:
        """The field called ``name``; KeyError when the roll-up has none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def _columns(raw: Field, one: Rolled) -> Iterator[Column]:
    name = raw.name
    if one.holds == "mean":
        finer = f"{_sum(f'{name}_sum')} / {_sum(f'{name}_count')}"
        yield Column(name, "float", raw.unit, f"mean of {name}", f'mean("{name}")', finer)
        total = Column(f"{name}_sum", raw.kind, raw.unit, f"sum of {name}", _sum(name), _sum(f"{name}_sum"))
        yield total
        yield Column(f"{name}_count", "int", "", f"records with {name}", _count(name), _sum(f"{name}_count"))
    else:
        made = f'{one.holds}("{name}")'
        yield Column(name, raw.kind, raw.unit, f"{_WORDS[one.holds]} {name}", made, made)
    for also in one.also:
        yield Column(
            f"{name}_{also}",
            raw.kind,
            raw.unit,
            f"{_WORDS[also]} {name}",
            f'{also}("{name}")',
            f'{also}("{name}_{also}")',
        )
    for word in one.words:
        counted = f"{name}_{word}_count"
        literal = word if raw.kind == "bool" else f"'{word}'"
        source = f"records whose {name} is {word}"
        yield Column(counted, "int", "", source, _count(name), _sum(counted), f'"{name}" = {literal}')


_WORDS: dict[str, str] = {"sum": "sum of", "last": "the last", "min": "the lowest", "max": "the highest"}


def _count(name: str) -> str:
    return f'count("{name}")'


def _sum(name: str) -> str:
    return f'sum("{name}")'


def means(*names: str) -> tuple[Rolled, ...]:
    """Each as its mean."""
    return tuple(Rolled(name, "mean") for name in names)


def spreads(*names: str) -> tuple[Rolled, ...]:
    """Each as its mean, its minimum and its maximum."""
    return tuple(Rolled(name, "mean", ("min", "max")) for name in names)


def sums(*names: str) -> tuple[Rolled, ...]:
    """Each as its sum: amounts that belong to one record each."""
    return tuple(Rolled(name, "sum") for name in names)


def lasts(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last: counters, words, and what says how things stand."""
    return tuple(Rolled(name, "last") for name in names)


def peaks(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and its maximum."""
    return tuple(Rolled(name, "last", ("max",)) for name in names)


def floors(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and its minimum."""
    return tuple(Rolled(name, "last", ("min",)) for name in names)


def counted(name: str, *words: str) -> tuple[Rolled, ...]:
    """The last word, and how often each of ``words`` occurred: with ``records``, its share."""
    return (Rolled(name, "last", (), words),)


def flags(*names: str) -> tuple[Rolled, ...]:
    """Each as it was last, and how often it was true."""
    return tuple(Rolled(name, "last", (), ("true",)) for name in names)


_PATH = ("probe", "path", "operator")

RADIO = (
    Rollup(
        "radio",
        (*_PATH, "rat"),
        "seq",
        (
            *counted("state", *RADIO_STATES),
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
            *counted("handover_kind", "enb", "sector"),
            *lasts("state", "step", "detail", "detector", "speed_class", "seq"),
        ),
    ),
    Rollup(
        "round_trip",
        _PATH,
        "seq",
        (*counted("outcome", *ROUND_TRIP_OUTCOMES), *means("unanswered"), *spreads("rtt_ms"), *flags("beside_run")),
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
            *counted("state", *MODEM_STATES),
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
            *counted("state", *CAMPAIGN_STATES),
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
SERVER = (
    Rollup("expected", ("probe",), "seen", (Rolled("seen", "mean", ("min",)),)),
    Rollup(
        "probe_state",
        ("probe",),
        "state_code",
        (
            *counted("state", *PROBE_STATES),
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

ROLLUPS: dict[str, Rollup] = {one.measurement: one for one in (*RADIO, *TRANSPORT, *RUNS, *PROBE, *SERVER)}
"""By measurement."""

NOT_ROLLED = {
    "registration": "queried near an event only",
    "position": "coverage has it, joined with the radio and by area",
    "phase": "of one run",
    "run_trace": "of one run",
    "run_trace_second": "of one run, or of the last day",
    "dash_playback": "of one play; dash and dash_segment have its figures",
    **dict.fromkeys(DERIVED_POLICIES, "made by the hour and the day, queried as it is"),
}
"""Measurements without a roll-up, and why."""
