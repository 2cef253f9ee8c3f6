"""DASH presentations: what is built, where it is in a presentation's folder, its manifests, and building it, from a video file by ffmpeg or
from nothing but sizes.

6s-number.mpd  6s-time.mpd  6s-list.mpd  6s-base.mpd      the same segments, addressed in the four ways
6s/v0/init.mp4  6s/v0/00001.m4s …                         by number (number, list)
6s/v0/t0.m4s  6s/v0/t6000.m4s …                           by time (time)
6s/v0/all.mp4                                             initialization, index (sidx), all segments (base)
"""

from __future__ import annotations

import math
import random
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import quoteattr

from tandem_server.content.library import write_index

FRAMES_PER_S = 24
SEGMENTS_S = (1, 6, 15)
DURATION_S = 600


@dataclass(frozen=True, slots=True)
class Rung:
    """One representation. ``id`` is its folder's name too."""

    id: str
    bit_per_s: int
    width: int
    height: int

    @property
    def codecs(self) -> str:
        """H.264 High at the level that its size needs at 24 frames a second (ITU-T H.264, table A-1)."""
        levels = ((240, "0d"), (360, "1e"), (480, "1e"), (720, "1f"), (1080, "28"), (1440, "32"))
        return "avc1.6400" + next((level for height, level in levels if self.height <= height), "33")


LADDER = (
    Rung("v0", 50_000, 426, 240),
    Rung("v1", 150_000, 426, 240),
    Rung("v2", 400_000, 640, 360),
    Rung("v3", 800_000, 854, 480),
    Rung("v4", 1_500_000, 1280, 720),
    Rung("v5", 3_000_000, 1920, 1080),
    Rung("v6", 5_000_000, 1920, 1080),
    Rung("v7", 8_000_000, 2560, 1440),
    Rung("v8", 15_000_000, 3840, 2160),
)
"""By rising bitrate."""


Kind = Literal["number", "time", "list", "base"]
KINDS: tuple[Kind, ...] = ("number", "time", "list", "base")
INIT = "init.mp4"
ALL = "all.mp4"


@dataclass(frozen=True, slots=True)
class Track:
    """One representation cut into segments. ``durations`` in units of 1/``timescale`` s; ``sizes`` in bytes, as many."""

    rung: Rung
    timescale: int
    durations: tuple[int, ...]
    sizes: tuple[int, ...]
    init_bytes: int

    @property
    def times(self) -> list[int]:
        """When each segment begins."""
        begun, times = 0, []
        for duration in self.durations:
            times.append(begun)
            begun += duration
        return times

    @property
    def seconds(self) -> float:
        """How long it is."""
        return sum(self.durations) / self.timescale

    @property
    def index(self) -> bytes:
        """The sidx that stands behind the initialization in ``ALL``."""
        return _sidx(self.timescale, self.durations, self.sizes)


def folder(segment_s: int, rung: Rung) -> str:
    """Where the segments of one length and representation are, with the slash."""
    return f"{segment_s}s/{rung.id}/"


def by_number(number: int) -> str:
    """The name of segment ``number``, from 1."""
    return f"{number:05d}.m4s"


def by_time(time: int) -> str:
    """The name of the segment that begins at ``time``."""
    return f"t{time}.m4s"


def manifest_name(segment_s: int, kind: Kind) -> str:
    """The name of a manifest."""
    return f"{segment_s}s-{kind}.mpd"


def _sidx(timescale: int, durations: Sequence[int], sizes: Sequence[int]) -> bytes:
    """ISO/IEC 14496-12, 8.16.3, version 0: every reference to media that begins with a stream access point of type 1."""
    rows = b"".join(
        struct.pack(">III", size, duration, 0x9000_0000) for size, duration in zip(sizes, durations, strict=True)
    )
    body = struct.pack(">IIIII2xH", 0, 1, timescale, 0, 0, len(sizes)) + rows
    return struct.pack(">I4s", 8 + len(body), b"sidx") + body


def manifest(kind: Kind, segment_s: int, tracks: Sequence[Track]) -> str:
    """The MPD. Its tracks have one timescale and are cut alike, as an adaptation set that can be switched in must be."""
    first = tracks[0]
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"'
        f' profiles="urn:mpeg:dash:profile:{"isoff-on-demand" if kind == "base" else "full"}:2011"'
        f' minBufferTime="PT{segment_s}S" mediaPresentationDuration="PT{first.seconds:.3f}S">',
        ' <Period id="1" start="PT0S">',
        f'  <AdaptationSet contentType="video" mimeType="video/mp4" frameRate="{FRAMES_PER_S}"'
        ' segmentAlignment="true" startWithSAP="1">',
        *_shared(kind, segment_s, first),
    ]
    for track in tracks:
        rung = track.rung
        lines.append(
            f"   <Representation id={quoteattr(rung.id)} bandwidth={quoteattr(str(rung.bit_per_s))}"
            f' width="{rung.width}" height="{rung.height}" codecs="{rung.codecs}">'
        )
        lines += _own(kind, segment_s, track)
        lines.append("   </Representation>")
    return "\n".join([*lines, "  </AdaptationSet>", " </Period>", "</MPD>", ""])


