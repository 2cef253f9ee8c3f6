"""All alarms, by the group in which Grafana evaluates them. One function an alarm; a new one comes into this list."""

from __future__ import annotations

from tandem_dashboards.alarms import probes, server
from tandem_dashboards.alarms.alarm import Alarm

GROUPS: dict[str, tuple[Alarm, ...]] = {
    "Probes": (probes.silent(), probes.gone(), probes.never_came(), probes.not_measuring(), probes.not_uploading()),
    "Kits": (
        probes.spool(),
        probes.records_lost(),
        probes.undervoltage(),
        probes.clock(),
        probes.disk(),
        probes.hot(),
        probes.card(),
    ),
    "Modems and SIMs": (probes.lost(), probes.recovering(), probes.over_plan(), probes.used_up()),
    "Server": (
        server.dead(),
        server.disk(),
        server.database_failing(),
        server.overloaded(),
        server.rejecting(),
        server.ledger_missing(),
        server.ledger_late(),
        server.trace_never_comes(),
    ),
}
"""Evaluated once a minute, as the server writes its series."""


def alarms() -> tuple[Alarm, ...]:
    """All of them."""
    return tuple(alarm for group in GROUPS.values() for alarm in group)
