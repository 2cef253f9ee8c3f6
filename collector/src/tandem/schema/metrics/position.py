"""Where the probe is."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

POSITION = Measurement(
    "position",
    "where the probe is, once a second while there is a receiver; none inside a home zone or with privacy off",
    ("mode",),
    (
        Field("latitude_deg", "float", "deg", "WGS 84; rounded as the privacy mode says", -90, 90),
        Field("longitude_deg", "float", "deg", "WGS 84; rounded as the privacy mode says", -180, 180),
        Field("altitude_m", "float", "m", "above mean sea level", -1000, 20000),
        Field("speed_m_per_s", "float", "m/s", "over ground", 0, 500),
        Field("track_deg", "float", "deg", "course over ground from true north", 0, 360),
        Field("fix", "str", "", "none, 2d or 3d"),
        Field("horizontal_error_m", "float", "m", "95 % estimate of the receiver", 0, 100000),
        Field("hdop", "float", "", "horizontal dilution of precision", 0, 100),
        Field("satellites_used", "int", "", "in the fix", 0, 200),
        Field("satellites_seen", "int", "", "in view", 0, 200),
        Field("fix_age_ms", "float", "ms", "how old the fix was when it was taken", 0),
    ),
)
