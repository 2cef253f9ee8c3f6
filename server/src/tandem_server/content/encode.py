"""A presentation from a video file, by ffmpeg: encoded once with a key frame each second, then cut anew for every segment length."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from tandem_server.content.ladder import FRAMES_PER_S, LADDER, Rung
from tandem_server.content.layout import ALL, INIT, KINDS, Track, by_number, by_time, folder, manifest, manifest_name

_TIMESCALE = re.compile(r'timescale="([0-9]+)"')
_ROW = re.compile(r'<S(?: t="([0-9]+)")? d="([0-9]+)"(?: r="([0-9]+)")?')


class EncodeError(RuntimeError):
    """ffmpeg failed, or made what was not wanted; one line."""


def find_ffmpeg() -> str | None:
    """Where ffmpeg is; None when it is not installed."""
    return shutil.which("ffmpeg")


def build(
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
    timescale, durations = _timeline(text, file)
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


def _timeline(text: str, file: Path) -> tuple[int, tuple[int, ...]]:
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
