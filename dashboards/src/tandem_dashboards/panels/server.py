"""The server: its gateway (requests of probes, what it rejects, how long the database takes), its machine, disks, traces, and its
account of records."""

from __future__ import annotations

from dataclasses import replace

from tandem_dashboards.expressions import Expression, chosen, compare, greatest, last, least, mean, total, value
from tandem_dashboards.influxql import RESOLUTION, ROLLED, Select, select, windowed
from tandem_dashboards.kinds import bar_gauge, stat, table, time_series
from tandem_dashboards.overrides import LIVE, TEXT, TO_PROBE, Override, shown
from tandem_dashboards.panel import Panel, series
from tandem_server.schema import grades

OF_PROBES = (chosen("probe"),)


def each_minute(field: str) -> Expression:
    """A count as so many a minute, however wide the window."""
    counted = total(field)
    return replace(counted, text=f"({counted.text} / $__interval_ms * 60000)", shows=None, unit="1/min")


def lines_now() -> Panel:
    """Lines accepted and rejected, of late."""
    query = select(
        total("lines_accepted").named("accepted"),
        total("lines_rejected").named("rejected"),
        of="gateway",
        where=OF_PROBES,
        recent="10m",
    )
    return stat(
        "Lines of records, last ten minutes",
        "Lines that the gateway took from the chosen probes and put into the database in the last ten minutes, and those that it "
        "refused for good. Dashes: no probe sent anything, or no gateway wrote its series.",
        series(query, "$col"),
        overrides={"accepted": Override(colour="good"), "rejected": Override(steps=((None, "good"), (1, "poor")))},
        size=(6, 4),
    )


def acknowledged_now() -> Panel:
    """How long the database takes, of late."""
    return stat(
        "Acknowledged within, last ten minutes",
        "95 of 100 batches of records were answered within this time, in the worst minute and gateway process of the last ten minutes: "
        "from the batch being read to the database's word. A dash: no batch came.",
        series(select(greatest("acknowledged_p95_ms"), of="gateway_process", recent="10m"), "95 of 100"),
        names=False,
        size=(6, 4),
    )


def lines() -> Panel:
    """Lines accepted and rejected over time."""
    query = windowed(
        each_minute("lines_accepted").named("accepted"),
        each_minute("lines_rejected").named("rejected"),
        of="gateway",
        where=OF_PROBES,
    )
    return time_series(
        "Lines of records a minute",
        "Lines of the chosen probes that were accepted, that is, are in the database, and those refused for good. A gap: no probe sent "
        "anything, or no gateway ran.",
        series(query, "$col"),
        overrides={"accepted": Override(colour="good"), "rejected": Override(colour="poor", as_bars=True)},
        cadence="1m",
    )


def by_probe() -> Panel:
    """Lines of each probe over time."""
    query = windowed(each_minute("lines_accepted").named("accepted"), of="gateway", where=OF_PROBES, by=["probe"])
    return time_series(
        "Lines accepted a minute, by probe",
        "Which probe sends how much: a probe that drains a backlog sends many times its usual lines. A gap: it sent nothing.",
        series(query, "$tag_probe"),
        cadence="1m",
    )


def rejected() -> Panel:
    """Who has lines rejected, and why."""
    some = (*OF_PROBES, compare("lines_rejected", ">", 0))
    how_many = select(
        total("lines_rejected").named("rejected"), of="gateway", where=some, by=["probe"], policy=RESOLUTION
    )
    return table(
        "Rejected lines, and the newest reason",
        "Probes whose lines were refused for good in the time shown: how many, and why the newest of them. The probe keeps such lines "
        "in its quarantine. What to do: the reason names the field; most often probe and server are of different versions, or a clock "
        "is wrong. Empty: none was refused.",
        how_many,
        select(last("reason"), of="gateway", where=OF_PROBES, by=["probe"], policy=RESOLUTION),
        joined_by="probe",
        show=shown(probe=Override(links=(LIVE,), width=220))
        | shown(rejected=Override(title="Lines rejected", cell="text", width=140), reason="Newest reason"),
        sort_by=("rejected", True),
        size=(24, 7),
    )


def answers() -> Panel:
    """Requests that were not served."""
    query = windowed(
        each_minute("answers_429").named("too many (429)"),
        each_minute("answers_503").named("no room (503)"),
        each_minute("answers_refused").named("refused (other 4xx)"),
        of="gateway",
        where=OF_PROBES,
    )
    return time_series(
        "Requests told to come later, or refused, a minute",
        "429: a probe asks more than its share a minute. 503: the server has no room, or its database is away; probes keep their "
        "records and come again. Refused: bodies that cannot be read, and the like. A gap: no requests at all.",
        series(query, "$col"),
        overrides={
            "too many (429)": Override(colour="fair"),
            "no room (503)": Override(colour="poor"),
            "refused (other 4xx)": Override(colour="notice"),
        },
        style="bars",
        stacked=True,
        cadence="1m",
    )


