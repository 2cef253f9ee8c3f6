"""The table ``[round_trip]`` of the configuration, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.schema.toml_keys import Key

KEYS: tuple[Key, ...] = (
    Key("enabled", "truth", "true or false: whether every path is asked all the time", default=False),
    Key("period_s", "number", "seconds from one instant to the next, 0.2 to 5", default=1.0, minimum=0.2, maximum=5),
)

QUESTION_BYTES = 2 * (20 + 8 + 72)
"""A question and its answer on the wire, headers of IPv4 and UDP counted; with IPv6 40 more."""
RECORD_BYTES = 44
"""A record on its way to the server: what it adds to a second's gzipped batch (tests/bench/bench_round_trips.py)."""


@dataclass(frozen=True, slots=True)
class RoundTripConfig:
    """``period_s``: between instants at which all paths are asked."""

    enabled: bool = False
    period_s: float = 1.0

    @property
    def day_bytes(self) -> int:
        """Of one path, both ways, while nothing pauses it."""
        return round(86_400 / self.period_s * QUESTION_BYTES)

    @property
    def records_day_bytes(self) -> int:
        """Of one path's records, over whichever path the uploads take."""
        return round(86_400 / self.period_s * RECORD_BYTES)
