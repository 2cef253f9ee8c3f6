"""One run: what it was, what came of it, its connections and subflows at 100 ms, what it found out."""

from __future__ import annotations

from tandem.schema.grades import Meaning
from tandem_dashboards.expressions import chosen, equal, rate
from tandem_dashboards.influxql import Select, select
from tandem_dashboards.kinds import listing, table, time_series, words
from tandem_dashboards.overrides import COLOUR, TEXT, TO_PROBE, Link, Override, cell, shown, to_board
from tandem_dashboards.panel import Panel, series

RUN = chosen("run")
OF_PATHS = (RUN, chosen("operator"), chosen("path"))
AT_PROBE, AT_SERVER = equal("end", "probe"), equal("end", "server")
BY = ("path", "operator", "subflow")
NAMED = "$tag_path ($tag_operator), subflow $tag_subflow"
FELL_BACK = {"true": Meaning("to TCP", "fair"), "false": Meaning("no", "quiet")}
"""Of runs of any kind: one by TCP cannot fall back, and is no Multipath TCP."""
GAP_MS = 1000
"""A subflow is read ten times a second: points a second apart have a silence between them."""

SECONDS_GAP_MS = 10_000
"""Of series of a second, or of long runs of several; a second without a packet has no point."""


def begun() -> Panel:
    """How the run began."""
    to_campaign = to_board("tandem-campaign", "Campaign", campaign=cell("campaign"))
    asked = (
        *("experiment", "kind", "pairing", "campaign", "paths", "trigger", "step", "attempt", "label", "seconds"),
        "bytes",
    )
    return table(
        "What it was",
        "The run as its probe began it: experiment, paths (the primary first), what began it, which step of which campaign. Empty: no "
        "such run began in the time range, or its first record has not arrived yet.",
        select("probe", *asked, of="run_begun", where=[RUN]),
        show=shown(Time="Began", probe=TO_PROBE)
        | shown("experiment", "kind", "paths", "pairing", "trigger", campaign=Override(links=(to_campaign,)))
        | shown("step", "attempt", "label", seconds="Meant to last", bytes="Meant to move"),
        size=(24, 3),
    )


def of_the_pair() -> Panel:
    """What came of this run and the others of its pair."""
    links = (
        to_board("tandem-run", "This run", keep=("probe", "campaign"), run=cell("run")),
        Link("Report of this run", f"/runs/{cell('run')}", new_tab=True),
        Link("Traces and files of this run", f"/runs/{cell('run')}#files", new_tab=True),
    )
    return listing(
        "What came of it, and of the other runs of its pair",
        "A row for each run of the pair that has ended: Multipath TCP over all paths beside TCP over each alone, where the pair has "
        "both. A failure is a result too, and says why. Empty: none has ended in the time range, or its record has not arrived.",
        of="run",
        where=[chosen("pair")],
        show=shown(Time="Ended", run=Override(links=links))
        | shown("experiment", "kind", "path", ok=COLOUR)
        | shown("goodput_bit_per_s", "bytes", "duration_s", "connect_ms", "first_byte_ms")
        | shown(fallback=Override(cell="text", words=FELL_BACK), failure=Override()),
        sort_by=("Ended", False),
        size=(24, 5),
    )


def _raw(field: str, *, at_server: bool = False) -> Select:
    return select(field, of="subflow", where=[*OF_PATHS, AT_SERVER if at_server else AT_PROBE], by=BY)


def goodput() -> Panel:
    """Goodput of each subflow at 100 ms."""
    return time_series(
        "Goodput of each subflow, every 100 ms",
        "Bytes that the probe's kernel received over each subflow (of a TCP run: over its one connection), read ten times a second. A "
        "line ends where its subflow does; nothing drawn: the run had no connection then, or its samples have not arrived.",
        series(_raw("goodput_bit_per_s"), NAMED),
        gap_ms=GAP_MS,
        sums=("mean", "max"),
        size=(12, 9),
    )


def shares() -> Panel:
    """Which part of the goodput each subflow carried."""
    return time_series(
        "Share of each subflow, every 100 ms",
        "The same readings, each as its part of all subflows' goodput at that instant: how Multipath TCP splits what it carries. Bare "
        "stretches: nothing came over any of them, or there are no readings.",
        series(_raw("goodput_bit_per_s"), NAMED),
        stacked="shares",
        fill=60,
        gap_ms=GAP_MS,
        override=Override(unit="share", low=0, high=1),
        size=(12, 9),
    )


