"""All alarms, by the group in which Grafana evaluates them. One function an alarm; a new one comes into this list."""

from __future__ import annotations

from tandem_dashboards.alarms.alarm import Alarm
from tandem_dashboards.alarms.rules import kits, modems, presence, server

GROUPS: dict[str, tuple[Alarm, ...]] = {
    "Probes": (
        presence.silent(),
        presence.gone(),
        presence.never_came(),
        presence.not_measuring(),
        presence.not_uploading(),
    ),
    "Kits": (
        kits.spool(),
        kits.records_lost(),
        kits.undervoltage(),
        kits.clock(),
        kits.disk(),
        kits.hot(),
        kits.card(),
    ),
    "Modems and SIMs": (modems.lost(), modems.recovering(), modems.over_plan(), modems.used_up()),
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
