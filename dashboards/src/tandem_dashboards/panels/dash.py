"""Plays of DASH: what watchers got, by Multipath TCP beside each path alone, over any time; and one play within a run, by segment."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.expressions import Expression, chosen, last, least, total
from tandem_dashboards.field_config import Steps
from tandem_dashboards.influxql import INTERVAL, ROLLED, Select, select
from tandem_dashboards.kinds import bar_gauge, histogram, listing, state_timeline, table, time_series
from tandem_dashboards.overrides import COLOUR, TEXT, Override, cell, shown, to_board
from tandem_dashboards.panel import Panel, series

WHERE = (chosen("probe"), chosen("campaign"), chosen("operator"))
_TO_RUN = Override(links=(to_board("tandem-run", "Run", probe=cell("probe"), run=cell("run")),))
ARM = ("kind", "operator")
NAMED = "$tag_kind, $tag_operator"
ARMS = "An arm is the way that a play took: TCP over one operator, or Multipath TCP that began on the operator named and may use all. "
ROLLED_SAYS = (
    "Made from roll-ups by the minute or the hour, a minute or two late. Empty: no play ended in the time range."
)


def mean_of(field: str, unit: str) -> Expression:
    """Over all plays of a window, however many roll-ups it spans."""
    return (total(f"{field}_sum") / total(f"{field}_count")).in_unit(unit).named(field)


def graded(field: str) -> Steps:
    """The schema's limits of a field of ``dash``, for a mean of it."""
    scale = grades.scale("dash", field)
    return scale.steps if scale else ()


PLAYS = total("records").named("plays")
WHOLE = total("whole_true_count").part_of(total("records"), "whole")
STARTUP = mean_of("startup_delay_ms", "ms")
STALLED = mean_of("stall_ratio", "share")
STALLS = (total("stalls") / total("records")).named("stalls")
SWITCHES = (total("switches") / total("media_s") * 60).named("switches")
BITRATE = mean_of("bitrate_bit_per_s", "bit/s")
GOODPUT = mean_of("goodput_bit_per_s", "bit/s")
SCORE = mean_of("qoe_bit_per_s", "bit/s")
FIGURES = (PLAYS, WHOLE, STARTUP, STALLED, STALLS, SWITCHES, BITRATE, GOODPUT, SCORE)
SHOWN = {
    "plays": Override(),
    "whole": Override(title="Played to the end", decimals=0),
    "startup_delay_ms": Override(title="Startup delay", cell="text", steps=graded("startup_delay_ms")),
    "stall_ratio": Override(title="Time stalled", cell="text", steps=graded("stall_ratio")),
    "stalls": Override(title="Stalls a play", decimals=2),
    "switches": Override(title="Switches a minute of video", decimals=1),
    "bitrate_bit_per_s": Override(title="Bitrate of the representations"),
    "goodput_bit_per_s": Override(title="Goodput"),
    "qoe_bit_per_s": Override(title="Score"),
}


def _arms(figure: Expression, *, every: str | None = None, of: str = "dash") -> Select:
    where = WHERE if of == "dash" else (chosen("probe"), chosen("operator"))
    return select(figure, of=of, where=where, by=ARM, every=every, policy=ROLLED)


def arms() -> Panel:
    """Each arm's figures."""
    return table(
        "Arms side by side",
        f"{ARMS}Time stalled: part of the time since the picture began. Score: Yin et al. (SIGCOMM 2015) by segment: mean bitrate less "
        f"switches, stalls and startup. {ROLLED_SAYS}",
        select(*FIGURES, of="dash", where=WHERE, by=ARM, policy=ROLLED),
        show=shown("kind", "operator") | SHOWN,
        sort_by=("Operator", False),
        size=(24, 6),
    )


def rules() -> Panel:
    """Each rule's figures."""
    return table(
        "Rules side by side",
        "The same by who chose the representations: the player's rule, or VLC's logic (vlc-…), for Multipath TCP and for TCP. Compare "
        f"rules only where they played the same content. {ROLLED_SAYS}",
        select(*FIGURES, of="dash", where=WHERE, by=("rule", "kind"), policy=ROLLED),
        show=shown("rule", "kind") | SHOWN,
        sort_by=("Rule", False),
        size=(24, 6),
    )


