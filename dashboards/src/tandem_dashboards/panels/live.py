"""What one probe does now: states as last told, the experiments that it began, movement."""

from __future__ import annotations

from tandem_dashboards.conditions import chosen, equal
from tandem_dashboards.expressions import last, tag
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import stat, state_timeline, table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION

PROBE = (chosen("probe"),)
OF_PATHS = (*PROBE, chosen("operator"), chosen("path"))
PATH = "$tag_path ($tag_operator)"
MINUTE = "3m"
"""What is told once a minute is "now" for so long: one point may be late."""
DAY = "24h"
"""Runs are many: over months a list of the newest need not look at all of them."""


def _told(field: str) -> Select:
    return select(last(field), of="probe_state", where=PROBE, recent=MINUTE)


def state(width: int = 4) -> Panel:
    """The probe's state, as the server has it."""
    return stat(
        "State",
        "What the server makes of this probe, once a minute: measuring, idle, online without measuring, not "
        "uploading, silent. A dash: the server has written nothing for three minutes (its gateway does not run), or "
        "the time range does not reach to now.",
        series(_told("state")),
        texts=True,
        background=True,
        names=False,
        width=width,
        height=4,
    )


def experiment(width: int = 8) -> Panel:
    """What it measures."""
    return stat(
        "Experiment and campaign now",
        "The experiment of the run that this probe is at, and the campaign under way there, as the server knew "
        "within the last minute. A dash: it is at none.",
        series(_told("experiment"), "experiment"),
        series(_told("campaign"), "campaign"),
        texts=True,
        width=width,
        height=4,
    )


def movement_now(width: int = 3) -> Panel:
    """Whether it moves."""
    asked = select(last("mobile"), of="health", where=PROBE, recent="1m")
    return stat(
        "Movement",
        "Whether the probe judges itself moving, from what its modems see and, where there is a receiver, from its "
        "speed; told every ten seconds. A dash: nothing has come for a minute.",
        series(asked),
        texts=True,
        names=False,
        width=width,
        height=4,
    )


def level_now(width: int = 9) -> Panel:
    """RSRP of each modem, now."""
    asked = select(last("rsrp_dbm"), of="radio", where=OF_PATHS, by=("path", "operator"), recent="30s")
    return stat(
        "RSRP now",
        "The newest poll of each modem of the last 30 seconds, coloured by its grade: good, fair, poor. A modem that "
        "is missing did not answer, had no service, or its polls have not arrived; a dash: none has.",
        series(asked, PATH),
        spark=False,
        width=width,
        height=4,
    )


def rtt(width: int = 12) -> Panel:
    """Round-trip time of each subflow while the run goes on."""
    where = (chosen("run"), chosen("operator"), chosen("path"))
    by = ("path", "operator", "subflow")
    at_probe = select("rcv_rtt_ms", of="subflow", where=[*where, equal("end", "probe")], by=by)
    at_server = select("rtt_ms", of="subflow", where=[*where, equal("end", "server")], by=by)
    return time_series(
        "Round-trip time of each subflow, every 100 ms",
        "As the probe's kernel estimates it from what it receives (of a download; at once), and as the server's has "
        "it (dashed; exact, and here once the run has ended). Lines across: where it is fair, and poor for talk. "
        "Nothing drawn: nothing came over any subflow, or no samples have arrived.",
        series(at_probe, f"{PATH}, subflow $tag_subflow"),
        series(at_server, f"{PATH}, subflow $tag_subflow, at the server"),
        grades="lines",
        looks={"/ server$/": Look(dashed=True)},
        gap_ms=1000,
        width=width,
        height=9,
    )


def movement(width: int = 24) -> Panel:
    """The mobility state over time."""
    moving = select(last("mobile"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    speed = select(last("speed_class"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    return state_timeline(
        "Movement",
        "The mobility state that starts runs, and on the move the speed class: on foot, or driving. Told every ten "
        "seconds; of each stretch the last. Nothing drawn: the probe was off, or its records have not arrived.",
        series(moving, "movement"),
        series(speed, "speed class"),
        cadence="10s",
        width=width,
        height=5,
    )


def activity(width: int = 24) -> Panel:
    """What it did, over time."""

    def lane(field: str) -> Select:
        return select(last(field), of="probe_state", where=PROBE, every=INTERVAL, policy=RESOLUTION)

    return state_timeline(
        "What it did",
        "State of the probe, experiment of its run, and campaign, as the server wrote them once a minute; of each "
        "stretch the last. Bare: it was at no run, or in no campaign; bare in the first lane too: the server wrote "
        "nothing then.",
        series(lane("state"), "state"),
        series(lane("experiment"), "experiment"),
        series(lane("campaign"), "campaign"),
        cadence="1m",
        width=width,
        height=6,
    )


def begun(width: int = 12) -> Panel:
    """The runs that it began last."""
    names = ("run", "experiment", "kind", "path", "pairing", "campaign")
    asked = select(
        *(tag(name) for name in names),
        "number",
        "of",
        "trigger",
        of="run_begun",
        where=PROBE,
        newest_first=True,
        limit=12,
    )
    to_run = to_board("tandem-run", "This run", ("probe", "operator", "path"), run=cell("run"))
    return table(
        "Runs that it began last",
        "The newest twelve runs that began in the last 24 hours, as the probe told when they began: under way, ended "
        "or cut off. A click on a run opens it. Empty: none began, or their records have not arrived.",
        asked,
        show={
            "Time": Look(title="Began"),
            "run": Look(links=(to_run,)),
            **{name: Look() for name in names[1:]},
            "number": Look(title="No."),
            "of": Look(title="Of"),
            "trigger": Look(title="Begun by"),
        },
        width=width,
        height=8,
        time_from=DAY,
    )


def ended(width: int = 12) -> Panel:
    """What came of its last runs."""
    asked = select(
        tag("run"), tag("experiment"), tag("kind"), tag("path"), "ok", "goodput_bit_per_s", "bytes", "duration_s", "fallback", "failure",
        of="run", where=PROBE, newest_first=True, limit=12,
    )  # fmt: skip
    to_run = to_board("tandem-run", "This run", ("probe", "operator", "path"), run=cell("run"))
    return table(
        "What came of its last runs",
        "The newest twelve runs that ended in the last 24 hours. A network that failed is a result, too, and says "
        "why. Empty: none ended, or their records have not arrived.",
        asked,
        show={
            "Time": Look(title="Ended"),
            "run": Look(links=(to_run,)),
            "experiment": Look(),
            "kind": Look(),
            "path": Look(),
            "ok": Look(cell="colour"),
            "goodput_bit_per_s": Look(cell="text"),
            "bytes": Look(),
            "duration_s": Look(),
            "fallback": Look(cell="text"),
            "failure": Look(),
        },
        width=width,
        height=8,
        time_from=DAY,
    )
