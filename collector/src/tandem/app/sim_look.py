"""What was found when a SIM was looked at, for the status object."""

from __future__ import annotations

from dataclasses import dataclass

from tandem.modem.sim import Card


@dataclass(frozen=True, slots=True)
class SimLook:
    """``card`` None without ``failure``: this modem tells nothing of its SIM. ``at_ns``: CLOCK_MONOTONIC."""

    card: Card | None
    failure: str | None
    at_ns: int

    def told(self, now_ns: int) -> dict[str, str | bool | float | None]:
        """As collector/README.md has it."""
        state, named = (None, None) if self.card is None else (self.card.state, self.card.named)
        return {
            "state": state,
            "named": named,
            "failure": self.failure,
            "age_s": round((now_ns - self.at_ns) / 1e9, 1),
        }
