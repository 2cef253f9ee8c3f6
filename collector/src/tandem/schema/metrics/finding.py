"""What experiments of several connections find out together: what aggregation gives, and whether a path lets Multipath TCP through."""

from __future__ import annotations

from tandem.schema.metrics.table import Field, Measurement

VERDICTS = ("native", "fallback", "stripped", "reset", "dropped", "unreachable", "untested")
"""Multipath TCP works / is lost with the first payload / its options go missing on the way / its subflow is reset / its segments get no
answer / not even TCP goes through / could not be looked at. ``verdict_code`` is the place in this list, from 0."""

VERDICT_ROLES = ("primary", "join")
"""``role`` of a verdict: a connection begins on the path / a subflow joins over it."""

AGGREGATION = Measurement(
    "aggregation",
    "what Multipath TCP gave in one round of a bandwidth or delay experiment, one record for each path as the primary one",
    ("run", "experiment", "mode", "path", "operator", "campaign"),
    (
        Field("round", "int", "", "of the run, from 1", 1),
        Field("goodput_bit_per_s", "float", "bit/s", "bandwidth: by Multipath TCP", 0),
        Field("c_max_bit_per_s", "float", "bit/s", "bandwidth: TCP over the best path alone", 0),
        Field("c_sum_bit_per_s", "float", "bit/s", "bandwidth: sum of TCP over each path alone", 0),
        Field("c_total_bit_per_s", "float", "bit/s", "bandwidth: TCP over all paths at once", 0),
        Field("tdi", "float", "", "bandwidth: disjointivity, c_total / c_sum; measured it may pass 1 a little", 0),
        Field("bandwidth_ratio", "float", "", "bandwidth: the best path by the worst, each alone", 1),
        Field("bytes", "int", "B", "delay: size of each transfer", 0),
        Field("delay_ms", "float", "ms", "delay: of the transfer by Multipath TCP", 0),
        Field("fastest_ms", "float", "ms", "delay: by TCP over the fastest path alone", 0),
        Field("ideal_ms", "float", "ms", "delay: all paths at once, perfectly scheduled: 1 / Σ(1/D_i)", 0),
        Field("benefit", "float", "", "aggregation benefit as the paper has it: 0 the best path alone, 1 ideal", -1, 1),
        Field("benefit_raw", "float", "", "the same, not limited to -1 to 1"),
        Field("most_loaded_share", "float", "", "of all its bytes, on the path with most of them", 0, 1),
        Field("fallback", "bool", "", "it fell back to TCP"),
    ),
)
"""Cordero, §3.1. ``mode``: oneway (upload) or reqresp (download); ``path``: the primary one, and its operator; without one where the round
came to no Multipath TCP."""

VERDICT = Measurement(
    "verdict",
    "whether a path lets Multipath TCP through, in each role, as the verdict experiment judges",
    ("run", "path", "operator", "role", "verdict", "campaign"),
    (
        Field("verdict_code", "int", "", "place of the verdict in VERDICTS", 0, len(VERDICTS) - 1),
        Field("where", "str", "", "where it was lost, as far as it can be told: syn, syn-ack, syn or syn-ack, data"),
        Field("over", "str", "", "of a join, the path on which the connection began"),
        Field("detail", "str", "", "one line for people"),
    ),
)
