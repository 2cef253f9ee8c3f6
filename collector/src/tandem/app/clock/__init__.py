"""What time a record gets: who says that the clock is right, how well, and UTC from CLOCK_MONOTONIC by boot."""

from tandem.app.clock.clock import Clock, boot_id
from tandem.app.clock.reading import PLAUSIBLE_UTC_NS, SOURCES, Reading

__all__ = ["PLAUSIBLE_UTC_NS", "SOURCES", "Clock", "Reading", "boot_id"]
