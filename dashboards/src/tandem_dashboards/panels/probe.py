"""One probe: what it does now and did (states, runs, movement), and how it is (modems, supply, clock, spool, storage, SIMs, paths)."""

from __future__ import annotations

from tandem_dashboards.expressions import chosen, equal, greatest, last, least, mean, rate
from tandem_dashboards.influxql import Select, select, windowed
from tandem_dashboards.kinds import bar_gauge, listing, stat, state_timeline, time_series
from tandem_dashboards.overrides import COLOUR, TEXT, Override, cell, shown, to_board
from tandem_dashboards.panel import Panel, series
from tandem_server.schema.grades import SHARES

PROBE = (chosen("probe"),)
OF_PATHS = (*PROBE, chosen("operator"), chosen("path"))
PATH = "$tag_path ($tag_operator)"
MINUTE = "3m"
"""What is told once a minute is "now" for so long: one point may be late."""
_TO_RUN = Override(links=(to_board("tandem-run", "This run", ("probe", "operator", "path"), run=cell("run")),))
DAY = "24h"
"""Runs are many: over months a list of the newest need not look at all of them."""


def _told(field: str) -> Select:
    return select(last(field), of="probe_state", where=PROBE, recent=MINUTE)


def _lane(field: str, of: str = "health") -> Select:
    return windowed(last(field), of=of, where=PROBE)


def state() -> Panel:
    """The probe's state, as the server has it."""
    return stat(
        "State",
        "What the server makes of this probe, once a minute: measuring, idle, online without measuring, not uploading, silent. A dash: "
        "the server has written nothing for three minutes (its worker does not run), or the time range does not reach to now.",
        series(_told("state")),
        texts=True,
        background=True,
        names=False,
        size=(4, 4),
    )


def experiment() -> Panel:
    """What it measures."""
    return stat(
        "Experiment and campaign now",
        "The experiment of the run that this probe is at, and the campaign under way there, as the server knew within the last minute. "
        "A dash: it is at none.",
        series(_told("experiment"), "experiment"),
        series(_told("campaign"), "campaign"),
        texts=True,
        size=(8, 4),
    )


def movement_now() -> Panel:
    """Whether it moves."""
    query = select(last("mobile"), of="health", where=PROBE, recent="1m")
    return stat(
        "Movement",
        "Whether the probe judges itself moving, from what its modems see and, where there is a receiver, from its speed; told every "
        "ten seconds. A dash: nothing has come for a minute.",
        series(query),
        texts=True,
        names=False,
        size=(3, 4),
    )


def level_now() -> Panel:
    """RSRP of each modem, now."""
    return stat(
        "RSRP now",
        "The newest poll of each modem of the last 30 seconds, coloured by its grade: good, fair, poor. A modem that is missing did "
        "not answer, had no service, or its polls have not arrived; a dash: none has.",
        series(select(last("rsrp_dbm"), of="radio", where=OF_PATHS, by=("path", "operator"), recent="30s"), PATH),
        size=(9, 4),
    )


def rtt() -> Panel:
    """Round-trip time of each subflow while the run goes on."""
    where = (chosen("run"), chosen("operator"), chosen("path"))
    by = ("path", "operator", "subflow")
    at_probe = select("rcv_rtt_ms", of="subflow", where=[*where, equal("end", "probe")], by=by)
    at_server = select("rtt_ms", of="subflow", where=[*where, equal("end", "server")], by=by)
    return time_series(
        "Round-trip time of each subflow, every 100 ms",
        "As the probe's kernel estimates it from what it receives (of a download; at once), and as the server's has it (dashed; exact, "
        "and here once the run has ended). Lines across: where it is fair, and poor for talk. Nothing drawn: nothing came over any "
        "subflow, or no samples have arrived.",
        series(at_probe, f"{PATH}, subflow $tag_subflow"),
        series(at_server, f"{PATH}, subflow $tag_subflow, at the server"),
        grades="lines",
        overrides={"/ server$/": Override(dashed=True)},
        gap_ms=1000,
        size=(12, 9),
    )


def movement() -> Panel:
    """The mobility state over time."""
    return state_timeline(
        "Movement",
        "The mobility state that starts runs, and on the move the speed class: on foot, or driving. Told every ten seconds; of each "
        "stretch the last. Nothing drawn: the probe was off, or its records have not arrived.",
        series(_lane("mobile"), "movement"),
        series(_lane("speed_class"), "speed class"),
        cadence="10s",
        size=(24, 5),
    )


def activity() -> Panel:
    """What it did, over time."""
    return state_timeline(
        "What it did",
        "State of the probe, experiment of its run, and campaign, as the server wrote them once a minute; of each stretch the last. "
        "Bare: it was at no run, or in no campaign; bare in the first lane too: the server wrote nothing then.",
        series(_lane("state", "probe_state"), "state"),
        series(_lane("experiment", "probe_state"), "experiment"),
        series(_lane("campaign", "probe_state"), "campaign"),
        cadence="1m",
        size=(24, 6),
    )


