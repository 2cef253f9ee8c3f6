"""Campaigns: how far they are, what data they took, and the ledger: what runs promised against what is here."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.expressions import chosen, greatest, last, present, total, value
from tandem_dashboards.influxql import RESOLUTION, ROLLED, Select, select, windowed
from tandem_dashboards.kinds import state_timeline, table, time_series
from tandem_dashboards.overrides import COLOUR, TO_PROBE, Override, shown
from tandem_dashboards.panel import Panel, series

WHERE = (chosen("probe"), chosen("campaign"))
BY = ("probe", "campaign")
_BUDGET = grades.SHARES["budget"]


def progress() -> Panel:
    """Each campaign on each probe."""
    newest = select(
        last("state"),
        *("made", "of", "ok", "failed", "cut_off", "step", "said", "age_s"),
        of="campaign",
        where=WHERE,
        by=BY,
        policy=RESOLUTION,
    )
    part = value("made").part_of(value("of"), "part")
    return table(
        "Campaigns",
        "Each campaign on each probe, as the probe told it last in the time shown: how many of its runs are made (each counts once, "
        "however often it was tried), how attempts ended, and what it does or waits for. Told: when that was; a probe that has been "
        "silent since tells nothing newer. Empty: no campaign was under way in this time.",
        select("state", part, "made", "of", "ok", "failed", "cut_off", "step", "said", "age_s", of=newest, by=BY),
        show=shown(probe=TO_PROBE)
        | shown("campaign", state=COLOUR)
        | shown(part=Override(title="Made", cell="gauge", low=0, high=1, decimals=0), made="Runs made", of="Of")
        | shown(ok="Measured", failed="Failed", cut_off="Cut off", step="Step", said="Says")
        | shown(age_s="Since its beginning", Time="Told"),
        sort_by=("probe", False),
        size=(24, 9),
    )


def steps() -> Panel:
    """Each step of each campaign."""
    by = [*BY, "step"]
    newest = select(last("made"), "of", of="campaign_step", where=WHERE, by=by, policy=RESOLUTION)
    part = value("made").part_of(value("of"), "part")
    return table(
        "Progress by step",
        "How many runs of each step of a campaign are made on each probe, as told last in the time shown. Empty: no campaign was under "
        "way.",
        select(part, "made", "of", of=newest, by=by),
        show=shown(probe=TO_PROBE)
        | shown("campaign", step="Step", part=Override(title="Made", cell="gauge", low=0, high=1, decimals=0))
        | shown(made="Runs made", of="Of"),
        sort_by=("probe", False),
        size=(12, 10),
    )


def states() -> Panel:
    """What each campaign did."""
    return state_timeline(
        "What each campaign did",
        "Whether a campaign measured, waited for its triggers, was paused or done, once a minute while it was under way; of each "
        "stretch the last. Nothing drawn: it was not under way, or the probe was silent.",
        series(windowed(last("state_code"), of="campaign", where=WHERE, by=BY), "$tag_campaign on $tag_probe"),
        values=False,
        legend=True,
        cadence="1m",
        size=(12, 10),
    )


def over_time() -> Panel:
    """Runs made, as a part of all."""
    part = last("made").part_of(last("of"), "made")
    return time_series(
        "Runs made, of all",
        "What part of a campaign's runs is made. A flat line: nothing is made, its triggers or its budget may wait. A gap: it was not "
        "under way, or the probe was silent.",
        series(windowed(part, of="campaign", where=WHERE, by=BY), "$tag_campaign on $tag_probe"),
        override=Override(low=0, high=1),
        cadence="1m",
    )


def ended() -> Panel:
    """Runs that ended, by experiment."""
    query = windowed(total("records").named("runs"), of="run", where=WHERE, by=["experiment"], policy=ROLLED)
    well = windowed(total("ok_true_count").named("measured"), of="run", where=WHERE, policy=ROLLED)
    return time_series(
        "Runs that ended",
        "How many runs ended in each stretch, by experiment, one upon the other; the line: how many of all of these measured whole. "
        "From roll-ups, so the last minutes may be missing. Empty: no run ended.",
        series(query, "$tag_experiment"),
        series(well, "measured whole"),
        override=Override(unit="", decimals=0),
        overrides={"measured whole": Override(colour="good")},
        style="points",
        cadence="2m",
    )


def budgets() -> Panel:
    """What data each campaign took, and may still take."""
    by = [*BY, "role", "path", "operator"]
    newest = select(
        last("used_bytes"),
        *("used_today_bytes", "budget_bytes", "day_budget_bytes", "left_bytes", "expected_bytes", "reset_in_s"),
        of="campaign_data",
        where=WHERE,
        by=by,
        policy=RESOLUTION,
    )
    part = value("used_bytes").part_of(value("budget_bytes"), "part")
    query = select(
        *("used_today_bytes", "day_budget_bytes", "used_bytes", "budget_bytes"),
        part,
        *("left_bytes", "expected_bytes", "reset_in_s"),
        of=newest,
        by=by,
    )
    return table(
        "Data against the budget",
        "What the runs of each campaign took of each path, today and in this period of its budget, both ways, and what it will have "
        "taken at the period's end at the pace so far. As told last in the time shown. A dash: the campaign sets no such bound. Empty: "
        "no campaign was under way.",
        query,
        show=shown(probe=TO_PROBE)
        | shown("campaign", role="Role", path="Modem")
        | shown("operator", used_today_bytes="Today", day_budget_bytes="Of a day's", used_bytes="This period")
        | shown(budget_bytes="Of", part=Override(title="Spent", steps=_BUDGET.steps, cell="colour", decimals=0))
        | shown(left_bytes="Left", expected_bytes="Expected at its end", reset_in_s="Ends in"),
        sort_by=("part", True),
        size=(24, 9),
    )


def spent() -> Panel:
    """Data over time."""
    used = windowed(greatest("used_bytes"), of="campaign_data", where=WHERE, by=[*BY, "role"])
    budget = windowed(last("budget_bytes"), of="campaign_data", where=(*WHERE, present("role")), by=[*BY, "role"])
    return time_series(
        "Data spent",
        "Bytes that each campaign's runs took of each path in the period of its budget, and (dashed) the budget. It begins again at "
        "nothing when a new period begins. A gap: the campaign was not under way, or the probe was silent.",
        series(used, "$tag_campaign on $tag_probe, $tag_role"),
        series(budget, "budget of $tag_campaign on $tag_probe, $tag_role"),
        override=Override(low=0),
        overrides={"/^budget /": Override(dashed=True, colour="quiet")},
        cadence="1m",
        size=(24, 8),
    )


_COMPLETE = grades.SHARES["complete"]


def _ledger() -> Select:
    """The newest of each probe and campaign."""
    return select(
        last("runs_complete"),
        *("runs_under_way", "runs_waiting", "runs_missing", "runs_expired", "runs_failed", "records_promised"),
        *("records_arrived", "files_promised", "files_received", "incomplete_s", "files_incomplete_s"),
        of="ledger",
        where=WHERE,
        by=BY,
        recent="5m",
    )


def completeness() -> Panel:
    """What was promised against what arrived."""
    records = value("records_arrived").part_of(value("records_promised"), "records")
    files = value("files_received").part_of(value("files_promised"), "files")
    query = select(
        records,
        files,
        *("runs_complete", "runs_under_way", "runs_waiting", "runs_missing", "runs_failed", "incomplete_s"),
        "files_incomplete_s",
        of=_ledger(),
        by=BY,
    )
    return table(
        "Completeness, from the ledger",
        "What the runs' manifests promised against what is here, now (within five minutes), by probe and campaign; a row without a "
        "campaign: runs outside of one. Waiting: the rest may still be at the probe. Missing: something is gone, or nobody knows where "
        "it is; tandem-server ledger --probe NAME --incomplete names it. Empty: no run yet, or the worker does not run.",
        query,
        show=shown(probe=TO_PROBE)
        | shown("campaign", records=Override(title="Records here", steps=_COMPLETE.steps, cell="text", decimals=2))
        | shown(files=Override(title="Files here", steps=_COMPLETE.steps, cell="text", decimals=2))
        | shown(runs_complete="Complete", runs_under_way="Under way", runs_waiting="Waiting")
        | shown(runs_missing=Override(title="Missing", cell="text"), runs_failed="Measured a failure")
        | shown(incomplete_s=Override(title="Records lack since", cell="text"))
        | shown(files_incomplete_s=Override(title="Files lack since", cell="text")),
        sort_by=("runs_missing", True),
        size=(24, 9),
    )


def arrived() -> Panel:
    """Completeness over time."""
    part = last("records_arrived").part_of(last("records_promised"), "here")
    return time_series(
        "Records that are here, of those promised",
        "By probe and campaign. It falls when a run's manifest is here before its records, and rises as they come; what stays below "
        "100 % is waiting at the probe or lost. A gap: the worker did not run.",
        series(windowed(part, of="ledger", where=WHERE, by=BY), "$tag_probe $tag_campaign"),
        override=Override(high=1),
        cadence="1m",
    )


def lacking() -> Panel:
    """Runs that lack something over time."""
    query = windowed(
        last("runs_waiting").named("waiting"), last("runs_missing").named("missing"), of="ledger", where=WHERE, by=BY
    )
    return time_series(
        "Runs that lack something",
        "By probe and campaign: runs whose records or files may still come, and runs of which something is gone. A gap: the worker "
        "did not run.",
        series(query, "$col: $tag_probe $tag_campaign"),
        overrides={"/^missing/": Override(dashed=True)},
        style="steps",
        cadence="1m",
    )
