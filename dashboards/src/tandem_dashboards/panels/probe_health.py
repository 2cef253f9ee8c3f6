"""How one probe is: its modems, supply, clock, spool, storage, SIMs, and what its paths carry."""

from __future__ import annotations

from tandem.schema.grades import SHARES
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import greatest, last, least, mean, rate
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import bar_gauge, state_timeline, time_series
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION

PROBE = (chosen("probe"),)
OF_PATHS = (*PROBE, chosen("operator"), chosen("path"))
PATH = "$tag_path ($tag_operator)"
BY_PATH = ("path", "operator")


def _lane(field: str, of: str = "health") -> Select:
    return select(last(field), of=of, where=PROBE, every=INTERVAL, policy=RESOLUTION)


def modems(width: int = 12) -> Panel:
    """State of each modem's health."""
    asked = select(last("state"), of="modem_health", where=OF_PATHS, by=BY_PATH, every=INTERVAL, policy=RESOLUTION)
    return state_timeline(
        "Modems",
        "Whether each modem answers its polls (usable), is silent or repeats itself (lost), or is being brought back "
        "(recovering); told once a minute. Nothing drawn: the probe was off, or its records have not arrived.",
        series(asked, PATH),
        cadence="1m",
        width=width,
        height=6,
    )


def supply_and_clock(width: int = 12) -> Panel:
    """Supply, slowed processor, clock."""
    return state_timeline(
        "Supply, processor, clock",
        "Whether the supply's voltage is too low and the processor slowed down (a Raspberry Pi tells; on other "
        "machines these lanes are bare), and whether the clock has been set: without it records wait for their time. "
        "Nothing drawn: the probe was off.",
        series(_lane("undervoltage"), "supply"),
        series(_lane("throttled"), "processor"),
        series(_lane("clock_synchronised"), "clock"),
        cadence="1m",
        width=width,
        height=6,
    )


def spool(width: int = 8) -> Panel:
    """Records that wait."""
    oldest = select(greatest("spool_oldest_s"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    waiting = select(greatest("spool_records"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Records that wait to be sent",
        "Age of the oldest record in the probe's spool (left; lines: where it is fair, and poor) and how many wait "
        "(right). It grows while no path is up, and falls once the backlog goes out. A gap: the probe was off, or "
        "what it told of then is itself still waiting.",
        series(oldest, "oldest"),
        series(waiting, "records"),
        grades="lines",
        cadence="10s",
        width=width,
    )


def temperature(width: int = 8) -> Panel:
    """Temperature of the processor."""
    asked = select(mean("processor_temperature_degc"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Temperature of the processor",
        "As the kernel's thermal zone tells, every ten seconds. Coloured bands: good, fair (from 60 °C: some models "
        "slow down), poor (from 80 °C: all do). Nothing drawn: this machine has no such sensor, or the probe was off.",
        series(asked, "processor"),
        grades="areas",
        cadence="10s",
        width=width,
    )


def disk(width: int = 8) -> Panel:
    """Room on the disk."""
    asked = select(least("disk_free_bytes"), of="health", where=PROBE, every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Free disk",
        "Room for ordinary users on the file system that holds spool and captures, the least of each stretch. Lines: "
        "where the probe itself begins and ends its alarm (of a disk under 10 GB a tenth is enough). Nothing drawn: "
        "the probe was off.",
        series(asked, "free"),
        grades="lines",
        cadence="10s",
        width=width,
    )


def plans(width: int = 8) -> Panel:
    """What each SIM will have used of its plan at its reset."""
    share = (last("expected_bytes") / last("plan_bytes")).in_unit("share").named("expected")
    asked = select(share, of="sim_usage", where=OF_PATHS, by=BY_PATH, recent="10m")
    return bar_gauge(
        "SIM plans at their reset, forecast",
        "What each SIM will have carried when its plan begins anew, as a part of the plan, by the probe's forecast "
        "of the last ten minutes: fair from 80 %, poor above the plan. A dash: no SIM has a plan in the probe's "
        "configuration, its clock is not set, or nothing came.",
        series(asked, PATH),
        look=Look(low=0, high=1.2, steps=SHARES["plan"].steps),
        width=width,
    )


def carried(width: int = 16) -> Panel:
    """What each path's interface carries."""

    def of(field: str) -> Select:
        bits = rate(last(field), times=8, unit="bit/s").named("rate")
        return select(bits, of="usage", where=OF_PATHS, by=BY_PATH, every=INTERVAL, policy=RESOLUTION)

    return time_series(
        "What each path carries",
        "Everything that crosses each path's interface, as the kernel counts it every ten seconds: runs, records on "
        "their way to the server, headers, other programs. Received, and sent (dashed). A gap: the probe was off, or "
        "began anew.",
        series(of("received_bytes"), f"{PATH} received"),
        series(of("sent_bytes"), f"{PATH} sent"),
        looks={"/ sent$/": Look(dashed=True)},
        cadence="20s",
        width=width,
    )
