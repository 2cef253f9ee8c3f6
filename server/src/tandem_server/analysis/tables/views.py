"""The views of the experiments: downloads, Cordero's bandwidth and delay, DASH, page loads, reachability, latency, traceroute, verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tandem_server.analysis.reading import flag, mapping, mappings, number, text, whole
from tandem_server.analysis.sender_shares import KEY
from tandem_server.analysis.tables.facts import Facts, numbers, unasked_share
from tandem_server.analysis.tables.view import Figure, Observed, View

_KIND = ("kind", "Kind")
_PRIMARY = ("primary", "Primary path")
_PAIRING = ("pairing", "Measured")


def _downloads(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        sent = mapping(run.result, KEY)
        rows = [{"share": share} for share in sent.values()] or mappings(run.result, "subflows")
        shares = [s for row in rows if (s := number(row, "share")) is not None]
        joins = [d for row in mappings(run.result, "subflows") if (d := number(row, "join_delay_ms")) is not None]
        if run.result:
            yield (
                run,
                {
                    "kind": run.kind,
                    "path": run.path or "primary varies",
                    "pairing": run.pairing,
                    **numbers(run.result, "goodput_bit_per_s", "duration_s", "bytes", "connect_ms", "first_byte_ms"),
                    "join_delay_ms": max(joins) if joins else None,
                    "most_loaded_share": max(shares) if run.kind == "mptcp" and shares else None,
                    "shares_side": None if run.kind != "mptcp" or not shares else "sender" if sent else "receiver",
                    "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
                },
            )


def _gains(runs: Sequence[Facts]) -> Observed:
    """MPTCP's runs with the single-path ones of the same pair."""
    pairs: dict[str, list[Facts]] = {}
    for run in runs:
        pairs.setdefault(run.pair, []).append(run)
    for pair in pairs.values():
        alone = [g for r in pair if r.kind == "tcp" and (g := number(r.result, "goodput_bit_per_s")) is not None]
        for run in pair:
            goodput = number(run.result, "goodput_bit_per_s")
            if run.kind == "mptcp" and goodput is not None and alone and max(alone) > 0:
                yield (
                    run,
                    {
                        "pairing": run.pairing,
                        "over_best": goodput / max(alone),
                        "over_sum": goodput / sum(alone),
                        "best_bit_per_s": max(alone),
                    },
                )


