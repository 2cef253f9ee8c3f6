"""Plays of DASH: what watchers got, by Multipath TCP beside each path alone, over any time."""

from __future__ import annotations

from tandem.schema import grades
from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import Expression, last, least, tag, total
from tandem_dashboards.influxql import INTERVAL, Select, select
from tandem_dashboards.kinds import bar_gauge, histogram, table, time_series
from tandem_dashboards.links import cell, to_board
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.shown import Steps
from tandem_dashboards.target import series
from tandem_dashboards.vocabulary import ROLLED

WHERE = (chosen("probe"), chosen("campaign"), chosen("operator"))
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
WHOLE = (total("whole_true_count") / total("records")).in_unit("share").named("whole")
STARTUP = mean_of("startup_delay_ms", "ms")
STALLED = mean_of("stall_ratio", "share")
STALLS = (total("stalls") / total("records")).named("stalls")
SWITCHES = (total("switches") / total("media_s") * 60).named("switches")
BITRATE = mean_of("bitrate_bit_per_s", "bit/s")
GOODPUT = mean_of("goodput_bit_per_s", "bit/s")
SCORE = mean_of("qoe_bit_per_s", "bit/s")
FIGURES = (PLAYS, WHOLE, STARTUP, STALLED, STALLS, SWITCHES, BITRATE, GOODPUT, SCORE)
SHOWN = {
    "plays": Look(),
    "whole": Look(title="Played to the end", decimals=0),
    "startup_delay_ms": Look(title="Startup delay", cell="text", steps=graded("startup_delay_ms")),
    "stall_ratio": Look(title="Time stalled", cell="text", steps=graded("stall_ratio")),
    "stalls": Look(title="Stalls a play", decimals=2),
    "switches": Look(title="Switches a minute of video", decimals=1),
    "bitrate_bit_per_s": Look(title="Bitrate of the representations"),
    "goodput_bit_per_s": Look(title="Goodput"),
    "qoe_bit_per_s": Look(title="Score"),
}


def _arms(figure: Expression, *, every: str | None = None, of: str = "dash") -> Select:
    where = WHERE if of == "dash" else (chosen("probe"), chosen("operator"))
    return select(figure, of=of, where=where, by=ARM, every=every, policy=ROLLED)


def arms(width: int = 24) -> Panel:
    """Each arm's figures."""
    return table(
        "Arms side by side",
        f"{ARMS}Time stalled: part of the time since the picture began. Score: Yin et al. (SIGCOMM 2015) by segment: mean bitrate less "
        f"switches, stalls and startup. {ROLLED_SAYS}",
        select(*FIGURES, of="dash", where=WHERE, by=ARM, policy=ROLLED),
        show={"kind": Look(), "operator": Look(), **SHOWN},
        sort_by=("Operator", False),
        width=width,
        height=6,
    )


def rules(width: int = 24) -> Panel:
    """Each rule's figures."""
    return table(
        "Rules side by side",
        "The same by who chose the representations: the player's rule, or VLC's logic (vlc-…), for Multipath TCP and for TCP. Compare "
        f"rules only where they played the same content. {ROLLED_SAYS}",
        select(*FIGURES, of="dash", where=WHERE, by=("rule", "kind"), policy=ROLLED),
        show={"rule": Look(), "kind": Look(), **SHOWN},
        sort_by=("Rule", False),
        width=width,
        height=6,
    )


def _gauge(title: str, says: str, figure: Expression, look: Look, width: int) -> Panel:
    return bar_gauge(
        title, f"{says} {ARMS}{ROLLED_SAYS}", series(_arms(figure), NAMED), look=look, width=width, height=7
    )


def startup_by_arm(width: int = 8) -> Panel:
    """Startup delay of each arm."""
    says = "Mean time from the request of the manifest to the picture, of the plays whose picture began."
    return _gauge("Startup delay", says, STARTUP, Look(low=0, steps=graded("startup_delay_ms")), width)


def stalled_by_arm(width: int = 8) -> Panel:
    """Time stalled of each arm."""
    says = "Mean part of a play's time in which the picture stood still."
    return _gauge("Time stalled", says, STALLED, Look(low=0, steps=graded("stall_ratio")), width)


def bitrate_by_arm(width: int = 8) -> Panel:
    """Bitrate of each arm."""
    says = "Mean bitrate of the representations that were shown, by the manifest: the quality of the picture."
    return _gauge("Bitrate of the representations", says, BITRATE, Look(low=0), width)


def _over_time(title: str, says: str, figure: Expression, look: Look, width: int) -> Panel:
    return time_series(
        title,
        f"{says} A point for each stretch in which a play ended, for each arm. {ROLLED_SAYS}",
        series(_arms(figure, every=INTERVAL), NAMED),
        style="points",
        look=look,
        cadence="1m",
        width=width,
    )


def startup(width: int = 12) -> Panel:
    """Startup delay over time."""
    return _over_time("Startup delay over time", "Mean of each stretch.", STARTUP, Look(low=0), width)