def _gauge(title: str, says: str, figure: Expression, override: Override) -> Panel:
    return bar_gauge(title, f"{says} {ARMS}{ROLLED_SAYS}", series(_arms(figure), NAMED), override=override, size=(8, 7))


def startup_by_arm() -> Panel:
    """Startup delay of each arm."""
    return _gauge(
        "Startup delay",
        "Mean time from the request of the manifest to the picture, of the plays whose picture began.",
        STARTUP,
        Override(low=0, steps=graded("startup_delay_ms")),
    )


def stalled_by_arm() -> Panel:
    """Time stalled of each arm."""
    return _gauge(
        "Time stalled",
        "Mean part of a play's time in which the picture stood still.",
        STALLED,
        Override(low=0, steps=graded("stall_ratio")),
    )


def bitrate_by_arm() -> Panel:
    """Bitrate of each arm."""
    return _gauge(
        "Bitrate of the representations",
        "Mean bitrate of the representations that were shown, by the manifest: the quality of the picture.",
        BITRATE,
        Override(low=0),
    )


def _over_time(title: str, says: str, figure: Expression, override: Override) -> Panel:
    return time_series(
        title,
        f"{says} A point for each stretch in which a play ended, for each arm. {ROLLED_SAYS}",
        series(_arms(figure, every=INTERVAL), NAMED),
        style="points",
        override=override,
        cadence="1m",
    )


def startup() -> Panel:
    """Startup delay over time."""
    return _over_time("Startup delay over time", "Mean of each stretch.", STARTUP, Override(low=0))


def stalled() -> Panel:
    """Rebuffering over time."""
    return _over_time(
        "Rebuffering over time",
        "Part of the time since the picture began in which it stood still for want of video, mean over plays.",
        STALLED,
        Override(low=0),
    )


def bitrate() -> Panel:
    """Representations over time."""
    return _over_time(
        "Representations over time",
        "Bitrate by the manifest of the representations that were shown, mean over plays.",
        BITRATE,
        Override(low=0),
    )


def switches() -> Panel:
    """Quality switches over time."""
    return _over_time(
        "Quality switches by minute of video, over time",
        "Changes of representation by minute of video.",
        SWITCHES,
        Override(low=0),
    )


def score() -> Panel:
    """Score over time."""
    return _over_time(
        "Score over time",
        "Score of Yin et al. (SIGCOMM 2015) by segment, mean over plays: mean bitrate less switches, stalls and startup.",
        SCORE,
        Override(),
    )


def how_many() -> Panel:
    """Plays over time."""
    return time_series(
        "Plays",
        f"How many plays ended in each stretch, by arm: what the other figures rest on. {ROLLED_SAYS}",
        series(_arms(PLAYS, every=INTERVAL), NAMED),
        style="bars",
        stacked=True,
        override=Override(low=0, decimals=0),
        cadence="1m",
    )


def lowest_buffer() -> Panel:
    """How low the buffer was."""
    return time_series(
        "Lowest buffer",
        "The least video in the buffer after a segment, in each stretch and arm: near nought the picture is about to stand still. "
        f"Coloured bands: poor, fair, good. {ROLLED_SAYS}",
        series(_arms(least("buffer_level_ms_min"), every=INTERVAL, of="dash_segment"), NAMED),
        style="points",
        grades="areas",
        cadence="1m",
    )


def segment_time() -> Panel:
    """How long segments took."""
    return time_series(
        "Time that segments took",
        f"Mean time from a segment's request to its last byte, in each stretch and arm. {ROLLED_SAYS}",
        series(_arms(mean_of("duration_ms", "ms"), every=INTERVAL, of="dash_segment"), NAMED),
        style="points",
        override=Override(low=0),
        cadence="1m",
    )


def now_playing() -> Panel:
    """Plays that are on."""
    query = select(
        *(last(name).named(name) for name in ("state", "buffer_level_ms", "played_s", "stalled_s")),
        of="dash_playback",
        where=[chosen("probe"), chosen("operator")],
        by=("probe", "run", "kind", "path"),
        recent="1m",
    )
    return table(
        "Playing now",
        "Plays that told of themselves in the last minute, as they stood then; the run's name opens it. Empty: nothing plays, or the "
        "probes that play are not heard.",
        query,
        show=shown("probe", run=_TO_RUN)
        | shown("kind", "path", state=COLOUR, buffer_level_ms=TEXT)
        | shown("played_s", "stalled_s"),
    )


