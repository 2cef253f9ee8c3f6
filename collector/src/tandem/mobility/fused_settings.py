"""The parameters of the fused detector, each with its unit and its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True)
class FusedSettings:
    """Evidence of movement is kept in seconds: 1 is what one second of one modem on the move can bring.

    Radio. ``window_s``: the spread of the levels is taken over so long, at least over six polls: at 8 m/s that is several
    decorrelation distances of shadowing (10 to 20 m in streets), at walking pace about one. ``neutral_db``: the spread that
    speaks for neither; half of a standing modem's windows in the logs are below about 0.5 dB and nine of ten below 1.1, half of a
    driving one's above 1.7 to 2.5: a quiet stretch of a ride is outlasted, not heeded. A second brings
    ln(spread / ``neutral_db``), no more than 1 (that is from 4.3 dB on) and no less than ``-quiet_per_s`` (below 1.1 dB).
    ``new_cell_s``: what a serving cell brings that this path did not have within ``cell_memory_s``; less than ``start_s``, so
    that one alone starts nothing.

    States. ``start_s``: moving from so much evidence on. ``most_s``: more is not kept, and standing again when it has run out,
    so one modem that has gone quiet ends movement after most_s / quiet_per_s = 150 s at the latest, longer than a traffic light
    lasts; two after 75 s. ``least_s``: no state ends sooner. ``modems``: evidence of no more modems than so many adds.

    Speed. Above ``speed_km_h`` for ``speed_start_s`` is moving; at or below it for ``speed_stop_s`` is standing. A fix decides
    for ``speed_valid_s`` and is good when it is 2d or 3d, at most ``fix_age_s`` old, and its error at most
    ``horizontal_error_m`` where the receiver tells one.

    ``period_s`` and ``successive_periods``: as in ``Settings``; a poll speaks for at most so long.
    """

    window_s: float = 10.0
    neutral_db: float = 1.6
    quiet_per_s: float = 0.4
    start_s: float = 10.0
    most_s: float = 60.0
    new_cell_s: float = 8.0
    cell_memory_s: float = 600.0
    least_s: float = 5.0
    modems: float = 2.0
    speed_km_h: float = 3.0
    speed_start_s: float = 3.0
    speed_stop_s: float = 15.0
    speed_valid_s: float = 5.0
    fix_age_s: float = 3.0
    horizontal_error_m: float = 50.0
    period_s: float = 1.0
    successive_periods: float = 2.5

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise ValueError(f"{field.name} must be above 0, not {getattr(self, field.name)}")
        if not self.new_cell_s < self.start_s <= self.most_s:
            raise ValueError(
                f"new_cell_s ({self.new_cell_s}) must be below start_s ({self.start_s}), and that no more than "
                f"most_s ({self.most_s})"
            )

    @property
    def window_ns(self) -> int:
        """The window, at least six periods."""
        return round(max(self.window_s, 6 * self.period_s) * 1e9)

    @property
    def successive_ns(self) -> int:
        """How long a poll speaks for."""
        return round(self.successive_periods * self.period_s * 1e9)