DOWNLOAD = View(
    "download",
    "Downloads",
    (_KIND, ("path", "Path"), _PAIRING),
    (
        Figure("goodput_bit_per_s", "Goodput", "bit/s", spread=True),
        Figure("duration_s", "Duration", "s"),
        Figure("bytes", "Bytes", "B"),
        Figure("connect_ms", "Connect", "ms"),
        Figure("first_byte_ms", "First byte", "ms"),
        Figure("join_delay_ms", "Last join after connect", "ms"),
        Figure("most_loaded_share", "Most loaded path", "share"),
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _downloads,
)

GAIN = View(
    "download-gain",
    "MPTCP against single-path TCP of the same pair",
    (_PAIRING,),
    (
        Figure("over_best", "× best TCP", "1", spread=True),
        Figure("over_sum", "× sum of TCPs", "1"),
        Figure("best_bit_per_s", "Best TCP", "bit/s"),
    ),
    _gains,
    "Goodput of the MPTCP run over that of the best single path, and over all of them together. Simultaneous runs share the links.",
)


def _rounds(run: Facts) -> Iterable[tuple[dict[str, object], dict[str, object]]]:
    for row in run.listed("rounds"):
        for benefit in mappings(row, "benefits"):
            yield row, benefit


def _unasked(row: dict[str, object], benefit: dict[str, object], steps: str) -> float | None:
    """Of the MPTCP step of a benefit: what went over none of the run's paths."""
    name = f"mptcp {text(benefit, 'primary')}"
    step = next((s for s in mappings(row, steps) if text(s, "name") == name), {})
    return unasked_share([s for c in [step, *mappings(step, "connections")] for s in mappings(c, "subflows")])


def _bandwidth(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row, benefit in _rounds(run):
            ratio = number(row, "bandwidth_ratio")
            yield (
                run,
                {
                    "mode": text(run.result, "mode"),
                    "primary": text(benefit, "primary"),
                    "ratio": None if ratio is None else round(ratio),
                    **numbers(row, "c_max_bit_per_s", "c_total_bit_per_s", "tdi", "bandwidth_ratio"),
                    **numbers(benefit, "goodput_bit_per_s", "benefit", "benefit_raw", "most_loaded_share"),
                    "unasked_share": _unasked(row, benefit, "phases"),
                    "fallback": flag(benefit, "fallback"),
                },
            )


def _alone(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("rounds"):
            alone = mapping(row, "c_i_bit_per_s")
            for path in alone:
                yield run, {"path": path, "c_i_bit_per_s": number(alone, path)}


BANDWIDTH = View(
    "bandwidth",
    "Bandwidth aggregation (Cordero)",
    (("mode", "Mode"), _PRIMARY, ("ratio", "Ratio of bandwidths")),
    (
        Figure("c_max_bit_per_s", "C_max", "bit/s"),
        Figure("c_total_bit_per_s", "C_total", "bit/s"),
        Figure("goodput_bit_per_s", "MPTCP", "bit/s"),
        Figure("tdi", "TDI"),
        Figure("benefit", "Benefit", "1", spread=True),
        Figure("benefit_raw", "Benefit, raw"),
        Figure("most_loaded_share", "Most loaded path", "share"),
        Figure("bandwidth_ratio", "Ratio as measured"),
        Figure("unasked_share", "Over a path not asked for", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _bandwidth,
    "Medians over rounds. Ratio: C_max over the slowest path, as measured, rounded."
    " Benefit: −1 to 1 as in Eq. 2; raw: not limited. TDI: C_total over the sum of C_i.",
)

ALONE = View(
    "bandwidth-alone",
    "Each path alone (C_i)",
    (("path", "Path"),),
    (Figure("c_i_bit_per_s", "C_i", "bit/s", spread=True),),
    _alone,
)


def size_class(count: int) -> int:
    """From which number of bytes on ``count`` counts: the classes of Cordero's figure 8, 100, 200, 500, 1000, …"""
    decade = int("1" + "0" * (len(str(count)) - 1))
    return max(step * decade for step in (1, 2, 5) if step * decade <= count)


def _delays(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row, benefit in _rounds(run):
            size = whole(row, "bytes")
            agent, server = mapping(benefit, "agent"), mapping(benefit, "server")
            chosen = number(benefit, "benefit")
            yield (
                run,
                {
                    "mode": text(run.result, "mode"),
                    "primary": text(benefit, "primary"),
                    "from_bytes": size_class(size) if size is not None and size > 0 else None,
                    "timed_at": text(run.result, "timed_at"),
                    "bytes": size,
                    "benefit": chosen,
                    "positive": None if chosen is None else chosen > 0,
                    "agent_benefit": number(agent, "benefit"),
                    "server_benefit": number(server, "benefit"),
                    "agent_delay_s": number(agent, "delay_s"),
                    "server_delay_s": number(server, "delay_s"),
                    "benefit_raw": number(benefit, "benefit_raw"),
                    "most_loaded_share": number(benefit, "most_loaded_share"),
                    "unasked_share": _unasked(row, benefit, "transfers"),
                },
            )


DELAY = View(
    "delay",
    "Delay aggregation (Cordero), by size",
    (("mode", "Mode"), _PRIMARY, ("from_bytes", "Bytes from")),
    (
        Figure("benefit", "Benefit", "1", spread=True),
        Figure("timed_at", "timed at", "", "tally"),
        Figure("positive", "Above 0", "share", "share"),
        Figure("agent_benefit", "Benefit, agent's clock"),
        Figure("server_benefit", "Benefit, server's clock"),
        Figure("agent_delay_s", "MPTCP delay, agent's clock", "s"),
        Figure("server_delay_s", "MPTCP delay, server's clock", "s"),
        Figure("benefit_raw", "Benefit, raw"),
        Figure("most_loaded_share", "Most loaded path", "share"),
        Figure("unasked_share", "Over a path not asked for", "share"),
    ),
    _delays,
    "Medians over rounds by the paper's classes of size (100, 200, 500, 1000 … bytes and more)."
    " Benefit is Eq. 3 by the clock that the paper times with: the agent's one way, the server's for request and response;"
    " both ends' own are beside it.",
)


_SEGMENT_S = re.compile(r"([0-9]{1,4})s-")


def rule(run: Facts) -> str:
    """Who chose: a rule of our player's, or VLC's logic."""
    player = mapping(run.result, "player")
    if text(player, "name") == "vlc":
        return f"VLC {text(player, 'logic') or ''}".strip()
    return text(player, "abr") or text(run.parameters, "abr") or ""


def segment_s(run: Facts) -> int | None:
    """Length of a segment by the manifest's name, as ``tandem-server dash build`` names them; None of other content."""
    found = _SEGMENT_S.match(text(run.parameters, "mpd") or "")
    return int(found[1]) if found else None


def _plays(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        if run.result:
            yield (
                run,
                {
                    "kind": run.kind,
                    "segment_s": segment_s(run),
                    "rule": rule(run),
                    "path": run.path,
                    **numbers(
                        run.result, "bitrate_bit_per_s", "goodput_bit_per_s", "startup_delay_ms", "stalls", "stalled_s"
                    ),
                    **numbers(run.result, "stall_ratio", "switches_per_minute", "qoe_linear_per_segment", "media_s"),
                    "stalled": None
                    if number(run.result, "stalls") is None
                    else (number(run.result, "stalls") or 0) > 0,
                    "unasked_share": unasked_share(mappings(run.result, "subflows")),
                    "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
                },
            )


DASH = View(
    "dash",
    "DASH: by kind, length of segment and rule",
    (("kind", "Kind"), ("segment_s", "Segment, s"), ("rule", "Rule"), ("path", "Path")),
    (
        Figure("bitrate_bit_per_s", "Bitrate", "bit/s", spread=True),
        Figure("goodput_bit_per_s", "Goodput", "bit/s"),
        Figure("startup_delay_ms", "Startup", "ms"),
        Figure("stalls", "Stalls"),
        Figure("stalled_s", "Stalled", "s"),
        Figure("stalled", "Plays that stalled", "share", "share"),
        Figure("stall_ratio", "Stall ratio", "share"),
        Figure("switches_per_minute", "Switches", "1/min"),
        Figure("qoe_linear_per_segment", "QoE a segment", "kbit/s"),
        Figure("media_s", "Video", "s"),
        Figure("unasked_share", "Over a path not asked for", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _plays,
    "Medians over plays. QoE: linear score of Yin et al. by segment; compare equal lengths."
    " Path: the primary one of MPTCP, the only one of TCP.",
)


def _loads(runs: Sequence[Facts]) -> Observed:
    for run in runs:
        for row in run.listed("loads"):
            shares = mapping(row, "shares")
            known = [share for path in shares if (share := number(shares, path)) is not None]
            # A load that failed has no time; it counts in the share of those.
            failed = text(row, "failure") is not None
            times = numbers(
                row, "page_load_time_ms", "object_load_time_ms", "first_contentful_paint_ms", "dom_content_loaded_ms"
            )
            yield (
                run,
                {
                    "kind": run.kind,
                    "path": run.path,
                    "by": text(row, "by"),
                    "page": text(row, "page"),
                    **({} if failed else times),
                    **numbers(row, "objects", "bytes", "connections", "connect_ms"),
                    "failed": failed,
                    "most_loaded_share": max(known) if run.kind == "mptcp" and known else None,
                    "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
                },
            )


PAGELOAD = View(
    "pageload",
    "Page loads: by kind and path",
    (("kind", "Kind"), ("path", "Path"), ("by", "Loaded by")),
    (
        Figure("page_load_time_ms", "Page load time", "ms", spread=True),
        Figure("object_load_time_ms", "Object load time", "ms", spread=True),
        Figure("first_contentful_paint_ms", "First paint", "ms"),
        Figure("dom_content_loaded_ms", "DOM content loaded", "ms"),
        Figure("objects", "Objects"),
        Figure("bytes", "Bytes", "B"),
        Figure("connections", "Connections"),
        Figure("connect_ms", "Connect", "ms"),
        Figure("most_loaded_share", "Most loaded path", "share"),
        Figure("failed", "Failed", "share", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _loads,
    "Medians over loads; times of loads that came to their end. Browser: navigation to the load event’s end; graph: without a browser,"
    " first connection to the last object’s last byte.",
)


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
