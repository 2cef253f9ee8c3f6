"""What boards ask over long times: each measurement by the minute and by the hour. The one table of it; docs/reference/ledger.md tells how.

Raw records are in the retention policy ``kept``, roll-ups in ``minute`` and ``hour``, in measurements of the same names. **A field has
its raw name where it means the same**, so that one query serves all: ``SELECT mean("rsrp_dbm") FROM "$resolution"."radio"``. What it holds:

- a mean (``rsrp_dbm``): of the window's records, with ``rsrp_dbm_sum`` and ``rsrp_dbm_count``. ``mean("rsrp_dbm")`` over windows counts
  each window alike; ``sum("rsrp_dbm_sum") / sum("rsrp_dbm_count")`` each record. Where people need them ``rsrp_dbm_min``, ``rsrp_dbm_max``.
- a sum (``bytes`` of a run): ``sum("bytes")`` serves all.
- the last (counters, words, how things stand): ``last("state")`` and ``non_negative_difference(last("received_bytes"))`` serve all.
- how often a word was said (``state_silent_count``): its share is ``sum("state_silent_count") / sum("records")``.
- ``records``, in every roll-up: how many raw records the window has. ``sum("records")`` of ``event`` by its tag ``kind`` counts events.

What only roll-ups have (``records``, ``_count``, ``_sum``, ``_min``, ``_max``) is asked with ``$rolled`` in place of ``$resolution``: it is
``minute`` where that is ``kept``. Tags that grow without end (boot, run, subflow, pair) are gone. A window's time is its beginning.
"""

from __future__ import annotations

from tandem.schema.metrics.coverage import DERIVED_POLICIES
from tandem.schema.rollups.probe import PROBE, RADIO
from tandem.schema.rollups.resolution import FINEST, RESOLUTIONS, Resolution, Step, resolution_query
from tandem.schema.rollups.runs import RUNS, TRANSPORT
from tandem.schema.rollups.server import SERVER
from tandem.schema.rollups.table import RECORDS, Column, Rolled, Rollup

__all__ = [
    "FINEST",
    "NOT_ROLLED",
    "RECORDS",
    "RESOLUTIONS",
    "ROLLUPS",
    "Column",
    "Resolution",
    "Rolled",
    "Rollup",
    "Step",
    "resolution_query",
]

ROLLUPS: dict[str, Rollup] = {one.measurement: one for one in (*RADIO, *TRANSPORT, *RUNS, *PROBE, *SERVER)}
"""By measurement."""

NOT_ROLLED = {
    "registration": "asked for near an event only",
    "position": "coverage has it, joined with the radio and by area",
    "phase": "of one run",
    "run_trace": "of one run",
    "run_trace_second": "of one run, or of the last day",
    "dash_playback": "of one play; dash and dash_segment have its figures",
    **dict.fromkeys(DERIVED_POLICIES, "made by the hour and the day, asked as it is"),
}
"""Measurements without a roll-up, and why."""
