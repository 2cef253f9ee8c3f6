"""Every quantity that Tandem records: name, type, unit, range and source, once.

Line protocol, the gateway's checks, panel units and the documentation follow from these tables. To add a metric, add one
``Field`` in the module that has its measurement; a new measurement goes into ``MEASUREMENTS`` too. Names end in their unit; an
absent quantity is left out of a record, never written as 0, -1 or 99.

2026-11-21: ``run_usage``, ``phase``, and the tag ``experiment`` of ``run``, for runs of any experiment.
2026-11-21: ``clock``; the common field ``utc_error_ms``.
2026-11-21: ``health`` with disk, memory, temperature, a Raspberry Pi's supply; ``temperature``, ``card``, ``software``,
``modem_health``, ``sim_usage``; the event kinds ``undervoltage``, ``throttled``, ``disk_low``, ``plan_over``, ``card_worn`` (each
``begins`` and ``ends``, by ``state``) and ``capture_salvaged``.
2026-11-21: ``spool``; ``expected`` and ``probe_state``, the server's own (``SERVER_MEASUREMENTS``).
2026-11-22: the tag ``campaign`` of ``run``; ``run_begun``; ``dash_segment``, ``dash_playback``, ``dash``; ``aggregation``, ``verdict``;
``campaign``, ``campaign_data``.
2026-11-22: ``spool_limit_bytes`` and ``undervoltage_seen`` of ``health``; ``state_code`` of ``modem_health``.
2026-11-22: the server's own ``gateway``, ``gateway_process``, ``server_health``, ``server_disk``, ``server_traces``, ``ledger`` and
``ledger_records``; ``run``, ``experiment`` and ``campaign`` of ``probe_state``.
2026-11-22: ``campaign_step``.
2026-11-22: the server's own ``coverage``, ``coverage_day``, ``probe_area_day``, ``area``, ``area_day``, ``pair`` and ``pair_day``, derived
from what probes sent.
2026-11-26: the server's own ``run_trace`` and ``run_trace_second``; the event kind ``capture_missing``.
2026-11-26: ``round_trip``.
2026-11-24: ``day_limit_bytes`` of ``sim_usage``; ``sickness`` of ``modem_health`` is ``stale`` no more.
"""

from __future__ import annotations

from tandem.schema.metrics.campaign import CAMPAIGN, CAMPAIGN_DATA, CAMPAIGN_STATES, CAMPAIGN_STEP
from tandem.schema.metrics.clock import CLOCK
from tandem.schema.metrics.coverage import AREA, AREA_DAY, COVERAGE, COVERAGE_DAY, PAIR, PAIR_DAY, PROBE_AREA_DAY
from tandem.schema.metrics.event import EVENT, EVENT_KINDS
from tandem.schema.metrics.finding import AGGREGATION, VERDICT, VERDICT_ROLES, VERDICTS
from tandem.schema.metrics.play import DASH, DASH_PLAYBACK, DASH_SEGMENT, PLAYBACK_STATES
from tandem.schema.metrics.position import POSITION
from tandem.schema.metrics.probe import (
    CARD,
    HEALTH,
    MODEM_HEALTH,
    MODEM_STATES,
    SIM_USAGE,
    SOFTWARE,
    TEMPERATURE,
    USAGE,
)
from tandem.schema.metrics.radio import RADIO, RADIO_STATES, REGISTRATION
from tandem.schema.metrics.round_trip import ROUND_TRIP, ROUND_TRIP_MEASURED, ROUND_TRIP_OUTCOMES
from tandem.schema.metrics.run import CONNECTION, PHASE, RUN, RUN_BEGUN, RUN_USAGE, SUBFLOW
from tandem.schema.metrics.server import EXPECTED, PROBE_STATE, PROBE_STATES, SERVER_MEASUREMENTS, SERVER_PLACES
from tandem.schema.metrics.spool import SPOOL
from tandem.schema.metrics.table import COMMON_FIELDS, COMMON_TAGS, Field, Kind, Measurement

__all__ = [
    "AGGREGATION",
    "AREA",
    "AREA_DAY",
    "CAMPAIGN",
    "CAMPAIGN_DATA",
    "CAMPAIGN_STATES",
    "CAMPAIGN_STEP",
    "CARD",
    "CLOCK",
    "COMMON_FIELDS",
    "COMMON_TAGS",
    "CONNECTION",
    "COVERAGE",
    "COVERAGE_DAY",
    "DASH",
    "DASH_PLAYBACK",
    "DASH_SEGMENT",
    "EVENT",
    "EVENT_KINDS",
    "EXPECTED",
    "EXPERIMENT_MEASUREMENTS",
    "HEALTH",
    "MEASUREMENTS",
    "MODEM_HEALTH",
    "MODEM_STATES",
    "PAIR",
    "PAIR_DAY",
    "PHASE",
    "PLAYBACK_STATES",
    "POSITION",
    "PROBE_AREA_DAY",
    "PROBE_STATE",
    "PROBE_STATES",
    "RADIO",
    "RADIO_STATES",
    "REGISTRATION",
    "ROUND_TRIP",
    "ROUND_TRIP_MEASURED",
    "ROUND_TRIP_OUTCOMES",
    "RUN",
    "RUN_BEGUN",
    "RUN_USAGE",
    "SERVER_MEASUREMENTS",
    "SERVER_PLACES",
    "SIM_USAGE",
    "SOFTWARE",
    "SPOOL",
    "SUBFLOW",
    "TEMPERATURE",
    "USAGE",
    "VERDICT",
    "VERDICTS",
    "VERDICT_ROLES",
    "Field",
    "Kind",
    "Measurement",
]

MEASUREMENTS: dict[str, Measurement] = {
    m.name: m
    for m in (
        *(RADIO, REGISTRATION, EVENT, POSITION, ROUND_TRIP),
        *(SUBFLOW, CONNECTION, RUN_BEGUN, RUN, RUN_USAGE, PHASE),
        *(DASH_SEGMENT, DASH_PLAYBACK, DASH, AGGREGATION, VERDICT),
        *(CAMPAIGN, CAMPAIGN_STEP, CAMPAIGN_DATA),
        *(HEALTH, TEMPERATURE, CARD, SOFTWARE, MODEM_HEALTH, USAGE, SIM_USAGE, SPOOL, CLOCK),
    )
}

EXPERIMENT_MEASUREMENTS = frozenset(m.name for m in (DASH_SEGMENT, DASH_PLAYBACK, DASH, AGGREGATION, VERDICT))
"""What an experiment's process may say as a record of its own (``tandem.experiment.base.record``). Tags of the run (``run``,
``experiment``, ``campaign``, ``operator``) are the collector's to add."""
