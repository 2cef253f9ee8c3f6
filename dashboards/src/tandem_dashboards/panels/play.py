"""One play of DASH, within a run: what its watcher saw, and each segment."""

from __future__ import annotations

from tandem_dashboards.conditions import chosen
from tandem_dashboards.expressions import last, tag
from tandem_dashboards.influxql import INTERVAL, select
from tandem_dashboards.kinds import state_timeline, table, time_series
from tandem_dashboards.look import Look
from tandem_dashboards.panel import Panel
from tandem_dashboards.target import series

RUN = chosen("run")
BY = ("kind", "path")
NAMED = "$tag_kind from $tag_path"
ONLY = "Empty: the run was no play of DASH, or its records have not arrived."


def watched(width: int = 24) -> Panel:
    """Whether the picture ran."""
    asked = select(last("state"), of="dash_playback", where=[RUN], by=BY, every=INTERVAL)
    return state_timeline(
        "What the watcher saw",
        "Starting, playing, standing still for want of video, ended: told once a second and at each change. Rebuffering is where it "
        f"stands still. {ONLY}",
        series(asked, NAMED),
        cadence="2s",
        width=width,
        height=4,
    )


def buffer(width: int = 12) -> Panel:
    """Video in the buffer."""
    return time_series(
        "Video in the buffer",
        "What had come and was not yet shown, once a second; empty, the picture stands still. Coloured bands: poor, fair, good. "
        + ONLY,
        series(select("buffer_level_ms", of="dash_playback", where=[RUN], by=BY), NAMED),
        grades="areas",
        gap_ms=5000,
        width=width,
    )


def representation(width: int = 12) -> Panel:
    """Which quality was chosen, beside the goodput that the choice had to live on."""
    chosen_rate = select("bitrate_bit_per_s", of="dash_segment", where=[RUN], by=BY)
    goodput = select("goodput_bit_per_s", of="dash_segment", where=[RUN], by=BY)
    return time_series(
        "Representation, and each segment's goodput",
        "Bitrate of the representation that was chosen, by the manifest, as steps from segment to segment; points: the goodput while "
        "the segment came. " + ONLY,
        series(chosen_rate, "representation"),
        series(goodput, "goodput of the segment"),
        style="steps",
        looks={"goodput of the segment": Look(as_points=True)},
        width=width,
    )


def segments(width: int = 12) -> Panel:
    """How long each segment took."""
    asked = select("duration_ms", "stall_ms", of="dash_segment", where=[RUN], by=BY)
    return time_series(
        "Time that each segment took",
        "From its request to its last byte; and how long the picture stood still meanwhile. A segment that takes longer than it "
        "lasts empties the buffer. " + ONLY,
        series(asked, "$col"),
        style="points",
        width=width,
    )


def share(width: int = 12) -> Panel:
    """How much of each segment came over the primary path."""
    return time_series(
        "Share of the primary path in each segment",
        "Part of the bytes that came over the primary path while the segment came; of TCP always all. " + ONLY,
        series(select("primary_share", of="dash_segment", where=[RUN], by=BY), NAMED),
        style="points",
        look=Look(unit="share", low=0, high=1),
        width=width,
    )


def outcome(width: int = 24) -> Panel:
    """What the play came to."""
    names = (
        *("whole", "startup_delay_ms", "stalls", "stalled_s", "stall_ratio", "switches", "bitrate_bit_per_s"),
        *("qoe_bit_per_s", "primary_share", "segments", "bytes", "play_s", "content"),
    )
    asked = select(tag("kind"), tag("path"), tag("rule"), *names, of="dash", where=[RUN])
    return table(
        "What the play came to",
        "Startup delay, stalls, switches, mean bitrate and score of the play, once it has ended. Score: Yin et al. (SIGCOMM 2015) by "
        "segment: mean bitrate less switches, stalls and startup. " + ONLY,
        asked,
        show={
            **{name: Look() for name in ("kind", "path", "rule")},
            **{name: Look() for name in names},
            "whole": Look(cell="text"),
            "startup_delay_ms": Look(cell="text"),
            "stall_ratio": Look(unit="share", cell="text"),
            "primary_share": Look(unit="share"),
            "qoe_bit_per_s": Look(title="Score"),
        },
        width=width,
        height=4,
    )