def distribution() -> Panel:
    """How startup delays are spread."""
    return histogram(
        "Startup delays of the last 24 hours",
        "How many plays had which startup delay, Multipath TCP beside TCP, whatever the board's time range. Empty: no play's picture "
        "began in the last 24 hours.",
        series(select("startup_delay_ms", of="dash", where=WHERE, by=["kind"]), "$tag_kind"),
        time_from="24h",
    )


def latest() -> Panel:
    """The last plays."""
    return listing(
        "The latest plays",
        "Plays that ended in the last 24 hours, whatever the board's time range, the newest first; the run's name opens it. Empty: "
        "none did.",
        of="dash",
        where=WHERE,
        show=shown(Time="Ended", probe=Override(), run=_TO_RUN)
        | shown("kind", "path", "operator", "rule", whole=TEXT, startup_delay_ms=TEXT)
        | shown("stalls", "stalled_s", "switches", "bitrate_bit_per_s", "goodput_bit_per_s")
        | shown(primary_share=Override(unit="share"), qoe_bit_per_s="Score"),
        newest_first=True,
        limit=200,
        time_from="24h",
        size=(24, 10),
    )


RUN = chosen("run")
BY = ("kind", "path")
OF_RUN = "$tag_kind from $tag_path"
ONLY = "Empty: the run was no play of DASH, or its records have not arrived."


def watched() -> Panel:
    """Whether the picture ran."""
    return state_timeline(
        "What the watcher saw",
        "Starting, playing, standing still for want of video, ended: told once a second and at each change. Rebuffering is where it "
        f"stands still. {ONLY}",
        series(select(last("state"), of="dash_playback", where=[RUN], by=BY, every=INTERVAL), OF_RUN),
        cadence="2s",
        size=(24, 4),
    )


def buffer() -> Panel:
    """Video in the buffer."""
    return time_series(
        "Video in the buffer",
        "What had come and was not yet shown, once a second; empty, the picture stands still. Coloured bands: poor, fair, good. "
        + ONLY,
        series(select("buffer_level_ms", of="dash_playback", where=[RUN], by=BY), OF_RUN),
        grades="areas",
        gap_ms=5000,
    )


def representation() -> Panel:
    """Which quality was chosen, beside the goodput that the choice had to live on."""
    return time_series(
        "Representation, and each segment's goodput",
        "Bitrate of the representation that was chosen, by the manifest, as steps from segment to segment; points: the goodput while "
        "the segment came. " + ONLY,
        series(select("bitrate_bit_per_s", of="dash_segment", where=[RUN], by=BY), "representation"),
        series(select("goodput_bit_per_s", of="dash_segment", where=[RUN], by=BY), "goodput of the segment"),
        style="steps",
        overrides={"goodput of the segment": Override(as_points=True)},
    )


def segments() -> Panel:
    """How long each segment took."""
    return time_series(
        "Time that each segment took",
        "From its request to its last byte; and how long the picture stood still meanwhile. A segment that takes longer than it lasts "
        "empties the buffer. " + ONLY,
        series(select("duration_ms", "stall_ms", of="dash_segment", where=[RUN], by=BY), "$col"),
        style="points",
    )


def share() -> Panel:
    """How much of each segment came over the primary path."""
    return time_series(
        "Share of the primary path in each segment",
        "Part of the bytes that came over the primary path while the segment came; of TCP always all. " + ONLY,
        series(select("primary_share", of="dash_segment", where=[RUN], by=BY), OF_RUN),
        style="points",
        override=Override(unit="share", low=0, high=1),
    )


def outcome() -> Panel:
    """What the play came to."""
    return listing(
        "What the play came to",
        "Startup delay, stalls, switches, mean bitrate and score of the play, once it has ended. Score: Yin et al. (SIGCOMM 2015) by "
        "segment: mean bitrate less switches, stalls and startup. " + ONLY,
        of="dash",
        where=[RUN],
        show=shown("kind", "path", "rule", whole=TEXT, startup_delay_ms=TEXT)
        | shown("stalls", "stalled_s", stall_ratio=Override(unit="share", cell="text"))
        | shown("switches", "bitrate_bit_per_s", qoe_bit_per_s="Score", primary_share=Override(unit="share"))
        | shown("segments", "bytes", "play_s", "content"),
        size=(24, 4),
    )
