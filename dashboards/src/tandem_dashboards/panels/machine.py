"""The server's machine, its disks, its traces, and what it knows of records."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import Expression, greatest, last, least, mean, value
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import bar_gauge, stat, table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION

NOW = "5m"
_DISK = grades.SHARES["disk_used"]
_LIVE = to_board("tandem-probe", "Probe live", probe=cell("probe"))


def _used() -> Expression:
    return (value("used_bytes") / (value("used_bytes") + value("free_bytes"))).in_unit("share").named("used")


def answers(width: int = 6) -> Panel:
    """Database and version."""
    asked = select(last("database_answer_ms").named("database answers in"), of="server_health", recent=NOW)
    return stat(
        "Database answers in",
        "How long the database took to answer a ping, as the gateway found it last, within five minutes. A dash: the gateway does not "
        "run, or the database is away.",
        series(asked, "database"),
        names=False,
        width=width,
        height=4,
    )


def fullest(width: int = 6) -> Panel:
    """The fullest of the server's file systems."""
    newest = select(last("used_bytes"), "free_bytes", of="server_disk", by=["place"], recent=NOW)
    each = select(_used(), of=newest, by=["place"])
    return stat(
        "Fullest disk",
        "What part of the fullest of the server's file systems is used, as told within five minutes. A dash: not told.",
        series(select(greatest("used").named("used"), of=each), "used"),
        look=Look(steps=_DISK.steps, decimals=0),
        names=False,
        width=width,
        height=4,
    )


def disks(width: int = 8) -> Panel:
    """Each place's file system."""
    newest = select(last("used_bytes"), "free_bytes", of="server_disk", by=["place"], recent=NOW)
    return bar_gauge(
        "Disks, used part",
        "What part is used of the file system that the server's database, traces, registry and so on are each on, as told within five "
        "minutes. Several may be on the same one. Empty: not told.",
        series(select(_used(), of=newest, by=["place"]), "$tag_place"),
        look=Look(low=0, high=1, steps=_DISK.steps, decimals=0),
        width=width,
    )


def free(width: int = 8) -> Panel:
    """Free room over time."""
    asked = select(least("free_bytes"), of="server_disk", by=["place"], every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Free room on disk",
        "Room that is left to the server on each of its file systems, the least of each stretch. A gap: not told.",
        series(asked, "$tag_place"),
        look=Look(low=0),
        cadence="1m",
        width=width,
    )


def held(width: int = 8) -> Panel:
    """What the server's own files take."""
    asked = select(last("held_bytes"), of="server_disk", by=["place"], every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "What the server's files take",
        "Bytes on disk of the database's files, received and unfinished traces, the registry and so on, counted every ten minutes. "
        "Empty: not counted yet, or on another machine.",
        series(asked, "$tag_place"),
        cadence="15m",
        width=width,
    )


def processors(width: int = 12) -> Panel:
    """Processor and load."""
    busy = select(mean("cpu_percent"), of="server_health", every=INTERVAL, policy=RESOLUTION)
    load = select(
        (mean("load_1min") / mean("cores") * 100).in_unit("%").named("load"),
        of="server_health",
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Processors of the server's machine",
        "The busy part of all processors; and the load: threads that run or wait, of as many as there are processors, above 100 % some "
        "wait. A gap: the gateway did not run.",
        series(busy, "busy"),
        series(load, "load"),
        grades="lines",
        cadence="1m",
        width=width,
    )


def memory(width: int = 12) -> Panel:
    """Memory and the database's answers."""
    asked = select(least("memory_available_bytes"), of="server_health", every=INTERVAL, policy=RESOLUTION)
    most = select(last("memory_total_bytes"), of="server_health", every=INTERVAL, policy=RESOLUTION)
    answer = select(mean("database_answer_ms"), of="server_health", every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Memory, and the database's answers",
        "Memory that programs may still have, the least of each stretch, and how much the machine has; on the right, how long the "
        "database took to answer a ping. A gap: the gateway did not run.",
        series(asked, "available"),
        series(most, "of the machine"),
        series(answer, "database's answer"),
        look=Look(low=0),
        looks={"of the machine": Look(colour="quiet", dashed=True)},
        cadence="1m",
        width=width,
    )


def _traces() -> Select:
    return select(
        last("received"),
        "received_bytes",
        "stored_bytes",
        "unfinished",
        "unfinished_bytes",
        "unfinished_oldest_s",
        of="server_traces",
        where=(chosen("probe"),),
        by=["probe"],
        recent=NOW,
    )


def traces(width: int = 12) -> Panel:
    """Traces by probe."""
    return table(
        "Traces, by probe",
        "Captures and other files of runs that the server has of each probe, and those on their way: how much has still to come, and "
        "since when the oldest was offered. Within five minutes. Empty: no probe ever offered one.",
        _traces(),
        show={
            "probe": Look(links=(_LIVE,)),
            "received": Look(),
            "received_bytes": Look(title="Bytes"),
            "stored_bytes": Look(title="As stored"),
            "unfinished": Look(title="On their way"),
            "unfinished_bytes": Look(title="Still to come"),
            "unfinished_oldest_s": Look(title="Oldest", cell="text"),
        },
        sort_by=("unfinished_oldest_s", True),
        width=width,
        height=10,
    )


def traces_stored(width: int = 12) -> Panel:
    """How traces grow."""
    asked = select(
        last("stored_bytes"),
        of="server_traces",
        where=(chosen("probe"),),
        by=["probe"],
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Traces as they are stored",
        "Bytes that the traces of each probe take in the store, one upon the other. A gap: the gateway did not run.",
        series(asked, "$tag_probe"),
        style="steps",
        stacked=True,
        fill=30,
        cadence="1m",
        width=width,
        height=10,
    )


def records(width: int = 24) -> Panel:
    """The account of each probe's records."""
    asked = select(
        last("made"),
        "arrived",
        "rejected",
        "dropped",
        "waiting",
        "unexplained",
        of="ledger_records",
        where=(chosen("probe"),),
        by=["probe"],
        timed=False,
        recent="1d",
    )
    return table(
        "Every record's account, by probe",
        "Of all records that a probe ever made: in the database, rejected and dropped (as the probe counts), waiting at the probe, and "
        "unexplained: the probe counts them as delivered, and they are not here. Counted every ten minutes, the last count of a day. "
        "Empty: no spool told of itself yet. What to do about unexplained ones: tandem-server ledger --probe NAME names them.",
        asked,
        show={
            "probe": Look(links=(_LIVE,)),
            "Time": Look(title="Counted"),
            "made": Look(),
            "arrived": Look(),
            "rejected": Look(),
            "dropped": Look(),
            "waiting": Look(),
            "unexplained": Look(cell="text"),
        },
        sort_by=("unexplained", True),
        footer=True,
        width=width,
        height=8,
    )