def stalled(width: int = 12) -> Panel:
    """Rebuffering over time."""
    says = "Part of the time since the picture began in which it stood still for want of video, mean over plays."
    return _over_time("Rebuffering over time", says, STALLED, Look(low=0), width)


def bitrate(width: int = 12) -> Panel:
    """Representations over time."""
    says = "Bitrate by the manifest of the representations that were shown, mean over plays."
    return _over_time("Representations over time", says, BITRATE, Look(low=0), width)


def switches(width: int = 12) -> Panel:
    """Quality switches over time."""
    says = "Changes of representation by minute of video."
    return _over_time("Quality switches by minute of video, over time", says, SWITCHES, Look(low=0), width)


def score(width: int = 12) -> Panel:
    """Score over time."""
    says = "Score of Yin et al. (SIGCOMM 2015) by segment, mean over plays: mean bitrate less switches, stalls and startup."
    return _over_time("Score over time", says, SCORE, Look(), width)


def how_many(width: int = 12) -> Panel:
    """Plays over time."""
    return time_series(
        "Plays",
        f"How many plays ended in each stretch, by arm: what the other figures rest on. {ROLLED_SAYS}",
        series(_arms(PLAYS, every=INTERVAL), NAMED),
        style="bars",
        stacked=True,
        look=Look(low=0, decimals=0),
        cadence="1m",
        width=width,
    )


def lowest_buffer(width: int = 12) -> Panel:
    """How low the buffer was."""
    return time_series(
        "Lowest buffer",
        "The least video in the buffer after a segment, in each stretch and arm: near nought the picture is about to stand still. "
        f"Coloured bands: poor, fair, good. {ROLLED_SAYS}",
        series(_arms(least("buffer_level_ms_min"), every=INTERVAL, of="dash_segment"), NAMED),
        style="points",
        grades="areas",
        cadence="1m",
        width=width,
    )


def segment_time(width: int = 12) -> Panel:
    """How long segments took."""
    return time_series(
        "Time that segments took",
        f"Mean time from a segment's request to its last byte, in each stretch and arm. {ROLLED_SAYS}",
        series(_arms(mean_of("duration_ms", "ms"), every=INTERVAL, of="dash_segment"), NAMED),
        style="points",
        look=Look(low=0),
        cadence="1m",
        width=width,
    )


def now_playing(width: int = 12) -> Panel:
    """Plays that are on."""
    asked = select(
        *(last(name).named(name) for name in ("state", "buffer_level_ms", "played_s", "stalled_s")),
        of="dash_playback",
        where=[chosen("probe"), chosen("operator")],
        by=("probe", "run", "kind", "path"),
        recent="1m",
    )
    return table(
        "Playing now",
        "Plays that told of themselves in the last minute, as they stood then; the run's name opens it. Empty: nothing plays, or "
        "the probes that play are not heard.",
        asked,
        show={
            "probe": Look(),
            "run": Look(links=(to_board("tandem-run", "Run", probe=cell("probe"), run=cell("run")),)),
            "kind": Look(),
            "path": Look(),
            "state": Look(cell="colour"),
            "buffer_level_ms": Look(cell="text"),
            "played_s": Look(),
            "stalled_s": Look(),
        },
        width=width,
    )


def distribution(width: int = 12) -> Panel:
    """How startup delays are spread."""
    return histogram(
        "Startup delays of the last 24 hours",
        "How many plays had which startup delay, Multipath TCP beside TCP, whatever the board's time range. Empty: no play's picture began "
        "in the last 24 hours.",
        series(select("startup_delay_ms", of="dash", where=WHERE, by=["kind"]), "$tag_kind"),
        time_from="24h",
        width=width,
    )


def latest(width: int = 24) -> Panel:
    """The last plays."""
    names = (
        *("whole", "startup_delay_ms", "stalls", "stalled_s", "switches", "bitrate_bit_per_s", "goodput_bit_per_s"),
        *("primary_share", "qoe_bit_per_s"),
    )
    tags = ("probe", "run", "kind", "path", "operator", "rule")
    asked = select(*(tag(name) for name in tags), *names, of="dash", where=WHERE, newest_first=True, limit=200)
    return table(
        "The latest plays",
        "Plays that ended in the last 24 hours, whatever the board's time range, the newest first; the run's name opens it. Empty: none "
        "did.",
        asked,
        show={
            "Time": Look(title="Ended"),
            **{name: Look() for name in tags},
            "run": Look(links=(to_board("tandem-run", "Run", probe=cell("probe"), run=cell("run")),)),
            **{name: Look() for name in names},
            "whole": Look(cell="text"),
            "startup_delay_ms": Look(cell="text"),
            "primary_share": Look(unit="share"),
            "qoe_bit_per_s": Look(title="Score"),
        },
        time_from="24h",
        width=width,
        height=10,
    )
