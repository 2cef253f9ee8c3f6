"""What a play comes to: the result's figures."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from tandem.experiment.dash.link import Link
from tandem.experiment.dash.play import Play
from tandem.experiment.dash.qoe import linear, p1203
from tandem.experiment.dash.request import Request
from tandem.experiment.parameters import Parameter
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, SENDER, bytes_by_path

RESULTS = (
    *FIGURES,
    Parameter("player", "object", "who played: own with its rule, or VLC with version and logic"),
    Parameter("connect_ms", "float", "establishment of the first connection", "ms"),
    Parameter("tls_ms", "float", "TLS's handshake on it; null without TLS", "ms"),
    Parameter("reconnects", "int", "connections after the first", "1"),
    Parameter("fallback", "bool", "Multipath TCP that fell back to TCP, in any of the connections"),
    Parameter("first_byte_ms", "float", "of the first segment, from its request on", "ms"),
    Parameter("startup_delay_ms", "float", "from the request of the manifest to the beginning of playback", "ms"),
    Parameter("media_s", "float", "video that came", "s"),
    Parameter("play_s", "float", "from the request of the manifest to the end of playback, or to where it was given up", "s"),
    Parameter("stalls", "int", "how often playback stood still after its beginning", "1"),
    Parameter("stalled_s", "float", "for how long in all", "s"),
    Parameter("stall_ratio", "float", "of the time since playback began", "1"),
    Parameter("rebuffering", "list", "each stall: start_s since the manifest's request, duration_s, media_s"),
    Parameter("switches", "int", "changes of representation from one segment to the next", "1"),
    Parameter("switches_per_minute", "float", "by minute of video that came", "1/min"),
    Parameter("bitrate_bit_per_s", "float", "mean of the representations' bitrates over the video", "bit/s"),
    Parameter("media_bit_per_s", "float", "bits of segments by second of video", "bit/s"),
    Parameter("qoe_linear", "float", "linear score of Yin et al., balanced weights", "kbit/s"),
    Parameter("qoe_linear_per_segment", "float", "the same by segment", "kbit/s"),
    Parameter("segments", "list", "the log, a row a segment"),
    Parameter("p1203", "object", "input of ITU-T P.1203"),
    Parameter("subflows", "list", "each path: bytes over all connections, share"),
    SENDER,
    BYTES_BY_PATH,
)  # fmt: skip


def result(
    request: Request, play: Play, player: dict[str, Any], link: Link, sender: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The figures; None when no segment came. What was never reached (the beginning of playback) is None."""
    if not play.log:
        return None
    playback = play.playback
    size = sum(one.size_bytes for one in play.shown)
    loading_s = sum(row["duration_ms"] for row in play.log) / 1000
    media_s = sum(one.duration_s for one in play.shown)
    bitrates = [one.representation.bandwidth_bit_per_s for one in play.shown]
    ids = [one.representation.id for one in play.shown]
    switches = sum(before != after for before, after in pairwise(ids))
    ended_s = playback.ended_s if playback.ended_s is not None else playback.now_s
    since_start_s = None if playback.started_s is None else ended_s - playback.started_s
    startup_s = playback.started_s if playback.started_s is not None else ended_s
    score = linear(bitrates, playback.stalled_s, startup_s)
    totals = [total for series in link.series for total in series.ordered()]
    carried: dict[str | None, int] = {}
    for total in totals:
        carried[total.name.path] = carried.get(total.name.path, 0) + total.bytes
    whole = sum(carried.values())
    return {
        "bytes": size,
        "duration_s": loading_s,
        "goodput_bit_per_s": size * 8 / loading_s if loading_s > 0 else 0.0,
        "player": player,
        "connect_ms": link.connect_ms,
        "tls_ms": link.tls_ms,
        "reconnects": max(0, link.connects - 1),
        "fallback": request.kind == "mptcp" and any(series.fallback for series in link.series),
        "first_byte_ms": play.first_byte_ms,
        "startup_delay_ms": None if playback.started_s is None else playback.started_s * 1000,
        "media_s": media_s,
        "play_s": ended_s,
        "stalls": len(playback.stalls),
        "stalled_s": playback.stalled_s,
        "stall_ratio": playback.stalled_s / since_start_s if since_start_s else None,
        "rebuffering": [
            {"start_s": stall.start_s, "duration_s": stall.duration_s, "media_s": stall.media_s}
            for stall in playback.stalls
        ],
        "switches": switches,
        "switches_per_minute": switches * 60 / media_s,
        "bitrate_bit_per_s": sum(b * one.duration_s for b, one in zip(bitrates, play.shown, strict=True)) / media_s,
        "media_bit_per_s": size * 8 / media_s,
        "qoe_linear": score,
        "qoe_linear_per_segment": None if score is None else score / len(bitrates),
        "segments": play.log,
        "p1203": p1203(play.shown, playback.stalls, playback.started_s),
        "subflows": [
            {"path": path, "bytes": count, "share": count / whole if whole else 0.0} for path, count in carried.items()
        ],
        "sender": sender,
        "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
    }
