"""Reachability, latency, traceroute and verdict."""

from __future__ import annotations

from collections.abc import Sequence

from tandem_server.analysis.reading import flag, mapping, mappings, number, text
from tandem_server.analysis.tables.facts import Facts, numbers
from tandem_server.analysis.tables.view import Figure, Observed, View

QUANTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
"""Of the distributions that experiments tell."""


def _ways(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("ways"):
            rtt = mapping(row, "name_rtt_ms")
            yield (
                run,
                {
                    "way": text(row, "way"),
                    **numbers(row, "names", "addresses", "unresponsive_share", "names_unresponsive_share"),
                    **{f"rtt_p{q}_ms": number(rtt, f"p{q}") for q in (10, 50, 90, 99)},
                },
            )


WAYS = View(
    "reachability",
    "Reachability by way: pinging path / resolving path",
    (("way", "Way"),),
    (
        Figure("names", "Names"),
        Figure("addresses", "Addresses"),
        Figure("unresponsive_share", "Unresponsive", "share"),
        Figure("names_unresponsive_share", "Names unresponsive", "share"),
        *(Figure(f"rtt_p{q}_ms", f"RTT p{q}", "ms") for q in (10, 50, 90, 99)),
    ),
    _ways,
    "With Wi-Fi W and LTE L the ways are the paper’s WW, WL, LW and LL. Unresponsive: never any answer. RTT: of each name, the mean over"
    " its addresses.",
)


def _overlaps(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("overlap"):
            paths = row.get("paths")
            names = " / ".join(str(p) for p in paths) if isinstance(paths, list) else ""
            keys = (
                "addresses_either",
                "addresses_both",
                "share",
                "names_both",
                "names_same_share",
                "names_sharing_share",
            )
            yield run, {"paths": names, **numbers(row, *keys)}


OVERLAP = View(
    "reachability-overlap",
    "Overlap of addresses between the paths’ resolvers",
    (("paths", "Paths"),),
    (
        Figure("addresses_either", "Addresses, either"),
        Figure("addresses_both", "both"),
        Figure("share", "Overlap", "share"),
        Figure("names_both", "Names resolved by both"),
        Figure("names_same_share", "with the same addresses", "share"),
        Figure("names_sharing_share", "with one in common", "share"),
    ),
    _overlaps,
)


def _compared(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("comparison"):
            ways = row.get("ways")
            label = " → ".join(str(w) for w in ways) if isinstance(ways, list) else ""
            steps = {f"p{q}_ms": number(mapping(row, "difference_ms"), f"p{q}") for q in (10, 50, 90)}
            yield run, {"ways": label, **numbers(row, "names", "second_slower_share"), **steps}


COMPARISON = View(
    "reachability-comparison",
    "Name by name: the second way against the first",
    (("ways", "Ways"),),
    (
        Figure("names", "Names"),
        Figure("second_slower_share", "Second slower", "share"),
        *(Figure(f"p{q}_ms", f"Difference p{q}", "ms") for q in (10, 50, 90)),
    ),
    _compared,
)


def _streams(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("streams"):
            rtt = mapping(row, "rtt_ms")
            yield (
                run,
                {
                    "path": text(row, "path"),
                    "load": {True: "under load", False: "idle"}.get(flag(row, "loaded") is True, "idle"),
                    **{f"rtt_p{q}_ms": number(rtt, f"p{q}") for q in (5, 50, 95, 99)},
                    "up_p50_ms": number(mapping(row, "up_ms"), "p50"),
                    "down_p50_ms": number(mapping(row, "down_ms"), "p50"),
                    "jitter_p50_ms": number(mapping(row, "rtt_jitter_ms"), "p50"),
                    "lost_share": number(row, "lost_share"),
                },
            )


LATENCY = View(
    "latency",
    "Latency by path, idle and under load",
    (("path", "Path"), ("load", "Load")),
    (
        Figure("rtt_p5_ms", "RTT p5", "ms"),
        Figure("rtt_p50_ms", "RTT p50", "ms", spread=True),
        Figure("rtt_p95_ms", "RTT p95", "ms"),
        Figure("rtt_p99_ms", "RTT p99", "ms"),
        Figure("up_p50_ms", "Up p50", "ms"),
        Figure("down_p50_ms", "Down p50", "ms"),
        Figure("jitter_p50_ms", "Jitter p50", "ms"),
        Figure("lost_share", "Lost", "share"),
    ),
    _streams,
    "One-way times are absent where the clocks cannot be compared.",
)


def _traces(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("traces"):
            hops = mappings(row, "hops")
            answered = sum(bool(mappings(hop, "routers")) for hop in hops)
            told = {"hops": len(hops), "hops_silent": len(hops) - answered, "ended": text(row, "ended")}
            yield run, {"path": text(row, "path"), "protocol": text(row, "protocol"), **told}


TRACES = View(
    "traceroute",
    "Traces to the server",
    (("path", "Path"), ("protocol", "Protocol")),
    (Figure("hops", "Hops"), Figure("hops_silent", "of them silent"), Figure("ended", "Ended", "", "tally")),
    _traces,
)


def _disjoint(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("disjointness"):
            paths = row.get("paths")
            label = " / ".join(str(p) for p in paths) if isinstance(paths, list) else ""
            protocol = text(row, "protocol")
            yield (
                run,
                {
                    "paths": label,
                    "protocol": protocol,
                    **numbers(row, "shared", "disjoint_share", "systems_disjoint_share"),
                },
            )


DISJOINT = View(
    "traceroute-disjointness",
    "How far the paths are disjoint",
    (("paths", "Paths"), ("protocol", "Protocol")),
    (
        Figure("shared", "Routers shared"),
        Figure("disjoint_share", "Disjoint by router", "share"),
        Figure("systems_disjoint_share", "Disjoint by AS", "share"),
    ),
    _disjoint,
)


def _verdicts(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        paths = mapping(run.result, "paths")
        for path in paths:
            found = mapping(paths, path)
            told = {}
            for part in ("primary", "join"):
                judged = mapping(found, part)
                where = text(judged, "where")
                told[part] = (
                    f"{text(judged, 'verdict') or 'untested'}{f' ({where})' if where else ''}" if judged else None
                )
            if found:
                yield run, {"path": path, **told}


VERDICT = View(
    "verdict",
    "What becomes of Multipath TCP on each path",
    (("path", "Path"),),
    (Figure("primary", "As primary", "", "tally"), Figure("join", "As joined path", "", "tally")),
    _verdicts,
)
