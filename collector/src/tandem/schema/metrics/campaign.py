"""How far the campaign of a probe is, and what data it took."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

CAMPAIGN_STATES = ("running", "waiting", "done", "stopped", "paused", "withdrawn")
"""A run is under way / none is / all are made / a person ended it / another goes before it / the server took it back. ``state_code`` is
the place in this list, from 0."""

CAMPAIGN = Measurement(
    "campaign",
    "how far a campaign is, once a minute while it is under way and when something of it changed",
    ("campaign",),
    (
        Field("state", "str", "", "one of CAMPAIGN_STATES"),
        Field("state_code", "int", "", "its place in that list", 0, len(CAMPAIGN_STATES) - 1),
        Field("made", "int", "", "runs made: each of a step's counts once, however often it was tried", 0),
        Field("of", "int", "", "runs that its steps have in all", 0),
        Field("ok", "int", "", "attempts that measured whole", 0),
        Field("failed", "int", "", "attempts whose failure was recorded", 0),
        Field("cut_off", "int", "", "attempts that did not come to an end (power)", 0),
        Field("step", "str", "", "of the run under way"),
        Field("said", "str", "", "what it does, or why it waits, for people"),
        Field("from_server", "bool", "", "pushed by the server, not begun by a person"),
        Field("age_s", "float", "s", "since it was begun on this probe", 0),
    ),
)

CAMPAIGN_DATA = Measurement(
    "campaign_data",
    "what a campaign's runs took of one path and may still take, with each campaign record",
    ("campaign", "role", "path", "operator"),
    (
        Field("used_bytes", "int", "B", "in this period of the budget, both ways", 0),
        Field("used_today_bytes", "int", "B", "of these, this day (UTC)", 0),
        Field("budget_bytes", "int", "B", "[budget] of the campaign for the period", 0),
        Field("day_budget_bytes", "int", "B", "and for a day", 0),
        Field("left_bytes", "int", "B", "of the period's budget", 0),
        Field("expected_bytes", "int", "B", "used when the period ends, at the pace so far", 0),
        Field("reset_in_s", "float", "s", "until the period ends", 0),
    ),
)
"""``role``: the campaign's word for the path, ``path`` what it is on this probe."""

CAMPAIGN_STEP = Measurement(
    "campaign_step",
    "how far one step of a campaign is, with each campaign record",
    ("campaign", "step"),
    (
        Field("made", "int", "", "runs made: each of the step's counts once, however often it was tried", 0),
        Field("of", "int", "", "runs that the step has in all", 0),
    ),
)
