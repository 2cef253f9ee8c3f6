"""What the play was worth: an open score, and the input of ITU-T P.1203 for those who have its software. Pure.

The score is the linear one of Yin, Jindal, Sekar, Sinopoli ("A control-theoretic approach for dynamic adaptive video streaming over
HTTP", SIGCOMM 2015, eq. 5) with its "balanced" weights and q(R) = R in kbit/s:

    Σ R_k − λ Σ |R_{k+1} − R_k| − μ Σ stalls − μ_s startup
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tandem.experiment.dash.model import Representation
from tandem.experiment.dash.playback import Stall

LAMBDA = 1.0
MU_PER_S = 3000.0
MU_STARTUP_PER_S = 3000.0


@dataclass(frozen=True, slots=True)
class Shown:
    """A segment that came: which, of how many bytes, at which second of the video, how long."""

    representation: Representation
    size_bytes: int
    media_s: float
    duration_s: float


def linear(bitrates: Sequence[float], stalled_s: float, startup_s: float) -> float | None:
    """The score in kbit/s, summed over segments; ``bitrates``: of each segment in bit/s by the MPD. None without a segment.
    Sums grow with the number of segments: compare plays of the same segments, or per segment."""
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
