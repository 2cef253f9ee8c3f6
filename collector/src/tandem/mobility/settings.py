"""The parameters of the detectors, each with its unit and its reason."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from tandem.mobility import fitted

QUANTITIES = ("rsrp_dbm", "rssi_dbm")
"""What a change may be measured in. Mohan et al. say "signal strength (dBm)" and not which; RSRP is the default."""


DETECTORS = ("published", "fused")
"""Who judges movement; ``fused`` has settings of its own."""


@dataclass(frozen=True)
class Settings:
    """Mohan et al. (section 3.2): a change of 6 dB or more between two successive polls, one second apart, on either modem.

    ``threshold_db`` above 0; ``stop_after_s`` above 0: mobility ends so long after the last such change (ours: the paper does
    not say when it ends); ``period_s``: the polls' period; ``successive_periods``: polls further apart than so many periods
    are no successive polls, so that two seconds (one poll missed) still count and three do not; ``cell_memory_s``: after so
    long without a cell the next one is no handover; ``lost_after_polls``: failed polls in a row that make a modem lost;
    ``detector``: one of ``DETECTORS``.
    ValueError names a value that cannot be.
    """

    quantity: str = "rsrp_dbm"
    threshold_db: float = 6.0
    stop_after_s: float = 10.0
    period_s: float = 1.0
    successive_periods: float = 2.5
    cell_memory_s: float = 120.0
    lost_after_polls: int = 3
    detector: str = "published"

    def __post_init__(self) -> None:
        if self.quantity not in QUANTITIES:
            raise ValueError(f"quantity {self.quantity!r} is none of {', '.join(QUANTITIES)}")
        if self.detector not in DETECTORS:
            raise ValueError(f"detector {self.detector!r} is none of {', '.join(DETECTORS)}")
        for name in (
            "threshold_db",
            "stop_after_s",
            "period_s",
            "successive_periods",
            "cell_memory_s",
            "lost_after_polls",
        ):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, not {getattr(self, name)}")

    @property
    def successive_ns(self) -> int:
        """The longest time between successive polls."""
        return round(self.successive_periods * self.period_s * 1e9)

    @property
    def settle_ns(self) -> int:
        """How long a record of the other modem may come late: a poll's record follows at most one period after it began."""
        return round(self.period_s * 1e9)


# ---------------------------------------------------------------------------------------------------------------------
# The parameters of the fused detector, each with its unit and its reason.


@dataclass(frozen=True)
class FusedSettings:
    """Evidence of movement is kept in seconds: 1 is what one second of one modem on the move can bring, -1 of one that stands.

    Radio (fitted, see ``fitted``). ``windows_s``, growing: the spreads of the levels are taken over so long, at least over six polls.
    ``weights``: one for the logarithm of each window's spread in dB, and one for that of 1 + the serving cells within the longest window
    that this path did not have within ``cell_memory_s``. With ``bias`` they give the logarithm of the odds of movement; at
    ``full_odds`` and beyond (either way) a second counts whole.

    States (fitted). ``start_s``: moving from so much evidence on. ``most_s``: more is not kept, and standing again when it has run out.
    ``least_s``: no state ends sooner. ``modems``: evidence of no more modems than so many adds. ``overruled``: what evidence of standing
    counts against another modem's of movement: a quiet modem may well ride along, a lively one hardly stands. ``silent_per_s``: where
    no modem tells anything evidence runs out at this rate, so that a tunnel ends no ride.

    Speed. Above ``speed_km_h`` for ``speed_start_s`` is moving, above ``speed_surely_km_h`` at once (a receiver may tell a fix in 100 m
    only); at or below ``speed_km_h`` for ``speed_stop_s`` is standing. A fix decides
    for ``speed_valid_s`` and is good when it is 2d or 3d, at most ``fix_age_s`` old, and its error at most
    ``horizontal_error_m`` where the receiver tells one.

    ``period_s`` and ``successive_periods``: as in ``Settings``; a poll speaks for at most so long.
    """

    windows_s: tuple[float, ...] = fitted.WINDOWS_S
    weights: tuple[float, ...] = fitted.WEIGHTS
    bias: float = fitted.BIAS
    full_odds: float = fitted.FULL_ODDS
    start_s: float = fitted.START_S
    most_s: float = fitted.MOST_S
    silent_per_s: float = 0.1
    cell_memory_s: float = 600.0
    least_s: float = 5.0
    modems: float = 2.0
    overruled: float = 0.4
    speed_km_h: float = 3.0
    speed_surely_km_h: float = 10.0
    speed_start_s: float = 3.0
    speed_stop_s: float = 15.0
    speed_valid_s: float = 5.0
    fix_age_s: float = 3.0
    horizontal_error_m: float = 50.0
    period_s: float = 1.0
    successive_periods: float = 2.5

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float) and field.name != "bias" and not value > 0:
                raise ValueError(f"{field.name} must be above 0, not {value}")
        if not self.windows_s or not all(a < b for a, b in zip((0.0, *self.windows_s), self.windows_s, strict=False)):
            raise ValueError(f"windows_s must be above 0 and grow, not {self.windows_s}")
        if len(self.weights) != len(self.windows_s) + 1 or not all(map(math.isfinite, (*self.weights, self.bias))):
            raise ValueError(f"weights must be one a window and one more, and finite, not {self.weights}")
        if not self.start_s <= self.most_s:
            raise ValueError(f"start_s ({self.start_s}) must be no more than most_s ({self.most_s})")

    def per_s(self, quantities: Sequence[float]) -> float:
        """Evidence a second, -1 to 1."""
        odds = self.bias + sum(w * q for w, q in zip(self.weights, quantities, strict=True))
        return min(1.0, max(-1.0, odds / self.full_odds))

    @property
    def windows_ns(self) -> tuple[int, ...]:
        """The windows, none below six periods."""
        return tuple(round(max(window_s, 6 * self.period_s) * 1e9) for window_s in self.windows_s)

    @property
    def successive_ns(self) -> int:
        """How long a poll speaks for."""
        return round(self.successive_periods * self.period_s * 1e9)
