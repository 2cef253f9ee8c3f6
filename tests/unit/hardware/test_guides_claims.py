"""What the commuter's page and the consent form say of records and position is what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from tandem.app.config_schema import TABLES
from tandem.schema.metrics import COMMON_FIELDS, COMMON_TAGS, MEASUREMENTS

GUIDES = Path(__file__).parents[3] / "hardware" / "guides"
COMMUTER = " ".join((GUIDES / "commuter.md").read_text(encoding="utf-8").split())
CONSENT = " ".join((GUIDES / "consent.md").read_text(encoding="utf-8").split())

TOLD = {
    "The networks, once a second:": {"radio", "registration", "event"},
    "Its own measurements:": {
        *("subflow", "connection", "run_begun", "run", "run_usage", "phase", "aggregation", "verdict"),
        *("dash_segment", "dash_playback", "dash", "campaign", "campaign_step", "campaign_data"),
    },
    "Itself:": {"health", "temperature", "card", "software", "modem_health", "usage", "sim_usage", "spool", "clock"},
    "Its place,": {"position"},
}
"""Which sentence of the page tells of which kind of record."""
NEVER = re.compile(
    r"imsi|iccid|imei|msisdn|subscriber|phone|ssid|bssid|(^|_)mac($|_)|bluetooth|audio|image|camera|microphone|person|carrier|owner"
)


def test_every_kind_of_record_is_told_of() -> None:
    assert all(f"**{sentence}**" in COMMUTER for sentence in TOLD)
    told = [name for names in TOLD.values() for name in names]
    assert sorted(told) == sorted(MEASUREMENTS), (
        "a kind of record that the commuter's page does not tell of, or that is gone"
    )


def test_nothing_is_recorded_that_is_said_not_to_be() -> None:
    names = {*COMMON_TAGS, *(field.name for field in COMMON_FIELDS)}
    for measurement in MEASUREMENTS.values():
        names |= {*measurement.tags, *(field.name for field in measurement.fields)}
    assert [name for name in sorted(names) if NEVER.search(name)] == []
    assert "No SIM card number and no subscriber number leaves the kit." in COMMUTER
    assert "Records bear the kit's name, not yours." in COMMUTER
    assert "probe" in COMMON_TAGS


def test_the_cells_are_admitted() -> None:
    assert {"eci", "tac", "plmn"} <= {field.name for field in MEASUREMENTS["radio"].fields}
    assert "They are recorded in every mode, at home too." in COMMUTER
    # Of the position itself unit/position/test_position_privacy.py proves it.
    assert "no position is recorded, in any mode" in COMMUTER
    assert "in every mode of position and in home zones too" in CONSENT


def _key(table: str, name: str):  # type: ignore[no-untyped-def]
    return next(key for key in TABLES[table] if key.name == name)


def test_the_numbers_are_the_defaults() -> None:
    assert _key("polling", "period_s").default == 1.0
    assert _key("capture", "snaplen_bytes").default == 128
    assert "the first 128 bytes of each packet" in COMMUTER
    assert "the first 128 bytes of each packet" in CONSENT
    grid_deg = _key("position", "grid_deg").default
    assert 0.9 < grid_deg * 111.2 < 1.2
    assert "rounded to about one kilometre" in COMMUTER
    assert "grid of about one kilometre" in CONSENT
    radius = _key("position.home_zone", "radius_m")
    assert (radius.minimum, radius.maximum) == (100, 20_000)
    assert "each from 100 m to 20 km in radius" in CONSENT


def test_the_modes_are_those_of_the_configuration() -> None:
    mode = _key("position", "mode")
    for text in (COMMUTER, CONSENT):
        assert tuple(re.findall(r"☐ \*\*(\w+)\*\* –", text)) == mode.choices
    assert mode.default == "off"
