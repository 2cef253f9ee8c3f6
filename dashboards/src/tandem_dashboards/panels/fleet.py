"""All probes at a glance: which are out, which measure, what is wrong with the others."""

from __future__ import annotations

from tandem_dashboards import transform
from tandem_dashboards.conditions import chosen, either, equal
from tandem_dashboards.expressions import Expression, count, greatest, last, total, value
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import markers, stat, state_timeline, table, time_series, world
from tandem_dashboards.links import Link, cell, label, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION, ROLLED
from tandem_server.schema import grades
from tandem_server.schema.measurements import PROBE_STATES

WHERE = (chosen("probe"),)
NOW = "5m"
"""The server writes states once a minute: one that is older is no state of now."""
_STATES = tuple(state for state in PROBE_STATES if state != "revoked")
"""A revoked probe has no points any more."""
_WORDS = grades.meanings("probe_state", "state")
_APART = {"idle": "notice", "not_uploading": "#FF9830", "silent": "fair"}
"""Where states are stacked in one chart, those of one grade need colours of their own; the red is left to online, not measuring."""


def _live(title: str = "Probe live") -> Link:
    return to_board("tandem-probe", title, probe=cell("probe"))


_RUN = to_board("tandem-run", "This run", probe=cell("probe"), run=cell("run"))
_CAMPAIGN = to_board("tandem-campaign", "This campaign", probe=cell("probe"), campaign=cell("campaign"))


def _now(*further: Expression | str) -> Select:
    """Each probe's newest state, and what stands beside it in the same point: nothing of an older one."""
    return select(last("state"), *further, of="probe_state", where=WHERE, by=["probe"], recent=NOW)


def how_many(width: int = 24) -> Panel:
    """How many probes are in which state now."""
    queries, looks = [], {}
    for state in _STATES:
        words, tone = _WORDS[state].words, _WORDS[state].tone
        in_it = select(count("state"), of=_now(), where=[equal("state", state)])
        # Two states may be called alike (idle); a series' name must be its own.
        queries.append(series(in_it, words))
        looks[words] = Look(colour=tone)
    return stat(
        "Probes now, by state",
        "How many of the chosen probes are in which state, as the server found them in the last five minutes. A state that is not "
        "shown: none is. A dash alone: the server wrote no states in that time, look at the board Server.",
        *queries,
        look=Look(unit="", decimals=0),
        looks=looks,
        width=width,
        height=4,
    )


def not_at_work(width: int = 24) -> Panel:
    """Online, and yet nothing comes of it."""
    wrong = select(
        "state",
        "since_s",
        "last_seen_s",
        "campaign",
        "unsent_records",
        "unsent_oldest_s",
        of=_now("since_s", "last_seen_s", "campaign", "unsent_records", "unsent_oldest_s"),
        where=[either(equal("state", "online_not_measuring"), equal("state", "not_uploading"))],
        by=["probe"],
    )
    return table(
        "Online, and not measuring or not uploading",
        "Probes that reach the server and yet do not do their work now: no modem is polled, no run comes of a campaign under way, or "
        "records and traces stay behind. Since when, and how much waits there. Empty: none. What to do: open the probe and look at its "
        "modems and its health.",
        wrong,
        show={
            "probe": Look(links=(_live(),)),
            "state": Look(cell="colour"),
            "since_s": Look(title="Since"),
            "last_seen_s": Look(title="Last seen", cell="text"),
            "campaign": Look(links=(_CAMPAIGN,)),
            "unsent_records": Look(title="Unsent records"),
            "unsent_oldest_s": Look(title="Oldest unsent", cell="text"),
        },
        sort_by=("since_s", True),
        width=width,
        height=6,
    )


def _plan() -> Select:
    """Of each probe, the SIM that is forecast to use most of its plan."""
    share = (value("expected_bytes") / value("plan_bytes")).in_unit("share").named("share")
    newest = select(
        last("expected_bytes"), "plan_bytes", of="sim_usage", where=WHERE, by=["probe", "path", "operator"], recent="2h"
    )
    of_sims = select(share, of=newest, by=["probe", "path", "operator"])
    return select(greatest("share").named("plan"), of=of_sims, by=["probe"])


def probes(width: int = 24) -> Panel:
    """Every registered probe: a silent one stays."""
    version = select(
        last("tandem").named("version"), of="software", where=WHERE, by=["probe"], timed=False, recent="30d"
    )
    refused = select(total("lines_rejected").named("rejected"), of="gateway", where=WHERE, by=["probe"], recent="1h")
    return table(
        "Probes",
        "Every registered probe, as the server found it in the last five minutes, silent ones too: state and since when, last request, "
        "the run that it is at, its records that wait. SIM plan: the SIM forecast to use most of its plan at the reset (told within "
        "two hours). Rejected: lines refused in the last hour. Version: told at a start or hourly, within 30 days. A dash: not told. "
        "Empty: the server wrote no states in the last five minutes.",
        _now("since_s", "last_seen_s", "run", "experiment", "campaign", "unsent_records", "unsent_oldest_s"),
        _plan(),
        refused,
        version,
        joined_by="probe",
        show={
            "probe": Look(links=(_live(),)),
            "state": Look(cell="colour"),
            "since_s": Look(title="Since"),
            "last_seen_s": Look(title="Last seen", cell="text"),
            "run": Look(links=(_RUN,)),
            "experiment": Look(),
            "campaign": Look(links=(_CAMPAIGN,)),
            "plan": Look(title="SIM plan", steps=grades.SHARES["plan"].steps, cell="text", decimals=0),
            "unsent_records": Look(title="Unsent records"),
            "unsent_oldest_s": Look(title="Oldest unsent", cell="text"),
            "rejected": Look(title="Rejected", cell="text"),
            "version": Look(title="Version"),
        },
        sort_by=("probe", False),
        width=width,
        height=16,
    )