def begun() -> Panel:
    """The runs that it began last."""
    return listing(
        "Runs that it began last",
        "The newest twelve runs that began in the last 24 hours, as the probe told when they began: under way, ended or cut off. A "
        "click on a run opens it. Empty: none began, or their records have not arrived.",
        of="run_begun",
        where=PROBE,
        show=shown(Time="Began", run=_TO_RUN)
        | shown("experiment", "kind", "path", "pairing", "campaign", number="No.", of="Of", trigger="Begun by"),
        newest_first=True,
        limit=12,
        size=(10, 8),
        time_from=DAY,
    )


def ended() -> Panel:
    """What came of its last runs."""
    return listing(
        "What came of its last runs",
        "The newest twelve runs that ended in the last 24 hours. A network that failed is a result, too, and says why. Empty: none "
        "ended, or their records have not arrived.",
        of="run",
        where=PROBE,
        show=shown(Time="Ended", run=_TO_RUN)
        | shown("experiment", "kind", "path", ok=COLOUR, goodput_bit_per_s=TEXT)
        | shown("bytes", "duration_s", fallback=TEXT, failure=Override()),
        newest_first=True,
        limit=12,
        size=(14, 8),
        time_from=DAY,
    )


BY_PATH = ("path", "operator")


def modems() -> Panel:
    """State of each modem's health."""
    return state_timeline(
        "Modems",
        "Whether each modem answers its polls (usable), is silent or repeats itself (lost), or is being brought back (recovering); "
        "told once a minute. Nothing drawn: the probe was off, or its records have not arrived.",
        series(windowed(last("state"), of="modem_health", where=OF_PATHS, by=BY_PATH), PATH),
        cadence="1m",
        size=(12, 6),
    )


def supply_and_clock() -> Panel:
    """Supply, slowed processor, clock."""
    return state_timeline(
        "Supply, processor, clock",
        "Whether the supply's voltage is too low and the processor slowed down (a Raspberry Pi tells; on other machines these lanes "
        "are bare), and whether the clock has been set: without it records wait for their time. Nothing drawn: the probe was off.",
        series(_lane("undervoltage"), "supply"),
        series(_lane("throttled"), "processor"),
        series(_lane("clock_synchronised"), "clock"),
        cadence="1m",
        size=(12, 6),
    )


def spool() -> Panel:
    """Records that wait."""
    return time_series(
        "Records that wait to be sent",
        "Age of the oldest record in the probe's spool (left; lines: where it is fair, and poor) and how many wait (right). It grows "
        "while no path is up, and falls once the backlog goes out. A gap: the probe was off, or what it told of then is itself still "
        "waiting.",
        series(windowed(greatest("spool_oldest_s"), of="health", where=PROBE), "oldest"),
        series(windowed(greatest("spool_records"), of="health", where=PROBE), "records"),
        grades="lines",
        cadence="10s",
        size=(8, 8),
    )


def temperature() -> Panel:
    """Temperature of the processor."""
    return time_series(
        "Temperature of the processor",
        "As the kernel's thermal zone tells, every ten seconds. Coloured bands: good, fair (from 60 °C: some models slow down), poor "
        "(from 80 °C: all do). Nothing drawn: this machine has no such sensor, or the probe was off.",
        series(windowed(mean("processor_temperature_degc"), of="health", where=PROBE), "processor"),
        grades="areas",
        cadence="10s",
        size=(8, 8),
    )


def disk() -> Panel:
    """Room on the disk."""
    return time_series(
        "Free disk",
        "Room for ordinary users on the file system that holds spool and captures, the least of each stretch. Lines: where the probe "
        "itself begins and ends its alarm (of a disk under 10 GB a tenth is enough). Nothing drawn: the probe was off.",
        series(windowed(least("disk_free_bytes"), of="health", where=PROBE), "free"),
        grades="lines",
        cadence="10s",
        size=(8, 8),
    )


def plans() -> Panel:
    """What each SIM will have used of its plan at its reset."""
    part = last("expected_bytes").part_of(last("plan_bytes"), "expected")
    return bar_gauge(
        "SIM plans at their reset, forecast",
        "What each SIM will have carried when its plan begins anew, as a part of the plan, by the probe's forecast of the last ten "
        "minutes: fair from 80 %, poor above the plan. A dash: no SIM has a plan in the probe's configuration, its clock is not set, "
        "or nothing came.",
        series(select(part, of="sim_usage", where=OF_PATHS, by=BY_PATH, recent="10m"), PATH),
        override=Override(low=0, high=1.2, steps=SHARES["plan"].steps),
        size=(8, 8),
    )


def carried() -> Panel:
    """What each path's interface carries."""

    def of(field: str) -> Select:
        bits = rate(last(field), times=8, unit="bit/s").named("rate")
        return windowed(bits, of="usage", where=OF_PATHS, by=BY_PATH)

    return time_series(
        "What each path carries",
        "Everything that crosses each path's interface, as the kernel counts it every ten seconds: runs, records on their way to the "
        "server, headers, other programs. Received, and sent (dashed). A gap: the probe was off, or began anew.",
        series(of("received_bytes"), f"{PATH} received"),
        series(of("sent_bytes"), f"{PATH} sent"),
        overrides={"/ sent$/": Override(dashed=True)},
        cadence="20s",
        size=(16, 8),
    )
