"""The gateway: what probes ask of it, what it rejects, how long the database takes."""

from __future__ import annotations

from dataclasses import replace

from tandem_dashboards.conditions import chosen, compare
from tandem_dashboards.expressions import Expression, greatest, last, mean, total
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import stat, table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import RESOLUTION, ROLLED

OF_PROBES = (chosen("probe"),)
_LIVE = to_board("tandem-probe", "Probe live", probe=cell("probe"))


def each_minute(field: str) -> Expression:
    """A count as so many a minute, however wide the window."""
    counted = total(field)
    return replace(counted, text=f"({counted.text} / $__interval_ms * 60000)", shows=None, unit="1/min")


def lines_now(width: int = 6) -> Panel:
    """Lines accepted and rejected, of late."""
    asked = select(
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
        series(asked, "$col"),
        looks={"accepted": Look(colour="good"), "rejected": Look(steps=((None, "good"), (1, "poor")))},
        width=width,
        height=4,
    )


def acknowledged_now(width: int = 6) -> Panel:
    """How long the database takes, of late."""
    asked = select(greatest("acknowledged_p95_ms"), of="gateway_process", recent="10m")
    return stat(
        "Acknowledged within, last ten minutes",
        "95 of 100 batches of records were answered within this time, in the worst minute and gateway process of the last ten minutes: "
        "from the batch being read to the database's word. A dash: no batch came.",
        series(asked, "95 of 100"),
        names=False,
        width=width,
        height=4,
    )


def lines(width: int = 12) -> Panel:
    """Lines accepted and rejected over time."""
    asked = select(
        each_minute("lines_accepted").named("accepted"),
        each_minute("lines_rejected").named("rejected"),
        of="gateway",
        where=OF_PROBES,
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Lines of records a minute",
        "Lines of the chosen probes that were accepted, that is, are in the database, and those refused for good. A gap: no probe sent "
        "anything, or no gateway ran.",
        series(asked, "$col"),
        looks={"accepted": Look(colour="good"), "rejected": Look(colour="poor", as_bars=True)},
        cadence="1m",
        width=width,
    )


def by_probe(width: int = 12) -> Panel:
    """Lines of each probe over time."""
    asked = select(
        each_minute("lines_accepted").named("accepted"),
        of="gateway",
        where=OF_PROBES,
        by=["probe"],
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Lines accepted a minute, by probe",
        "Which probe sends how much: a probe that drains a backlog sends many times its usual lines. A gap: it sent nothing.",
        series(asked, "$tag_probe"),
        cadence="1m",
        width=width,
    )


def rejected(width: int = 24) -> Panel:
    """Who has lines rejected, and why."""
    some = (*OF_PROBES, compare("lines_rejected", ">", 0))
    how_many = select(
        total("lines_rejected").named("rejected"), of="gateway", where=some, by=["probe"], policy=RESOLUTION
    )
    why = select(last("reason"), of="gateway", where=OF_PROBES, by=["probe"], policy=RESOLUTION)
    return table(
        "Rejected lines, and the newest reason",
        "Probes whose lines were refused for good in the time shown: how many, and why the newest of them. The probe keeps such lines "
        "in its quarantine. What to do: the reason names the field; most often probe and server are of different versions, or a clock "
        "is wrong. Empty: none was refused.",
        how_many,
        why,
        joined_by="probe",
        show={
            "probe": Look(links=(_LIVE,), width=220),
            "rejected": Look(title="Lines rejected", cell="text", width=140),
            "reason": Look(title="Newest reason"),
        },
        sort_by=("rejected", True),
        width=width,
        height=7,
    )


def answers(width: int = 12) -> Panel:
    """Requests that were not served."""
    asked = select(
        each_minute("answers_429").named("too many (429)"),
        each_minute("answers_503").named("no room (503)"),
        each_minute("answers_refused").named("refused (other 4xx)"),
        of="gateway",
        where=OF_PROBES,
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Requests told to come later, or refused, a minute",
        "429: a probe asks more than its share a minute. 503: the server has no room, or its database is away; probes keep their "
        "records and come again. Refused: bodies that cannot be read, and the like. A gap: no requests at all.",
        series(asked, "$col"),
        looks={
            "too many (429)": Look(colour="fair"),
            "no room (503)": Look(colour="poor"),
            "refused (other 4xx)": Look(colour="notice"),
        },
        style="bars",
        stacked=True,
        cadence="1m",
        width=width,
    )