def _shared(kind: Kind, segment_s: int, track: Track) -> list[str]:
    """What the adaptation set says for all."""
    if kind not in ("number", "time"):
        return []
    name = "$Number%05d$" if kind == "number" else "t$Time$"
    start = (
        f'   <SegmentTemplate timescale="{track.timescale}" initialization="{segment_s}s/$RepresentationID$/{INIT}"'
        f' media="{segment_s}s/$RepresentationID$/{name}.m4s"'
    )
    if kind == "number" and _regular(track):
        return [start + f' startNumber="1" duration="{track.durations[0]}"/>']
    return [start + ">", *_timeline(track), "   </SegmentTemplate>"]


def _regular(track: Track) -> bool:
    """Whether all segments but the last, which may be shorter, are equally long."""
    first = track.durations[0]
    return all(d == first for d in track.durations[:-1]) and track.durations[-1] <= first


def _timeline(track: Track) -> list[str]:
    rows, time = [], 0
    for duration, group in groupby(track.durations):
        count = len(list(group))
        repeats = f' r="{count - 1}"' if count > 1 else ""
        rows.append(f'     <S t="{time}" d="{duration}"{repeats}/>')
        time += duration * count
    return ["    <SegmentTimeline>", *rows, "    </SegmentTimeline>"]


def _own(kind: Kind, segment_s: int, track: Track) -> list[str]:
    """What a representation says for itself."""
    place = folder(segment_s, track.rung)
    if kind == "list":
        urls = [f'     <SegmentURL media="{by_number(number)}"/>' for number in range(1, len(track.sizes) + 1)]
        return [
            f"    <BaseURL>{place}</BaseURL>",
            f'    <SegmentList timescale="{track.timescale}">',
            f'     <Initialization sourceURL="{INIT}"/>',
            *_timeline(track),
            *urls,
            "    </SegmentList>",
        ]
    if kind == "base":
        end = track.init_bytes + len(track.index) - 1
        return [
            f"    <BaseURL>{place}{ALL}</BaseURL>",
            f'    <SegmentBase timescale="{track.timescale}" indexRange="{track.init_bytes}-{end}">',
            f'     <Initialization range="0-{track.init_bytes - 1}"/>',
            "    </SegmentBase>",
        ]
    return []


_TIMESCALE = re.compile(r'timescale="([0-9]+)"')
_ROW = re.compile(r'<S(?: t="([0-9]+)")? d="([0-9]+)"(?: r="([0-9]+)")?')


class EncodeError(RuntimeError):
    """ffmpeg failed, or made what was not wanted; one line."""


def find_ffmpeg() -> str | None:
    """Where ffmpeg is; None when it is not installed."""
    return shutil.which("ffmpeg")


def build_encoded(
    ffmpeg: str,
    video: Path,
    into: Path,
    seconds: int,
    segments_s: Sequence[int],
    ladder: Sequence[Rung] = LADDER,
    said: Callable[[str], None] = lambda _: None,
) -> None:
    """Fill the folder ``into``, which exists, from the first ``seconds`` of ``video``. EncodeError, OSError."""
    with tempfile.TemporaryDirectory(dir=into) as name:
        encoded = {rung: Path(name) / f"{rung.id}.mp4" for rung in ladder}
        for rung, file in encoded.items():
            said(f"encoding {rung.height}p at {rung.bit_per_s / 1000:g} kbit/s")
            _run(_encoding(ffmpeg, video, seconds, rung, file))
        for segment_s in segments_s:
            said(f"cutting into segments of {segment_s} s")
            tracks = [_cut(ffmpeg, file, into, segment_s, rung, Path(name)) for rung, file in encoded.items()]
            if len({(t.timescale, t.durations) for t in tracks}) > 1:
                raise EncodeError(
                    f"{video}: representations are not cut alike; hint: re-encode it with a constant frame rate"
                )
            for kind in KINDS:
                (into / manifest_name(segment_s, kind)).write_text(manifest(kind, segment_s, tracks), encoding="utf-8")


