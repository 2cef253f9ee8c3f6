"""All alarms, by the group in which Grafana evaluates them."""

from tandem_dashboards.alarms.alarm import Alarm
from tandem_dashboards.alarms.probes import KITS, MODEMS, PROBES
from tandem_dashboards.alarms.server import SERVER

GROUPS: dict[str, tuple[Alarm, ...]] = {"Probes": PROBES, "Kits": KITS, "Modems and SIMs": MODEMS, "Server": SERVER}
"""Evaluated once a minute, as the server writes its series."""


def alarms() -> tuple[Alarm, ...]:
    """All of them."""
    return tuple(alarm for group in GROUPS.values() for alarm in group)
