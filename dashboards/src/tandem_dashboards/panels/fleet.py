"""All probes at a glance: which are out, which measure, what is wrong with the others."""

from __future__ import annotations

from tandem_dashboards.expressions import Expression, chosen, count, either, equal, greatest, last, total, value
from tandem_dashboards.influxql import ROLLED, Select, select, windowed
from tandem_dashboards.kinds import markers, stat, state_timeline, table, time_series, world
from tandem_dashboards.overrides import COLOUR, TO_PROBE, Override, cell, label, shown, to_board
from tandem_dashboards.panel import Panel, joined, series
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


_RUN = to_board("tandem-run", "This run", probe=cell("probe"), run=cell("run"))
_CAMPAIGN = to_board("tandem-campaign", "This campaign", probe=cell("probe"), campaign=cell("campaign"))


def _now(*further: Expression | str) -> Select:
    """Each probe's newest state, and what stands beside it in the same point: nothing of an older one."""
    return select(last("state"), *further, of="probe_state", where=WHERE, by=["probe"], recent=NOW)


def how_many() -> Panel:
    """How many probes are in which state now."""
    queries, overrides = [], {}
    for state in _STATES:
        words, tone = _WORDS[state].words, _WORDS[state].tone
        in_it = select(count("state"), of=_now(), where=[equal("state", state)])
        # Two states may be called alike (idle); a series' name must be its own.
        queries.append(series(in_it, words))
        overrides[words] = Override(colour=tone)
    return stat(
        "Probes now, by state",
        "How many of the chosen probes are in which state, as the server found them in the last five minutes. A state that is not "
        "shown: none is. A dash alone: the server wrote no states in that time, look at the board Server.",
        *queries,
        override=Override(unit="", decimals=0),
        overrides=overrides,
        size=(24, 4),
    )


def not_at_work() -> Panel:
    """Online, and yet nothing comes of it."""
    wrong = select(
        *("state", "since_s", "last_seen_s", "campaign", "unsent_records", "unsent_oldest_s"),
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
        show=shown(probe=TO_PROBE, state=COLOUR, since_s="Since")
        | shown(last_seen_s=Override(title="Last seen", cell="text"), campaign=Override(links=(_CAMPAIGN,)))
        | shown(unsent_records="Unsent records", unsent_oldest_s=Override(title="Oldest unsent", cell="text")),
        sort_by=("since_s", True),
        size=(24, 6),
    )


def _plan() -> Select:
    """Of each probe, the SIM that is forecast to use most of its plan."""
    part = value("expected_bytes").part_of(value("plan_bytes"), "share")
    newest = select(
        last("expected_bytes"), "plan_bytes", of="sim_usage", where=WHERE, by=["probe", "path", "operator"], recent="2h"
    )
    of_sims = select(part, of=newest, by=["probe", "path", "operator"])
    return select(greatest("share").named("plan"), of=of_sims, by=["probe"])


def probes() -> Panel:
    """Every registered probe: a silent one stays."""
    version = select(
        last("tandem").named("version"), of="software", where=WHERE, by=["probe"], timed=False, recent="30d"
    )
    return table(
        "Probes",
        "Every registered probe, as the server found it in the last five minutes, silent ones too: state and since when, last request, "
        "the run that it is at, its records that wait. SIM plan: the SIM forecast to use most of its plan at the reset (told within "
        "two hours). Rejected: lines refused in the last hour. Version: told at a start or hourly, within 30 days. A dash: not told. "
        "Empty: the server wrote no states in the last five minutes.",
        _now("since_s", "last_seen_s", "run", "experiment", "campaign", "unsent_records", "unsent_oldest_s"),
        _plan(),
        select(total("lines_rejected").named("rejected"), of="gateway", where=WHERE, by=["probe"], recent="1h"),
        version,
        joined_by="probe",
        show=shown(probe=TO_PROBE, state=COLOUR, since_s="Since")
        | shown(last_seen_s=Override(title="Last seen", cell="text"), run=Override(links=(_RUN,)))
        | shown("experiment", campaign=Override(links=(_CAMPAIGN,)))
        | shown(plan=Override(title="SIM plan", steps=grades.SHARES["plan"].steps, cell="text", decimals=0))
        | shown(unsent_records="Unsent records", unsent_oldest_s=Override(title="Oldest unsent", cell="text"))
        | shown(rejected=Override(title="Rejected", cell="text"), version="Version"),
        sort_by=("probe", False),
        size=(24, 16),
    )


def where_they_are() -> Panel:
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
        overrides={"probe": TO_PROBE},
        transformations=(joined("probe"),),
        size=(12, 14),
    )


def states() -> Panel:
    """What state each probe was in."""
    return state_timeline(
        "State of each probe",
        "The state that the server found each probe in, once a minute; of each stretch the last. Nothing drawn: the server wrote "
        "nothing then, or the probe was not registered yet.",
        series(windowed(last("state_code"), of="probe_state", where=WHERE, by=["probe"]), "$tag_probe"),
        override=Override(links=(to_board("tandem-probe", "Probe live", probe=label("probe")),)),
        values=False,
        cadence="1m",
        size=(12, 14),
    )


def shares() -> Panel:
    """What part of the time was spent in which state."""
    queries, overrides = [], {}
    for state in _STATES:
        words = _WORDS[state].words
        of_all = total(f"state_{state}_count").part_of(total("records"), "share")
        queries.append(series(windowed(of_all, of="probe_state", where=WHERE, policy=ROLLED), words))
        overrides[words] = Override(colour=_APART.get(state, _WORDS[state].tone))
    return time_series(
        "States over time, all probes together",
        "What part of the chosen probes' minutes was spent in which state; together 100 %. From roll-ups, so the last minutes may be "
        "missing. Empty: the server wrote no states.",
        *queries,
        override=Override(low=0, high=1),
        overrides=overrides,
        style="bars",
        stacked=True,
        cadence="2m",
    )


def backlog() -> Panel:
    """How long records wait at the probes."""
    return time_series(
        "Oldest unsent record",
        "How old the oldest record in each probe's spool is that the server has not, as the probe told it last. Dashed: ten minutes, "
        "and an hour. Nothing drawn for a probe: nothing waits there, or it told nothing of itself in the last hour.",
        series(windowed(greatest("unsent_oldest_s"), of="probe_state", where=WHERE, by=["probe"]), "$tag_probe"),
        grades="lines",
        cadence="1m",
    )


def plans() -> Panel:
    """Every SIM against its plan."""
    newest = select(
        last("used_bytes"),
        *("used_today_bytes", "plan_bytes", "expected_bytes", "used_up_in_s", "reset_in_s"),
        of="sim_usage",
        where=WHERE,
        by=["probe", "path", "operator"],
        recent="1d",
    )
    of_plan = value("expected_bytes").part_of(value("plan_bytes"), "plan")
    query = select(
        *("used_today_bytes", "used_bytes", "plan_bytes", "expected_bytes"),
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
        query,
        show=shown(probe=TO_PROBE)
        | shown("operator", path="Modem", used_today_bytes="Today", used_bytes="This period", plan_bytes="Plan")
        | shown(expected_bytes="Expected at the reset")
        | shown(
            plan=Override(title="Expected, of the plan", steps=grades.SHARES["plan"].steps, cell="colour", decimals=0)
        )
        | shown(used_up_in_s="Used up in", reset_in_s="Reset in"),
        sort_by=("plan", True),
        size=(24, 10),
    )
