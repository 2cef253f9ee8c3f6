"""The probe's clock: what its records' times rest on."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

CLOCK = Measurement(
    "clock",
    "what the times of this boot's records rest on, once a minute and when it changed",
    (),
    (
        Field("synchronised", "bool", "", "records of this boot have a time"),
        Field("vouched", "bool", "", "a source has vouched for it in the last five minutes"),
        Field("source", "str", "", "who vouched last: chrony, kernel, gpsd, or system (the clock as it stands)"),
        Field("offset_ns", "int", "ns", "what is added to CLOCK_MONOTONIC to have UTC, for records made now"),
        Field("error_ms", "float", "ms", "how far off the time of records made now may be; absent with system", 0),
        Field("age_s", "float", "s", "since a source vouched last", 0),
        Field("system_error_ms", "float", "ms", "the system's clock less the records' time"),
        Field("steps", "int", "", "times that the system's clock was set since the collector started", 0),
        Field("reference", "str", "", "chrony's reference id (hexadecimal), or gpsd's: sentences or pulse"),
        Field("stratum", "int", "", "chrony's", 0, 16),
        Field(
            "root_distance_ms",
            "float",
            "ms",
            "chrony's root dispersion and half its root delay; the kernel's maxerror",
            0,
        ),
        Field("last_offset_ms", "float", "ms", "chrony's last offset; what the kernel's loop has still to add"),
        Field("skew_ppm", "float", "ppm", "chrony's error bound of the frequency", 0),
    ),
)
