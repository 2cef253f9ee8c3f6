"""Round trips, asked on every path at the same instants, all the time."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

ROUND_TRIP_OUTCOMES = ("answered", "late", "lost", "down", "paused", "budget", "unserved")
"""What became of one question. Asked: ``answered`` within 2 s; ``late``: between 2 and 10 s, with its time; ``lost``: not within 10 s.
``down``: it could not be sent, the path was not up. Not measured, which says nothing of the path: ``paused`` for a run that wants quiet;
``budget``: the SIM has nothing left for today or of its plan; ``unserved``: the server had no reflector, or no open session, for it."""

ROUND_TRIP_MEASURED = ("answered", "late", "lost", "down")
"""A record of each instant; of the others one where they begin, and one a minute while they last."""

ROUND_TRIP = Measurement(
    "round_trip",
    "one UDP question to the server's reflector over one path; its time is the instant, the same on all paths",
    ("path", "operator"),
    (
        Field("outcome", "str", "", "one of ROUND_TRIP_OUTCOMES"),
        Field("sequence", "int", "", "number of the instant, the same on all paths: CLOCK_MONOTONIC by the period", 0),
        Field(
            "unanswered",
            "int",
            "",
            "1: lost or down, 0: answered or late, so that a mean is a share; else absent",
            0,
            1,
        ),
        Field("rtt_ms", "float", "ms", "sent to the kernel's stamp of the answer, less the server's own time", 0),
        Field("sent_after_ms", "float", "ms", "from the instant to the sending; told where it is more than 100 ms", 0),
        Field("beside_run", "bool", "", "a run was under way at the instant: its load is in the time"),
        Field("duplicates", "int", "", "further answers to answered questions since the record before, where any", 1),
        Field("too_late", "int", "", "answers to lost questions since the record before, where any", 1),
    ),
)
