"""The representations that are built: 50 kbit/s at 240p to 15 Mbit/s at 4K, as the dual-LTE paper's (Mohan et al., §5.1)."""

from __future__ import annotations

from dataclasses import dataclass

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
