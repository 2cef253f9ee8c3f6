"""Campaigns: how far they are, and what data they took."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.conditions import chosen, present
from tandem_dashboards.expressions import greatest, last, total, value
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import state_timeline, table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION, ROLLED

WHERE = (chosen("probe"), chosen("campaign"))
BY = ("probe", "campaign")
_LIVE = to_board("tandem-probe", "Probe live", probe=cell("probe"))
_BUDGET = grades.SHARES["budget"]


def progress(width: int = 24) -> Panel:
    """Each campaign on each probe."""
    newest = select(
        last("state"),
        "made",
        "of",
        "ok",
        "failed",
        "cut_off",
        "step",
        "said",
        "age_s",
        of="campaign",
        where=WHERE,
        by=BY,
        policy=RESOLUTION,
    )
    part = (value("made") / value("of")).in_unit("share").named("part")
    asked = select("state", part, "made", "of", "ok", "failed", "cut_off", "step", "said", "age_s", of=newest, by=BY)
    return table(
        "Campaigns",
        "Each campaign on each probe, as the probe told it last in the time shown: how many of its runs are made (each counts once, "
        "however often it was tried), how attempts ended, and what it does or waits for. Told: when that was; a probe that has been "
        "silent since tells nothing newer. Empty: no campaign was under way in this time.",
        asked,
        show={
            "probe": Look(links=(_LIVE,)),
            "campaign": Look(),
            "state": Look(cell="colour"),
            "part": Look(title="Made", cell="gauge", low=0, high=1, decimals=0),
            "made": Look(title="Runs made"),
            "of": Look(title="Of"),
            "ok": Look(title="Measured"),
            "failed": Look(title="Failed"),
            "cut_off": Look(title="Cut off"),
            "step": Look(title="Step"),
            "said": Look(title="Says"),
            "age_s": Look(title="Since its beginning"),
            "Time": Look(title="Told"),
        },
        sort_by=("probe", False),
        width=width,
        height=9,
    )


def steps(width: int = 12) -> Panel:
    """Each step of each campaign."""
    by = [*BY, "step"]
    newest = select(last("made"), "of", of="campaign_step", where=WHERE, by=by, policy=RESOLUTION)
    part = (value("made") / value("of")).in_unit("share").named("part")
    return table(
        "Progress by step",
        "How many runs of each step of a campaign are made on each probe, as told last in the time shown. Empty: no campaign was under "
        "way.",
        select(part, "made", "of", of=newest, by=by),
        show={
            "probe": Look(links=(_LIVE,)),
            "campaign": Look(),
            "step": Look(title="Step"),
            "part": Look(title="Made", cell="gauge", low=0, high=1, decimals=0),
            "made": Look(title="Runs made"),
            "of": Look(title="Of"),
        },
        sort_by=("probe", False),
        width=width,
        height=10,
    )


def states(width: int = 12) -> Panel:
    """What each campaign did."""
    asked = select(last("state_code"), of="campaign", where=WHERE, by=BY, every=INTERVAL, policy=RESOLUTION)
    return state_timeline(
        "What each campaign did",
        "Whether a campaign measured, waited for its triggers, was paused or done, once a minute while it was under way; of each "
        "stretch the last. Nothing drawn: it was not under way, or the probe was silent.",
        series(asked, "$tag_campaign on $tag_probe"),
        values=False,
        legend=True,
        cadence="1m",
        width=width,
        height=10,
    )


def over_time(width: int = 12) -> Panel:
    """Runs made, as a part of all."""
    part = (last("made") / last("of")).in_unit("share").named("made")
    asked = select(part, of="campaign", where=WHERE, by=BY, every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Runs made, of all",
        "What part of a campaign's runs is made. A flat line: nothing is made, its triggers or its budget may wait. A gap: it was not "
        "under way, or the probe was silent.",
        series(asked, "$tag_campaign on $tag_probe"),
        look=Look(low=0, high=1),
        cadence="1m",
        width=width,
    )


def ended(width: int = 12) -> Panel:
    """Runs that ended, by experiment."""
    asked = select(
        total("records").named("runs"), of="run", where=WHERE, by=["experiment"], every=INTERVAL, policy=ROLLED
    )
    well = select(total("ok_true_count").named("measured"), of="run", where=WHERE, every=INTERVAL, policy=ROLLED)
    return time_series(
        "Runs that ended",
        "How many runs ended in each stretch, by experiment, one upon the other; the line: how many of all of these measured whole. "
        "From roll-ups, so the last minutes may be missing. Empty: no run ended.",
        series(asked, "$tag_experiment"),
        series(well, "measured whole"),
        look=Look(unit="", decimals=0),
        looks={"measured whole": Look(colour="good")},
        style="points",
        cadence="2m",
        width=width,
    )


def budgets(width: int = 24) -> Panel:
    """What data each campaign took, and may still take."""
    by = [*BY, "role", "path", "operator"]
    newest = select(
        last("used_bytes"),
        "used_today_bytes",
        "budget_bytes",
        "day_budget_bytes",
        "left_bytes",
        "expected_bytes",
        "reset_in_s",
        of="campaign_data",
        where=WHERE,
        by=by,
        policy=RESOLUTION,
    )
    part = (value("used_bytes") / value("budget_bytes")).in_unit("share").named("part")
    asked = select(
        "used_today_bytes",
        "day_budget_bytes",
        "used_bytes",
        "budget_bytes",
        part,
        "left_bytes",
        "expected_bytes",
        "reset_in_s",
        of=newest,
        by=by,
    )
    return table(
        "Data against the budget",
        "What the runs of each campaign took of each path, today and in this period of its budget, both ways, and what it will have "
        "taken at the period's end at the pace so far. As told last in the time shown. A dash: the campaign sets no such bound. Empty: "
        "no campaign was under way.",
        asked,
        show={
            "probe": Look(links=(_LIVE,)),
            "campaign": Look(),
            "role": Look(title="Role"),
            "path": Look(title="Modem"),
            "operator": Look(),
            "used_today_bytes": Look(title="Today"),
            "day_budget_bytes": Look(title="Of a day's"),
            "used_bytes": Look(title="This period"),
            "budget_bytes": Look(title="Of"),
            "part": Look(title="Spent", steps=_BUDGET.steps, cell="colour", decimals=0),
            "left_bytes": Look(title="Left"),
            "expected_bytes": Look(title="Expected at its end"),
            "reset_in_s": Look(title="Ends in"),
        },
        sort_by=("part", True),
        width=width,
        height=9,
    )


def spent(width: int = 24) -> Panel:
    """Data over time."""
    used = select(
        greatest("used_bytes"), of="campaign_data", where=WHERE, by=[*BY, "role"], every=INTERVAL, policy=RESOLUTION
    )
    budget = select(
        last("budget_bytes"),
        of="campaign_data",
        where=(*WHERE, present("role")),
        by=[*BY, "role"],
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Data spent",
        "Bytes that each campaign's runs took of each path in the period of its budget, and (dashed) the budget. It begins again at "
        "nothing when a new period begins. A gap: the campaign was not under way, or the probe was silent.",
        series(used, "$tag_campaign on $tag_probe, $tag_role"),
        series(budget, "budget of $tag_campaign on $tag_probe, $tag_role"),
        look=Look(low=0),
        looks={"/^budget /": Look(dashed=True, colour="quiet")},
        cadence="1m",
        width=width,
    )
