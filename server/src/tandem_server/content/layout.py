"""Where things are in a presentation's folder, and its manifests. Pure: values in, text out.

6s-number.mpd  6s-time.mpd  6s-list.mpd  6s-base.mpd      the same segments, addressed in the four ways
6s/v0/init.mp4  6s/v0/00001.m4s …                         by number (number, list)
6s/v0/t0.m4s  6s/v0/t6000.m4s …                           by time (time)
6s/v0/all.mp4                                             initialization, index (sidx), all segments (base)
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal
from xml.sax.saxutils import quoteattr

from tandem_server.content.ladder import FRAMES_PER_S, Rung

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