def where_they_are(width: int = 12) -> Panel:
    """Each probe's last position."""
    # Two lasts, not one with the other beside it: that would read a whole day of seconds. Each record with a position has both.
    last_fix = select(
        last("latitude_deg").named("latitude"),
        last("longitude_deg").named("longitude"),
        of="position",
        where=WHERE,
        by=["probe"],
        timed=False,
        recent="1d",
    )
    return world(
        "Last positions",
        "Where each probe was last, within a day: a dot in the colour of its state now. Positions are as its privacy mode lets them "
        "out: exact, rounded, or none; inside a home zone there is none, so a probe at home stands where it left or came. A probe that "
        "is missing told no position in a day. Grey: its state is not known.",
        last_fix,
        _now("since_s"),
        layers=[markers("Probes", latitude="latitude", longitude="longitude", colour_by="state", text="probe")],
        looks={"probe": Look(links=(_live(),))},
        transformations=(transform.joined("probe"),),
        width=width,
        height=14,
    )


def states(width: int = 12) -> Panel:
    """What state each probe was in."""
    asked = select(last("state_code"), of="probe_state", where=WHERE, by=["probe"], every=INTERVAL, policy=RESOLUTION)
    return state_timeline(
        "State of each probe",
        "The state that the server found each probe in, once a minute; of each stretch the last. Nothing drawn: the server wrote "
        "nothing then, or the probe was not registered yet.",
        series(asked, "$tag_probe"),
        look=Look(links=(to_board("tandem-probe", "Probe live", probe=label("probe")),)),
        values=False,
        cadence="1m",
        width=width,
        height=14,
    )


def shares(width: int = 12) -> Panel:
    """What part of the time was spent in which state."""
    queries, looks = [], {}
    for state in _STATES:
        words = _WORDS[state].words
        of_all = (total(f"state_{state}_count") / total("records")).in_unit("share").named("share")
        queries.append(series(select(of_all, of="probe_state", where=WHERE, every=INTERVAL, policy=ROLLED), words))
        looks[words] = Look(colour=_APART.get(state, _WORDS[state].tone))
    return time_series(
        "States over time, all probes together",
        "What part of the chosen probes' minutes was spent in which state; together 100 %. From roll-ups, so the last minutes may be "
        "missing. Empty: the server wrote no states.",
        *queries,
        look=Look(low=0, high=1),
        looks=looks,
        style="bars",
        stacked=True,
        cadence="2m",
        width=width,
    )


def backlog(width: int = 12) -> Panel:
    """How long records wait at the probes."""
    asked = select(
        greatest("unsent_oldest_s"), of="probe_state", where=WHERE, by=["probe"], every=INTERVAL, policy=RESOLUTION
    )
    return time_series(
        "Oldest unsent record",
        "How old the oldest record in each probe's spool is that the server has not, as the probe told it last. Dashed: ten minutes, "
        "and an hour. Nothing drawn for a probe: nothing waits there, or it told nothing of itself in the last hour.",
        series(asked, "$tag_probe"),
        grades="lines",
        cadence="1m",
        width=width,
    )


def plans(width: int = 24) -> Panel:
    """Every SIM against its plan."""
    newest = select(
        last("used_bytes"),
        "used_today_bytes",
        "plan_bytes",
        "expected_bytes",
        "used_up_in_s",
        "reset_in_s",
        of="sim_usage",
        where=WHERE,
        by=["probe", "path", "operator"],
        recent="1d",
    )
    of_plan = (value("expected_bytes") / value("plan_bytes")).in_unit("share").named("plan")
    asked = select(
        "used_today_bytes",
        "used_bytes",
        "plan_bytes",
        "expected_bytes",
        of_plan,
        "used_up_in_s",
        "reset_in_s",
        of=newest,
        by=["probe", "path", "operator"],
    )
    return table(
        "SIM plans",
        "What each SIM carried today and in this period of its plan, and what it will have carried at the reset if it goes on so; used "
        "up in: only where the plan will not last. As the probe told it last, within a day. Empty: no SIM told of its use.",
        asked,
        show={
            "probe": Look(links=(_live(),)),
            "operator": Look(),
            "path": Look(title="Modem"),
            "used_today_bytes": Look(title="Today"),
            "used_bytes": Look(title="This period"),
            "plan_bytes": Look(title="Plan"),
            "expected_bytes": Look(title="Expected at the reset"),
            "plan": Look(title="Expected, of the plan", steps=grades.SHARES["plan"].steps, cell="colour", decimals=0),
            "used_up_in_s": Look(title="Used up in"),
            "reset_in_s": Look(title="Reset in"),
        },
        sort_by=("plan", True),
        width=width,
        height=10,
    )