def _encoding(ffmpeg: str, video: Path, seconds: int, rung: Rung, into: Path) -> list[str]:
    rate, fps = rung.bit_per_s, str(FRAMES_PER_S)
    size = f"scale={rung.width}:{rung.height}:force_original_aspect_ratio=decrease,pad={rung.width}:{rung.height}:-1:-1"
    return [
        ffmpeg, "-nostdin", "-v", "error", "-y", "-i", str(video), "-t", str(seconds), "-an", "-sn",
        "-vf", f"{size},setsar=1", "-r", fps, "-c:v", "libx264", "-preset", "veryfast", "-pix_fmt", "yuv420p", "-profile:v", "high",
        "-b:v", str(rate), "-maxrate", str(rate * 3 // 2), "-bufsize", str(rate * 2),
        "-g", fps, "-keyint_min", fps, "-sc_threshold", "0", str(into),
    ]  # fmt: skip


def _cut(ffmpeg: str, file: Path, into: Path, segment_s: int, rung: Rung, scratch: Path) -> Track:
    place = into / folder(segment_s, rung)
    place.mkdir(parents=True, exist_ok=True)
    made = place / "made.mpd"
    _run([
        ffmpeg, "-nostdin", "-v", "error", "-y", "-i", str(file.resolve()), "-c", "copy", "-f", "dash", "-seg_duration", str(segment_s),
        "-use_template", "1", "-use_timeline", "1", "-init_seg_name", INIT, "-media_seg_name", "$Number%05d$.m4s", str(made.resolve()),
    ])  # fmt: skip
    text = made.read_text(encoding="utf-8")
    made.unlink()
    timescale, durations = _timeline_of(text, file)
    segments = [place / by_number(number) for number in range(1, len(durations) + 1)]
    init = (place / INIT).read_bytes()
    track = Track(rung, timescale, durations, tuple(s.stat().st_size for s in segments), len(init))
    for segment, time in zip(segments, track.times, strict=True):
        named = place / by_time(time)
        named.unlink(missing_ok=True)
        named.hardlink_to(segment)
    whole = scratch / ALL
    with whole.open("wb") as out:
        out.write(init + track.index)
        for segment in segments:
            with segment.open("rb") as piece:
                shutil.copyfileobj(piece, out)
    whole.replace(place / ALL)
    return track


def _timeline_of(text: str, file: Path) -> tuple[int, tuple[int, ...]]:
    """Timescale and durations from the manifest that ffmpeg wrote."""
    scale = _TIMESCALE.search(text)
    rows = _ROW.findall(text)
    if scale is None or not rows:
        raise EncodeError(f"{file.name}: ffmpeg's manifest has no timeline; hint: ffmpeg 4 or newer")
    return int(scale[1]), tuple(int(d) for _, d, r in rows for _ in range(int(r or 0) + 1))


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        words = " ".join((done.stderr.strip().splitlines() or ["it said nothing"])[-1].split())
        raise EncodeError(f"ffmpeg ended with status {done.returncode}: {words[:300]}")


TIMESCALE = 1000
INIT_BYTES = 800
_MEMORY = 0.9
_SPREAD = 0.35
"""Of the logarithm of a second's bits: a scene of twice the mean's bits is 2 spreads away, and scenes last some ten seconds."""


def complexity(seconds: int, seed: int) -> list[float]:
    """How many bits each second takes, 1 on average: a first-order autoregressive walk of the logarithm, the same for every bitrate and
    segment length, so that all are of one 'film'."""
    chance = random.Random(seed)
    level, levels = chance.gauss(0, _SPREAD), []
    for _ in range(seconds):
        levels.append(math.exp(level))
        level = _MEMORY * level + math.sqrt(1 - _MEMORY**2) * chance.gauss(0, _SPREAD)
    mean = sum(levels) / len(levels)
    return [value / mean for value in levels]


def track(rung: Rung, segment_s: int, weights: Sequence[float]) -> Track:
    """``rung`` cut into segments of ``segment_s``; ``weights``: of each second."""
    pieces = [weights[start : start + segment_s] for start in range(0, len(weights), segment_s)]
    return Track(
        rung,
        TIMESCALE,
        tuple(len(piece) * TIMESCALE for piece in pieces),
        tuple(max(1, round(sum(piece) * rung.bit_per_s / 8)) for piece in pieces),
        INIT_BYTES,
    )


def build_synthetic(
    into: Path, seconds: int, segments_s: Sequence[int], seed: int, ladder: Sequence[Rung] = LADDER
) -> None:
    """Fill the folder ``into``, which exists. OSError."""
    weights = complexity(seconds, seed)
    files: dict[str, tuple[int, bytes]] = {}
    for segment_s in segments_s:
        tracks = [track(rung, segment_s, weights) for rung in ladder]
        for one in tracks:
            place = folder(segment_s, one.rung)
            files[place + INIT] = (INIT_BYTES, b"")
            for number, (time, size) in enumerate(zip(one.times, one.sizes, strict=True), 1):
                files[place + by_number(number)] = files[place + by_time(time)] = (size, b"")
            head = random.Random(seed).randbytes(INIT_BYTES) + one.index
            files[place + ALL] = (len(head) + sum(one.sizes), head)
        for kind in KINDS:
            (into / manifest_name(segment_s, kind)).write_text(manifest(kind, segment_s, tracks), encoding="utf-8")
    write_index(into, files)
