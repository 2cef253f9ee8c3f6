"""The play as an experiment: its parameters, whoami, session, play over one kept connection, the sender's side, and the figures: an open
score, and the input of ITU-T P.1203 for those who have its software.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any

from tandem.experiment.base import (
    STOPPED,
    MissingRequirementError,
    Outcome,
    Output,
    Span,
    Stop,
    StoppedError,
    phase,
    record,
)
from tandem.experiment.control import Control, ControlError, whoami
from tandem.experiment.dash import vlc
from tandem.experiment.dash.abr import CUSHION, RESERVOIR
from tandem.experiment.dash.connection import FetchError, Link
from tandem.experiment.dash.mpd_xml import MpdError
from tandem.experiment.dash.play import Play, PlaybackRecords, Player, Request, Shown, Stall, play_fields
from tandem.experiment.dash.vlc import VlcPlayer
from tandem.experiment.parameters import Parameter, ParameterError, parameters_of, read_request
from tandem.experiment.results import BYTES_BY_PATH, FIGURES, SENDER, bytes_by_path, environment, path_rows
from tandem.mptcp import sockets
from tandem.schema.manifest import PLAIN_NAME, Failure


def read(parameters: dict[str, Any]) -> Request:
    """From parameters that are checked one by one to a request; ParameterError when they contradict each other."""
    p = parameters
    for name in ("content", "mpd"):
        if not PLAIN_NAME.match(p[name]):
            why = "is not a name of letters, digits, '.', '_', '-'"
            raise ParameterError(f"parameter {name!r}: {p[name][:40]!r} {why}")
    most_s = p["buffer_max_s"]
    for name in ("startup_buffer_s", "resume_buffer_s"):
        if p[name] > most_s:
            raise ParameterError(f"parameter {name!r}: {p[name]:g} s is above buffer_max_s, {most_s:g} s")
    reservoir_s = RESERVOIR * most_s if p["bba_reservoir_s"] is None else p["bba_reservoir_s"]
    cushion_s = CUSHION * most_s if p["bba_cushion_s"] is None else p["bba_cushion_s"]
    if reservoir_s + cushion_s > most_s:
        raise ParameterError("parameters 'bba_reservoir_s' and 'bba_cushion_s': together above buffer_max_s")
    return read_request(Request, p, bba_reservoir_s=reservoir_s, bba_cushion_s=cushion_s)


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
        "rebuffering": [asdict(stall) for stall in playback.stalls],
        "switches": switches,
        "switches_per_minute": switches * 60 / media_s,
        "bitrate_bit_per_s": sum(b * one.duration_s for b, one in zip(bitrates, play.shown, strict=True)) / media_s,
        "media_bit_per_s": size * 8 / media_s,
        "qoe_linear": score,
        "qoe_linear_per_segment": None if score is None else score / len(bitrates),
        "segments": play.log,
        "p1203": p1203(play.shown, playback.stalls, playback.started_s),
        "subflows": path_rows(totals),
        "sender": sender,
        "bytes_by_path": bytes_by_path((t.name.path, t.bytes, t.bytes_sent) for t in totals),
    }


LAMBDA, MU_PER_S, MU_STARTUP_PER_S = 1.0, 3000.0, 3000.0
"""The "balanced" weights of the linear score."""


def linear(bitrates: Sequence[float], stalled_s: float, startup_s: float) -> float | None:
    """The score of Yin, Jindal, Sekar, Sinopoli ("A control-theoretic approach for dynamic adaptive video streaming over HTTP", SIGCOMM
    2015, eq. 5) with q(R) = R in kbit/s: Σ R_k − λ Σ |R_{k+1} − R_k| − μ Σ stalls − μ_s startup. ``bitrates``: of each segment in bit/s by
    the MPD; None without a segment. Sums grow with the number of segments: compare plays of the same segments, or per segment."""
    if not bitrates:
        return None
    rates = [bitrate / 1000 for bitrate in bitrates]
    changes = sum(abs(after - before) for before, after in pairwise(rates))
    return sum(rates) - LAMBDA * changes - MU_PER_S * stalled_s - MU_STARTUP_PER_S * startup_s


_CODECS = {"avc1": "h264", "avc3": "h264", "hvc1": "h265", "hev1": "h265", "vp09": "vp9", "av01": "av1"}


def p1203(shown: Sequence[Shown], stalls: Sequence[Stall], startup_s: float | None) -> dict[str, Any]:
    """The input of P.1203 in the JSON form that the open implementation reads: bitrates in kbit/s (of the bytes that came), times in
    seconds of the video, the startup as a stall at 0. What the MPD does not say (codec, size, frame rate) is left out; no audio."""
    segments = []
    for one in shown:
        r = one.representation
        known = {
            "codec": _CODECS.get((r.codecs or "").partition(".")[0].lower()),
            "resolution": f"{r.width}x{r.height}" if r.width and r.height else None,
            "fps": r.frame_rate,
        }
        segments.append(
            {
                "bitrate": one.size_bytes * 8 / one.duration_s / 1000,
                "duration": one.duration_s,
                "start": one.media_s,
                **{key: value for key, value in known.items() if value is not None},
            }
        )
    stalling = [[0.0, startup_s]] if startup_s is not None else []
    stalling += [[stall.media_s, stall.duration_s] for stall in stalls]
    return {
        "I11": {"streamId": 1, "segments": []},
        "I13": {"streamId": 1, "segments": segments},
        "I23": {"streamId": 1, "stalling": stalling},
        "IGen": {"device": "pc", "displaySize": "3840x2160", "viewingDistance": "150cm"},
    }


class Dash:
    """Plays a stored DASH presentation without showing it: adaptation, an emulated buffer, a log of every segment."""

    name = "dash"
    version = 1
    parameters: tuple[Parameter, ...] = parameters_of(Request)
    results: tuple[Parameter, ...] = RESULTS
    phases: tuple[tuple[str, str], ...] = (("play", "one play of the presentation, over one arm (kind and path)"),)

    def run(self, parameters: dict[str, Any], output: Output, stop: Stop) -> Outcome:
        request = read(parameters)
        requested = request.player
        if requested == "auto":
            request = replace(request, player="vlc" if vlc.there() else "own")
        if request.player == "vlc":
            vlc.command()  # before a session is opened for nothing
        span = Span(request.deadline_s, stop)
        further: dict[str, Any] = {
            "public_addresses": {},
            "control_path": None,
            "player": {"asked": requested, "name": request.player},
        }
        try:
            control = Control(request)
            with stop.interruptible():
                further["public_addresses"] = whoami(request, request.carrying)
                wanted: dict[str, Any] = {"bytes": None, "seconds": None, **request.options.there(sends=True)}
                session = control.open(request.kind, further["public_addresses"], **wanted)
        except ControlError as error:
            return Outcome(None, error.failure, environment(request), further)
        except StoppedError:
            return Outcome(None, STOPPED, environment(request), further)
        further["control_path"] = session.path
        link = Link(request, session, span.deadline_ns, output, stop)
        phase(output, "play", 1, 1)
        try:
            vlc_plays = request.player == "vlc"
            player = VlcPlayer(request, link, output) if vlc_plays else Player(request, link, output, stop)
            failure = _played(player, link, output)
        except sockets.UnsupportedError as error:
            raise MissingRequirementError(str(error)) from error
        finally:
            sender = control.leave(session, stop)
        if sender is not None and not player.play.log:
            further["sender"] = sender
        measured = result(request, player.play, player.player, link, sender)
        rule = f"vlc-{request.vlc_logic}" if request.player == "vlc" else request.abr
        fields = play_fields(measured, player.play, whole=failure is None, content=f"{request.content}/{request.mpd}")
        record(output, "dash", fields, kind=request.kind, path=request.primary.name, rule=rule)
        settings = {**link.environment, **request.options.to_dict(), "sample_hz": request.sample_hz}
        return Outcome(measured, failure, settings, further)


def _played(player: Player | VlcPlayer, link: Link, output: Output) -> Failure | None:
    """Play to the end; why it was not reached."""
    with PlaybackRecords(output, player.play, player.glimpse), link:
        try:
            player.run()
        except MpdError as error:
            return Failure(reason=f"MPD: {error}", retry=False)
        except FetchError as error:
            return Failure(reason=str(error), retry=error.retry)
        except StoppedError:
            return STOPPED
        finally:
            if isinstance(player, Player):  # VLC's account is closed when VLC has ended
                player.play.playback.give_up(player.play.now())
    return None


EXPERIMENT = Dash()
