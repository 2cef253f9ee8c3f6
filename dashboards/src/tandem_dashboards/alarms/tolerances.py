"""From when on a rule speaks, and for how long it must be so: one table, with the reason beside each figure.

Where the schema grades a quantity (``tandem_server.schema.grades``) the limit is the schema's: an alarm and a board's red are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.metrics import MODEM_STATES
from tandem_server.schema.grades import SCALES, SHARES
from tandem_server.schema.measurements import PROBE_STATES


@dataclass(frozen=True)
class Tolerance:
    """``limit`` in the unit of what is compared; ``for_s``: so long it must be so; ``why``: of both."""

    limit: float
    for_s: int
    why: str


def _state(states: tuple[str, ...], name: str, for_s: int, why: str) -> Tolerance:
    return Tolerance(states.index(name), for_s, why)


KNOWN_DAYS = 7
"""So long what a probe told last stands for it while it is silent: then its alarm ends, and probe-gone goes on. The database reads all of
this time for each query: twice as long costs twice as much."""

SEEN_S = 600
"""Within this time the server's own series have a point, ten of them; older ones are of a server that has stopped."""

TOLERANCES: dict[str, Tolerance] = {
    "probe-silent": Tolerance(
        1800, 0, "half an hour: longer than a tunnel or a restart; the server itself waits five minutes"
    ),
    "probe-gone": Tolerance(86_400, 0, "a day: longer than a night in a garage"),
    "probe-never-came": Tolerance(604_800, 0, "a week from its registration to its first word"),
    "probe-not-measuring": _state(PROBE_STATES, "online_not_measuring", 600, "a restart of the collector takes less"),
    "probe-not-uploading": _state(PROBE_STATES, "not_uploading", 900, "the server has waited unsent_after_s before"),
    "probe-spool": Tolerance(SHARES["spool_used"].fair, 300, f"poor from there: {SHARES['spool_used'].source}"),
    "probe-records-lost": Tolerance(0, 0, "each record that was dropped is one too many"),
    "probe-undervoltage": Tolerance(3, 0, "three rounds of ten seconds in half an hour: not the start of an engine"),
    "probe-clock": Tolerance(SCALES["clock.age_s"].fair, 600, f"poor from there: {SCALES['clock.age_s'].source}"),
    "probe-disk": Tolerance(SHARES["disk_used"].fair, 600, f"poor from there: {SHARES['disk_used'].source}"),
    "probe-hot": Tolerance(
        SCALES["health.processor_temperature_degc"].fair,
        600,
        f"poor from there, in the mean of ten minutes: {SCALES['health.processor_temperature_degc'].source}",
    ),
    "card-worn": Tolerance(
        SCALES["card.life_used_a_percent"].good, 0, f"fair from there: {SCALES['card.life_used_a_percent'].source}"
    ),
    "modem-lost": _state(MODEM_STATES, "lost", 600, "the ladder's first steps take minutes"),
    "modem-recovering": _state(MODEM_STATES, "recovering", 1800, "the whole ladder has been climbed by then"),
    "plan-over": Tolerance(SHARES["plan"].fair, 3600, f"poor from there: {SHARES['plan'].source}"),
    "plan-used-up": Tolerance(0.95, 0, "stated: a twentieth is a day's measuring on most plans"),
    "ledger-missing": Tolerance(0, 1800, "what is under way has half an hour to arrive"),
    "ledger-late": Tolerance(
        SCALES["ledger.incomplete_s"].fair, 0, f"poor from there: {SCALES['ledger.incomplete_s'].source}"
    ),
    "trace-never-comes": Tolerance(
        SCALES["server_traces.unfinished_oldest_s"].fair,
        0,
        f"poor from there: {SCALES['server_traces.unfinished_oldest_s'].source}",
    ),
    "gateway-rejecting": Tolerance(0, 0, "a rejected record is one that the probe has given up"),
    "gateway-overloaded": Tolerance(10, 300, "stated: a probe that is told to come later once comes later"),
    "database-failing": Tolerance(0, 180, "a restart of the database takes a minute"),
    "server-disk": Tolerance(SHARES["disk_used"].fair, 600, f"poor from there: {SHARES['disk_used'].source}"),
    "server-dead": Tolerance(1, 120, "the window of five minutes has waited already"),
}
"""By the alarm's key."""

FORECAST_DAYS = 3
"""A forecast of a SIM's period from fewer whole days is not alarmed: the first Monday would look like the month."""
