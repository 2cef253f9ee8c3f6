"""What time a record gets: who says that the clock is right, how well, and UTC from CLOCK_MONOTONIC by boot."""

from tandem.app.clock.clock import PLAUSIBLE_UTC_NS, SOURCES, Clock, Reading, boot_id

__all__ = ["PLAUSIBLE_UTC_NS", "SOURCES", "Clock", "Reading", "boot_id"]