def requests() -> Panel:
    """Requests and bytes."""
    volume = windowed(
        replace(
            total("received_bytes"), text='(sum("received_bytes") * 8000 / $__interval_ms)', shows=None, unit="bit/s"
        ).named("received"),
        of="gateway",
        where=OF_PROBES,
    )
    return time_series(
        "Requests a minute, and what they bring",
        "Requests of the chosen probes of any kind; those of strangers (without a good token) to this server; on the right what the "
        "requests' bodies bring, records and traces, as they come. A gap: no requests.",
        series(windowed(each_minute("requests").named("requests"), of="gateway", where=OF_PROBES), "requests"),
        series(windowed(each_minute("strangers").named("strangers"), of="gateway_process"), "without a good token"),
        series(volume, "received"),
        overrides={"without a good token": Override(colour="fair")},
        cadence="1m",
    )


def acknowledged() -> Panel:
    """How long until the database had a batch, over time."""
    middle = windowed(
        mean("acknowledged_median_ms").named("median"), mean("acknowledged_p95_ms").named("p95"), of="gateway_process"
    )
    longest = windowed(greatest("acknowledged_most_ms_max").named("longest"), of="gateway_process", policy=ROLLED)
    return time_series(
        "How long until a batch was acknowledged",
        "From a batch of records being read to the database's word that it is stored: half of the batches, and 95 of 100, took no "
        "longer (means of each minute and process); the longest of all. Dashed: a second, and five. A gap: no batch came, or the "
        "database took none.",
        series(middle, "$col"),
        series(longest, "longest"),
        grades="lines",
        logarithmic=True,
        cadence="1m",
    )


def writes() -> Panel:
    """Writes to the database."""
    query = windowed(
        (total("written_lines") / total("writes")).in_unit("").named("lines a write"), of="gateway_process"
    )
    slow = windowed(total("slow_requests").part_of(total("acknowledged_requests"), "slow"), of="gateway_process")
    return time_series(
        "Writes to the database",
        "How many lines go with one write; on the right, writes that the database did not acknowledge, a minute, and what part of the "
        "batches took more than a second. A gap: nothing was written.",
        series(query, "lines a write"),
        series(windowed(each_minute("writes_failed").named("failed"), of="gateway_process"), "failed writes"),
        series(slow, "batches above a second"),
        overrides={
            "failed writes": Override(colour="poor", as_bars=True),
            "batches above a second": Override(colour="fair"),
        },
        cadence="1m",
    )


def processes() -> Panel:
    """What each gateway process takes."""
    busy = windowed(total("cpu_s").part_of(total("period_s"), "processor"), of="gateway_process", by=["process"])
    return time_series(
        "Gateway processes",
        "What part of one processor core each gateway process takes; on the right its resident memory. A gap: the process did not run.",
        series(busy, "processor, process $tag_process"),
        series(windowed(greatest("rss_bytes"), of="gateway_process", by=["process"]), "memory, process $tag_process"),
        cadence="1m",
    )


def at_once() -> Panel:
    """How full the gateway is."""
    query = windowed(
        greatest("requests_at_once_max").named("requests"), of="gateway_process", by=["process"], policy=ROLLED
    )
    held = windowed(greatest("bytes_at_once_max").named("held"), of="gateway_process", by=["process"], policy=ROLLED)
    return time_series(
        "Most requests and bytes at one moment",
        "The most requests that each gateway process was answering at one moment, and on the right the most bytes that they held in "
        "memory. Above its bounds ([limits] requests_at_once, bytes_in_flight, shared by the processes) probes are told 503. From "
        "roll-ups, so the last minutes may be missing.",
        series(query, "requests, process $tag_process"),
        series(held, "bytes, process $tag_process"),
        cadence="2m",
    )


NOW = "5m"
_DISK = grades.SHARES["disk_used"]


def _used() -> Expression:
    return value("used_bytes").part_of(value("used_bytes") + value("free_bytes"), "used")


def database_answer() -> Panel:
    """Database and version."""
    query = select(last("database_answer_ms").named("database answers in"), of="server_health", recent=NOW)
    return stat(
        "Database answers in",
        "How long the database took to answer a ping, as the worker found it last, within five minutes. A dash: the worker does not "
        "run, or the database is away.",
        series(query, "database"),
        names=False,
        size=(6, 4),
    )