def requests(width: int = 12) -> Panel:
    """Requests and bytes."""
    asked = select(
        each_minute("requests").named("requests"), of="gateway", where=OF_PROBES, every=INTERVAL, policy=RESOLUTION
    )
    strangers = select(
        each_minute("strangers").named("strangers"), of="gateway_process", every=INTERVAL, policy=RESOLUTION
    )
    volume = select(
        replace(
            total("received_bytes"), text='(sum("received_bytes") * 8000 / $__interval_ms)', shows=None, unit="bit/s"
        ).named("received"),
        of="gateway",
        where=OF_PROBES,
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Requests a minute, and what they bring",
        "Requests of the chosen probes of any kind; those of strangers (without a good token) to this server; on the right what the "
        "requests' bodies bring, records and traces, as they come. A gap: no requests.",
        series(asked, "requests"),
        series(strangers, "without a good token"),
        series(volume, "received"),
        looks={"without a good token": Look(colour="fair")},
        cadence="1m",
        width=width,
    )


def acknowledged(width: int = 12) -> Panel:
    """How long until the database had a batch, over time."""
    middle = select(
        mean("acknowledged_median_ms").named("median"),
        mean("acknowledged_p95_ms").named("p95"),
        of="gateway_process",
        every=INTERVAL,
        policy=RESOLUTION,
    )
    longest = select(
        greatest("acknowledged_most_ms_max").named("longest"), of="gateway_process", every=INTERVAL, policy=ROLLED
    )
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
        width=width,
    )


def writes(width: int = 12) -> Panel:
    """Writes to the database."""
    asked = select(
        (total("written_lines") / total("writes")).in_unit("").named("lines a write"),
        of="gateway_process",
        every=INTERVAL,
        policy=RESOLUTION,
    )
    failed = select(
        each_minute("writes_failed").named("failed"), of="gateway_process", every=INTERVAL, policy=RESOLUTION
    )
    slow = select(
        (total("slow_requests") / total("acknowledged_requests")).in_unit("share").named("slow"),
        of="gateway_process",
        every=INTERVAL,
        policy=RESOLUTION,
    )
    return time_series(
        "Writes to the database",
        "How many lines go with one write; on the right, writes that the database did not acknowledge, a minute, and what part of the "
        "batches took more than a second. A gap: nothing was written.",
        series(asked, "lines a write"),
        series(failed, "failed writes"),
        series(slow, "batches above a second"),
        looks={"failed writes": Look(colour="poor", as_bars=True), "batches above a second": Look(colour="fair")},
        cadence="1m",
        width=width,
    )


def processes(width: int = 12) -> Panel:
    """What each gateway process takes."""
    busy = select(
        (total("cpu_s") / total("period_s")).in_unit("share").named("processor"),
        of="gateway_process",
        by=["process"],
        every=INTERVAL,
        policy=RESOLUTION,
    )
    memory = select(greatest("rss_bytes"), of="gateway_process", by=["process"], every=INTERVAL, policy=RESOLUTION)
    return time_series(
        "Gateway processes",
        "What part of one processor core each gateway process takes; on the right its resident memory. A gap: the process did not run.",
        series(busy, "processor, process $tag_process"),
        series(memory, "memory, process $tag_process"),
        cadence="1m",
        width=width,
    )


def at_once(width: int = 12) -> Panel:
    """How full the gateway is."""
    asked = select(
        greatest("requests_at_once_max").named("requests"),
        of="gateway_process",
        by=["process"],
        every=INTERVAL,
        policy=ROLLED,
    )
    held = select(
        greatest("bytes_at_once_max").named("held"), of="gateway_process", by=["process"], every=INTERVAL, policy=ROLLED
    )
    return time_series(
        "Most requests and bytes at one moment",
        "The most requests that each gateway process was answering at one moment, and on the right the most bytes that they held in "
        "memory. Above its bounds ([limits] requests_at_once, bytes_in_flight, shared by the processes) probes are told 503. From "
        "roll-ups, so the last minutes may be missing.",
        series(asked, "requests, process $tag_process"),
        series(held, "bytes, process $tag_process"),
        cadence="2m",
        width=width,
    )
