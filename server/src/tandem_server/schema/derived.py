"""What the server derives: each operator's radio, goodput and handovers by place and mobility, and what Multipath TCP gave in each pair.

Probes may not send these. Counts and sums only, so that they add up over probes, places and time: a mean is a sum by its count, and a
distribution is its bins added. A bin without a count is left out, and so is a tag that is not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tandem.schema.metrics import Field, Measurement

MOBILITY = ("still", "low", "high", "moving")
"""The tag ``mobility``: the probe stands / moves on foot / moves faster / moves, and its class is not known."""

RSRP_EDGES_DBM = tuple(range(-125, -65, 5))
"""Bins of RSRP: below the first, from each to the next (the lower edge belongs to it), from the last on."""

GOODPUT_EDGES_MBIT_PER_S = (1, 2, 5, 10, 20, 50, 100, 200)
"""Likewise, of goodput in Mbit/s; a second in which nothing came is counted apart."""

GOODPUT_NONE = "goodput_none"

WEAK_DBM = -105
"""Below this an area's polls are counted as weak: what the grades call poor."""


def bin_names(quantity: str, edges: Sequence[int]) -> tuple[str, ...]:
    """The fields that count a quantity's bins, in rising order: one more than ``edges``. A minus is written ``m``."""
    words = [f"m{-edge}" if edge < 0 else str(edge) for edge in edges]
    middle = [f"{quantity}_{low}_{high}" for low, high in pairwise(words)]
    return (f"{quantity}_below_{words[0]}", *middle, f"{quantity}_from_{words[-1]}")


RSRP_BINS = bin_names("rsrp", RSRP_EDGES_DBM)
GOODPUT_BINS = (GOODPUT_NONE, *bin_names("goodput", GOODPUT_EDGES_MBIT_PER_S))


def _bins(quantity: str, names: Sequence[str], edges: Sequence[int], unit: str, of: str) -> list[Field]:
    low, high = [None, *edges], [*edges, None]
    fields = []
    for name, a, b in zip(names, low, high, strict=True):
        span = f"below {b} {unit}" if a is None else f"{a} {unit} and more" if b is None else f"{a} to below {b} {unit}"
        fields.append(Field(name, "int", "", f"{of} with {quantity} {span}", 0))
    return fields


_POLLS = (
    Field("polls", "int", "", "polls that were answered", 0),
    Field("polls_unserved", "int", "", "of these, searching, limited or without service", 0),
    Field("time_s", "float", "s", "that these polls stand for: each until the next, 2.5 s at most", 0),
    Field("rsrp_dbm_count", "int", "", "polls with an RSRP that was not stale", 0),
    Field("rsrp_dbm_sum", "float", "dBm", "sum of their RSRP: by rsrp_dbm_count it is the mean"),
    Field("rsrp_weak_count", "int", "", f"of rsrp_dbm_count, below {WEAK_DBM} dBm", 0),
)
_GOODPUT = (
    Field("goodput_bit_per_s_count", "int", "", "seconds of TCP downloads over this path alone", 0),
    Field(
        "goodput_bit_per_s_sum", "float", "bit/s", "sum of their goodputs: by goodput_bit_per_s_count it is the mean", 0
    ),
)
_WAY = (
    Field("handovers", "int", "", "events handover", 0),
    Field("way_m", "float", "m", "travelled, where the position is known in full", 0),
    Field("way_time_s", "float", "s", "of time_s, where the way is known", 0),
    Field("way_handovers", "int", "", "of handovers, where the way is known: by way_m they are a rate", 0),
)
_DISTRIBUTIONS = (
    *_bins("an RSRP", RSRP_BINS, RSRP_EDGES_DBM, "dBm", "polls"),
    Field(GOODPUT_NONE, "int", "", "seconds of such downloads in which nothing came", 0),
    *_bins("a goodput", GOODPUT_BINS[1:], GOODPUT_EDGES_MBIT_PER_S, "Mbit/s", "seconds of such downloads"),
)

COVERAGE = Measurement(
    "coverage",
    "one hour of one modem in one area and mobility state, at the hour's beginning",
    ("probe", "path", "operator", "rat", "area", "mobility"),
    (*_POLLS, *_GOODPUT, *_WAY, *_DISTRIBUTIONS),
)
"""``area``: the geohash of the position, six letters (about 1.2 by 0.6 km), fewer where the position is known less well (privacy mode
coarse); absent without a position (privacy mode off, home zones, no fix)."""

COVERAGE_DAY = Measurement(
    "coverage_day",
    "one day (UTC) of coverage without its areas, at the day's beginning",
    ("probe", "path", "operator", "rat", "mobility"),
    COVERAGE.fields,
)