def fullest() -> Panel:
    """The fullest of the server's file systems."""
    newest = select(last("used_bytes"), "free_bytes", of="server_disk", by=["place"], recent=NOW)
    each = select(_used(), of=newest, by=["place"])
    return stat(
        "Fullest disk",
        "What part of the fullest of the server's file systems is used, as told within five minutes. A dash: not told.",
        series(select(greatest("used").named("used"), of=each), "used"),
        override=Override(steps=_DISK.steps, decimals=0),
        names=False,
        size=(6, 4),
    )


def disks() -> Panel:
    """Each place's file system."""
    newest = select(last("used_bytes"), "free_bytes", of="server_disk", by=["place"], recent=NOW)
    return bar_gauge(
        "Disks, used part",
        "What part is used of the file system that the server's database, traces, registry and so on are each on, as told within five "
        "minutes. Several may be on the same one. Empty: not told.",
        series(select(_used(), of=newest, by=["place"]), "$tag_place"),
        override=Override(low=0, high=1, steps=_DISK.steps, decimals=0),
        size=(8, 8),
    )


def free() -> Panel:
    """Free room over time."""
    return time_series(
        "Free room on disk",
        "Room that is left to the server on each of its file systems, the least of each stretch. A gap: not told.",
        series(windowed(least("free_bytes"), of="server_disk", by=["place"]), "$tag_place"),
        override=Override(low=0),
        cadence="1m",
        size=(8, 8),
    )


def held() -> Panel:
    """What the server's own files take."""
    return time_series(
        "What the server's files take",
        "Bytes on disk of the database's files, received and unfinished traces, the registry and so on, counted every ten minutes. "
        "Empty: not counted yet, or on another machine.",
        series(windowed(last("held_bytes"), of="server_disk", by=["place"]), "$tag_place"),
        cadence="15m",
        size=(8, 8),
    )


def processors() -> Panel:
    """Processor and load."""
    load = windowed((mean("load_1min") / mean("cores") * 100).in_unit("%").named("load"), of="server_health")
    return time_series(
        "Processors of the server's machine",
        "The busy part of all processors; and the load: threads that run or wait, of as many as there are processors, above 100 % some "
        "wait. A gap: the worker did not run.",
        series(windowed(mean("cpu_percent"), of="server_health"), "busy"),
        series(load, "load"),
        grades="lines",
        cadence="1m",
    )


def memory() -> Panel:
    """Memory and the database's answers."""
    return time_series(
        "Memory, and the database's answers",
        "Memory that programs may still have, the least of each stretch, and how much the machine has; on the right, how long the "
        "database took to answer a ping. A gap: the worker did not run.",
        series(windowed(least("memory_available_bytes"), of="server_health"), "available"),
        series(windowed(last("memory_total_bytes"), of="server_health"), "of the machine"),
        series(windowed(mean("database_answer_ms"), of="server_health"), "database's answer"),
        override=Override(low=0),
        overrides={"of the machine": Override(colour="quiet", dashed=True)},
        cadence="1m",
    )


def _traces() -> Select:
    return select(
        last("received"),
        *("received_bytes", "stored_bytes", "unfinished", "unfinished_bytes", "unfinished_oldest_s"),
        of="server_traces",
        where=(chosen("probe"),),
        by=["probe"],
        recent=NOW,
    )


def traces() -> Panel:
    """Traces by probe."""
    return table(
        "Traces, by probe",
        "Captures and other files of runs that the server has of each probe, and those on their way: how much has still to come, and "
        "since when the oldest was offered. Within five minutes. Empty: no probe ever offered one.",
        _traces(),
        show=shown(probe=TO_PROBE)
        | shown("received", received_bytes="Bytes", stored_bytes="As stored", unfinished="On their way")
        | shown(unfinished_bytes="Still to come", unfinished_oldest_s=Override(title="Oldest", cell="text")),
        sort_by=("unfinished_oldest_s", True),
        size=(12, 10),
    )


def traces_stored() -> Panel:
    """How traces grow."""
    query = windowed(last("stored_bytes"), of="server_traces", where=(chosen("probe"),), by=["probe"])
    return time_series(
        "Traces as they are stored",
        "Bytes that the traces of each probe take in the store, one upon the other. A gap: the worker did not run.",
        series(query, "$tag_probe"),
        style="steps",
        stacked=True,
        fill=30,
        cadence="1m",
        size=(12, 10),
    )


def records() -> Panel:
    """The account of each probe's records."""
    query = select(
        last("made"),
        *("arrived", "rejected", "dropped", "waiting", "unexplained"),
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
        query,
        show=shown(probe=TO_PROBE, Time="Counted")
        | shown("made", "arrived", "rejected", "dropped", "waiting", unexplained=TEXT),
        sort_by=("unexplained", True),
        footer=True,
        size=(24, 8),
    )
