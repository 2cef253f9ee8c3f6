"""The thresholds of all detectors."""

from __future__ import annotations

from dataclasses import dataclass

QUANTITIES = ("rsrp_dbm", "rssi_dbm")
"""What a change may be measured in. Mohan et al. say "signal strength (dBm)" and not which; RSRP is the default."""


DETECTORS = ("published", "fused")
"""Who judges movement: ``movement`` or ``fused``, which has settings of its own."""


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