PROBE_AREA_DAY = Measurement(
    "probe_area_day",
    "one day (UTC) of coverage in one area, at the day's beginning",
    ("probe", "operator", "area", "mobility"),
    (*_POLLS, *_GOODPUT, *_WAY),
)

AREA = Measurement(
    "area",
    "one hour of coverage in one area, of all probes together, at the hour's beginning",
    ("operator", "area"),
    PROBE_AREA_DAY.fields,
)

AREA_DAY = Measurement(
    "area_day",
    "one day (UTC) of coverage in one area, of all probes together, at the day's beginning",
    AREA.tags,
    AREA.fields,
)
"""Maps of all probes query these: of a hundred probes over months the others are too many series."""

_FIGURES = (
    Field("pairs", "int", "", "of these figures are: 1 for a pair", 0),
    Field("mptcp_goodput_bit_per_s", "float", "bit/s", "of the Multipath TCP run; 0 when it failed", 0),
    Field("best_goodput_bit_per_s", "float", "bit/s", "of the best TCP run", 0),
    Field("worst_goodput_bit_per_s", "float", "bit/s", "of the worst TCP run; 0 for one that failed", 0),
    Field("sum_goodput_bit_per_s", "float", "bit/s", "of all its TCP runs", 0),
    Field("lower", "int", "", "pairs whose Multipath TCP run had less goodput than their best TCP run", 0),
    Field("benefits", "int", "", "pairs that have a benefit", 0),
    Field("shares", "int", "", "pairs whose bytes are known by path", 0),
    Field("failed", "int", "", "runs that the network failed", 0),
)
_OF_PATHS = ("probe", "pairing", "campaign", "operator", "mobility", "fallback")
_BENEFIT = "aggregation benefit: 0 the best path alone, 1 the sum of the paths (taken for what they carry at once)"
_PRIMARY = "part of the run's bytes that came over its primary path"
_MOST = "part that came over the path with most of them"

PAIR = Measurement(
    "pair",
    "Multipath TCP against TCP over each path alone, of one pair of downloads, when its Multipath TCP run ended",
    _OF_PATHS,
    (
        Field("pair", "str", "", "the pair's id"),
        Field("run", "str", "", "id of its Multipath TCP run"),
        *_FIGURES,
        Field("best_path", "str", "", "the path of the best TCP run"),
        Field("best_operator", "str", "", "its operator"),
        Field("gain", "float", "", "Multipath TCP by the best path alone: above 1 it gains", 0),
        Field("sum_ratio", "float", "", "Multipath TCP by the sum of the paths", 0),
        Field("benefit", "float", "", _BENEFIT, -1, 1),
        Field("benefit_raw", "float", "", "the same, not limited to -1 to 1"),
        Field("primary_share", "float", "", _PRIMARY, 0, 1),
        Field("most_loaded_share", "float", "", _MOST, 0, 1),
        Field("paths", "int", "", "TCP runs that it is held against", 1),
    ),
)
"""``operator``: the primary path's; ``fallback``: ``true`` where the Multipath TCP run fell back to TCP, else ``false``. In a simultaneous
pair the TCP runs share the paths with the Multipath TCP run, so there are no benefit and no sum_ratio."""

PAIR_DAY = Measurement(
    "pair_day",
    "one day (UTC) of pairs added up, at the day's beginning: each field is the sum of that of its pairs",
    _OF_PATHS,
    (
        *_FIGURES,
        Field("benefit", "float", "", f"{_BENEFIT}; by benefits it is the mean"),
        Field("primary_share", "float", "", f"{_PRIMARY}; by shares it is the mean", 0),
        Field("most_loaded_share", "float", "", f"{_MOST}; by shares it is the mean", 0),
    ),
)

DERIVED_MEASUREMENTS = (COVERAGE, COVERAGE_DAY, PROBE_AREA_DAY, AREA, AREA_DAY, PAIR, PAIR_DAY)

HOURS_OF = {"coverage_day": "coverage", "probe_area_day": "coverage", "area_day": "area", "pair_day": "pair"}
"""What has the single hours (or pairs) of a measurement of days. All names of the days are names of the hours, too, and sums mean the same
in both, so one query serves any time range: ``FROM "$rolled"./^(coverage|coverage_day)$/`` finds the hours, or the days."""

DERIVED_POLICIES = {**dict.fromkeys(HOURS_OF.values(), "minute"), **dict.fromkeys(HOURS_OF, "hour")}
"""The retention policy that each is in: hours are kept as long as roll-ups by the minute, days as long as those by the hour."""
