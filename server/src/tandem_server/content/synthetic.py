"""A presentation without a video: manifests that are right, segments of random bytes whose sizes vary as an encoder's do."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

from tandem_server.content.ladder import LADDER, Rung
from tandem_server.content.layout import (
    ALL,
    INIT,
    KINDS,
    Track,
    by_number,
    by_time,
    folder,
    manifest,
    manifest_name,
)
from tandem_server.content.library import write_index

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


def build(into: Path, seconds: int, segments_s: Sequence[int], seed: int, ladder: Sequence[Rung] = LADDER) -> None:
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