def rtt() -> Panel:
    """Round-trip time of each subflow, by both ends."""
    return time_series(
        "Round-trip time of each subflow",
        "Smoothed by TCP, as either end has it, ten times a second. It is true at the end that sends the data: the server in a "
        "download, the probe in an upload; the other end's stands still. Nothing drawn: that end told nothing of this run.",
        series(select("rtt_ms", of="subflow", where=OF_PATHS, by=(*BY, "end")), f"{NAMED}, at the $tag_end"),
        gap_ms=GAP_MS,
    )


def window() -> Panel:
    """Congestion window at the server."""
    return time_series(
        "Congestion window at the server",
        "Segments that the server's TCP may have under way on each subflow: what limits a download. Nothing drawn: the server read "
        "nothing of this run (it was an upload by another server, or its statistics are not kept).",
        series(_raw("cwnd_segments", at_server=True), NAMED),
        gap_ms=GAP_MS,
    )


def retransmitted() -> Panel:
    """What the server had to send again."""
    lost = rate("bytes_retrans", times=8, unit="bit/s").named("sent again")
    return time_series(
        "Sent again by the server",
        "Payload that the server's TCP sent anew on each subflow, by its counter: loss on the way, or a path that went silent. At "
        "nought nothing was lost; nothing drawn: the server read nothing of this run.",
        series(select(lost, of="subflow", where=[*OF_PATHS, AT_SERVER], by=BY), NAMED),
        gap_ms=GAP_MS,
    )


def connection() -> Panel:
    """What the application got, all subflows together."""
    query = select("goodput_bit_per_s", of="connection", where=[RUN, AT_PROBE], by=("kind", "path"))
    return time_series(
        "What the application got",
        "Payload of the connection as a whole, ten times a second: bytes in order, so it waits where the subflows' sum goes on. "
        "Nothing drawn: no connection then, or its samples have not arrived.",
        series(query, "$tag_kind from $tag_path"),
        gap_ms=GAP_MS,
    )


def alive() -> Panel:
    """How many subflows there were."""
    query = select("subflows", of="connection", where=[RUN, AT_PROBE], by=("kind", "path"))
    return time_series(
        "Subflows alive",
        "How many subflows the connection had: a path that is lost takes its subflow along, and one that is restored adds one. Nothing "
        "drawn: no connection then.",
        series(query, "$tag_kind from $tag_path"),
        style="steps",
        gap_ms=GAP_MS,
        override=Override(low=0, decimals=0),
    )


def events() -> Panel:
    """What was noticed meanwhile."""
    return listing(
        "What the probe noticed meanwhile",
        "Events of the chosen probe in the board's time range, the newest first: handovers, drops, movement, paths and subflows lost "
        "and restored, recoveries, supply. Many are marks in the charts, too. Empty: nothing happened, or nothing has arrived.",
        of="event",
        where=[chosen("probe")],
        show=shown("Time", kind=TEXT) | shown("path", "operator", "state", "from_eci", "to_eci", "detail"),
        newest_first=True,
        limit=300,
        size=(24, 7),
    )


def captured() -> Panel:
    """What the run's captures say."""
    return listing(
        "What its captures say",
        "A row for each subflow in the run's captures, and one without a path for the whole connection, whose reordering queue is what "
        "waited for missing data. t_R is the time until the round-trip time is back after a handover or a drop on that path. Empty: no "
        "captures were made, they have not arrived (they go at night), or they could not be analysed.",
        of="run_trace",
        where=[RUN],
        show=shown("path", "operator", "subflow", goodput_bytes="Carried", again_percent="Came again")
        | shown(duplicate_bytes="Twice", hole_fill_bytes="Lost, sent again", reinjected_bytes="Reinjected")
        | shown("rtt_median_ms", "rtt_p95_ms", reorder_queue_max_bytes="Reordering queue, most")
        | shown("events", "recoveries", t_r_median_s="t_R, median", t_r_max_s="t_R, longest"),
        size=(24, 6),
    )


def phases() -> Panel:
    """The run's phases."""
    return listing(
        "Phases",
        "The steps that the experiment went through, each at its beginning; they are marks in the charts, too. Empty: the experiment "
        "has no phases.",
        of="phase",
        where=[RUN],
        show=shown("Time", "number", "of", "name"),
        sort_by=("Time", False),
    )


def waited() -> Panel:
    """The data-level queue, every second."""
    return time_series(
        "Reordering queue, every second",
        "From the captures: the most that had come and waited for what was missing, in each second of the run. Nothing drawn: its "
        "captures have not arrived and been analysed, or not of every path.",
        series(select("reorder_queue_max_bytes", of="run_trace_second", where=[RUN], by=("kind",)), "$tag_kind"),
        gap_ms=SECONDS_GAP_MS,
    )


