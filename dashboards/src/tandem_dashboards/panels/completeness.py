"""The ledger: what runs promised against what is here, by probe and campaign."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import last, value
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION

WHERE = (chosen("probe"), chosen("campaign"))
BY = ("probe", "campaign")
_LIVE = to_board("tandem-probe", "Probe live", probe=cell("probe"))
_COMPLETE = grades.SHARES["complete"]


def _ledger() -> Select:
    """The newest of each probe and campaign."""
    return select(
        last("runs_complete"),
        "runs_under_way",
        "runs_waiting",
        "runs_missing",
        "runs_expired",
        "runs_failed",
        "records_promised",
        "records_arrived",
        "files_promised",
        "files_received",
        "incomplete_s",
        "files_incomplete_s",
        of="ledger",
        where=WHERE,
        by=BY,
        recent="5m",
    )


def completeness(width: int = 24) -> Panel:
    """What was promised against what arrived."""
    records = (value("records_arrived") / value("records_promised")).in_unit("share").named("records")
    files = (value("files_received") / value("files_promised")).in_unit("share").named("files")
    asked = select(
        records,
        files,
        "runs_complete",
        "runs_under_way",
        "runs_waiting",
        "runs_missing",
        "runs_failed",
        "incomplete_s",
        "files_incomplete_s",
        of=_ledger(),
        by=BY,
    )
    return table(
        "Completeness, from the ledger",
        "What the runs' manifests promised against what is here, now (within five minutes), by probe and campaign; a row without a "
        "campaign: runs outside of one. Waiting: the rest may still be at the probe. Missing: something is gone, or nobody knows where "
        "it is; tandem-server ledger --probe NAME --incomplete names it. Empty: no run yet, or the gateway does not run.",
        asked,
        show={
            "probe": Look(links=(_LIVE,)),
            "campaign": Look(),
            "records": Look(title="Records here", steps=_COMPLETE.steps, cell="text", decimals=2),
            "files": Look(title="Files here", steps=_COMPLETE.steps, cell="text", decimals=2),
            "runs_complete": Look(title="Complete"),
            "runs_under_way": Look(title="Under way"),
            "runs_waiting": Look(title="Waiting"),
            "runs_missing": Look(title="Missing", cell="text"),
            "runs_failed": Look(title="Measured a failure"),
            "incomplete_s": Look(title="Records lack since", cell="text"),
            "files_incomplete_s": Look(title="Files lack since", cell="text"),
        },
        sort_by=("runs_missing", True),
        width=width,
        height=9,
    )


def arrived(width: int = 12) -> Panel:
    """Completeness over time."""
    share = (last("records_arrived") / last("records_promised")).in_unit("share").named("here")
    asked = select(share, of="ledger", where=WHERE, by=BY, every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Records that are here, of those promised",
        "By probe and campaign. It falls when a run's manifest is here before its records, and rises as they come; what stays below "
        "100 % is waiting at the probe or lost. A gap: the gateway did not run.",
        series(asked, "$tag_probe $tag_campaign"),
        look=Look(high=1),
        cadence="1m",
        width=width,
    )


def lacking(width: int = 12) -> Panel:
    """Runs that lack something over time."""
    asked = select(
        last("runs_waiting").named("waiting"),
        last("runs_missing").named("missing"),
        of="ledger",
        where=WHERE,
        by=BY,
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Runs that lack something",
        "By probe and campaign: runs whose records or files may still come, and runs of which something is gone. A gap: the gateway "
        "did not run.",
        series(asked, "$col: $tag_probe $tag_campaign"),
        looks={"/^missing/": Look(dashed=True)},
        style="steps",
        cadence="1m",
        width=width,
    )
