"""One quantity's limits between good, fair and poor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tandem.schema.grades.tones import Tone


@dataclass(frozen=True, slots=True)
class Scale:
    """``good``: the limit between good and fair, ``fair``: between fair and poor, in the field's unit; ``good`` above ``fair`` where
    more is better, else below. ``source``: who says so. A value at a limit belongs to what is above it, in both directions, as in
    Grafana's thresholds."""

    good: float
    fair: float
    source: str

    @property
    def more_is_better(self) -> bool:
        """Whether high values are the good ones."""
        return self.good > self.fair

    @property
    def steps(self) -> tuple[tuple[float | None, Tone], ...]:
        """From the lowest up: from which value on which tone; None stands for everything below the first limit."""
        if self.more_is_better:
            return (None, "poor"), (self.fair, "fair"), (self.good, "good")
        return (None, "good"), (self.good, "fair"), (self.fair, "poor")

    def tone(self, value: Any) -> Tone:  # noqa: ANN401 a JSON value
        """Of ``value``; ``quiet`` for what is no number."""
        if isinstance(value, bool) or not isinstance(value, int | float) or value != value:
            return "quiet"
        found: Tone = self.steps[0][1]
        for limit, tone in self.steps[1:]:
            if limit is not None and value >= limit:
                found = tone
        return found