def came_again() -> Panel:
    """What came again, every second."""
    query = select("again_bit_per_s", "reinjected_bit_per_s", of="run_trace_second", where=OF_PATHS, by=BY)
    return time_series(
        "Came again, every second",
        "From the captures: bytes seen twice or sent again behind a hole on each subflow, and those that another subflow had carried "
        "before (reinjected). Nothing drawn: its captures have not arrived and been analysed.",
        series(query, f"$col: {NAMED}"),
        overrides={"again_bit_per_s": Override("again"), "reinjected_bit_per_s": Override("reinjected")},
        gap_ms=SECONDS_GAP_MS,
    )


def cost() -> Panel:
    """What the run cost each path."""
    return listing(
        "What it cost each path",
        "All that crossed each path's interface during the run, headers and other traffic too: what an operator bills. Shared: of all "
        "runs of a simultaneous pair together. Empty: the run has not ended.",
        of="run_usage",
        where=[RUN],
        show=shown("path", "operator", "received_bytes", "sent_bytes", "shared"),
        footer=True,
    )


def _beside(end: str, title: str) -> str:
    """A link to what `serve pages` serves. In a tab of its own: Grafana takes every other click on its own host for one of its pages."""
    return f'<a href="/runs/${{run:percentencode}}{end}" target="_blank">{title}</a>'


def where_it_lies() -> Panel:
    """Where traces and report of the run are."""
    here = "from=${__from}&to=${__to}"
    return words(
        "Trace, report and further boards",
        f"{_beside('', 'Report of this run')}, {_beside('#files', 'its traces and files')}, "
        f"{_beside('.json', 'manifest and ledger as JSON')}\n\n"
        "These are served beside Grafana by `tandem-server serve pages`, behind the same login. Without it, on the server:\n\n"
        "- the same report as a file: `tandem-server report --run ${run}`\n"
        "- its traces: `tandem-server traces list --run ${run}`, then `tandem-server traces get NAME`\n"
        "- what of it is here, and what is missing: `tandem-server ledger --probe ${probe}`\n"
        "- report of its campaign, joined with the traces' packets: `tandem-server report FOLDER`\n\n"
        f"Boards: [the probe in this time](/d/tandem-probe?var-probe=${{probe}}&{here}), "
        f"[Multipath TCP against single paths](/d/tandem-multipath?var-probe=${{probe}}&{here}), "
        f"[plays of DASH](/d/tandem-dash?var-probe=${{probe}}&{here})\n",
    )


def aggregation() -> Panel:
    """Each round of a bandwidth or delay experiment."""
    directions = {"oneway": Meaning("upload", "quiet"), "reqresp": Meaning("download", "quiet")}
    goodputs = ("goodput_bit_per_s", "c_max_bit_per_s", "c_total_bit_per_s", "bandwidth_ratio")
    names = ("benefit", "tdi", *goodputs, "bytes", "delay_ms", "fastest_ms", "ideal_ms", "fallback")
    return table(
        "What aggregation gave, round by round",
        "Benefit: 0 is the best path alone, 1 the ideal, below 0 a loss. TDI: 1 where the paths share no bottleneck. Delays for runs "
        "of the delay experiment, goodputs for bandwidth. Empty: the run was neither, or no round of it is whole.",
        select("path", "operator", "mode", "round", *names, of="aggregation", where=[RUN]),
        show=shown("round", "path", "operator", "mode", *names, path="Primary path")
        | shown(mode=Override(title="Direction", words=directions))
        | shown(benefit=Override("Benefit", cell="text", decimals=2), tdi=Override("TDI", cell="text", decimals=2))
        | shown(c_max_bit_per_s="Best path alone", c_total_bit_per_s="All paths at once, TCP")
        | shown(bytes="Size of each transfer", delay_ms="Delay", fastest_ms="Fastest path alone", ideal_ms="Ideal"),
        sort_by=("Round", False),
        size=(24, 6),
    )


def verdicts() -> Panel:
    """Whether each path lets Multipath TCP through."""
    return listing(
        "Whether each path lets Multipath TCP through",
        "Of a verdict run: each path as the one on which a connection begins and as one that joins, with where it was lost and why. "
        "Empty: the run was none of the verdict experiment.",
        of="verdict",
        where=[RUN],
        show=shown("path", "operator", "role", verdict=COLOUR) | shown("where", "over", "detail"),
        size=(24, 5),
    )
