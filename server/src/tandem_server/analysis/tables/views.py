"""The views of the experiments: downloads, Cordero's bandwidth and delay, DASH, page loads, reachability, latency, traceroute, verdict."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tandem_server.analysis.estimates import quantile
from tandem_server.analysis.reading import flag, mapping, mappings, number, text, whole
from tandem_server.analysis.tables.facts import Facts, load_shares, numbers, round_share, shares, unasked_share
from tandem_server.analysis.tables.view import Figure, Observed, Values, View

Row = Mapping[str, Any]


def _each(
    rows: Callable[[Facts], Iterable[Row]], keys: Iterable[str], values: Callable[[Facts, Row], Values]
) -> Callable[[Sequence[Facts]], Observed]:
    """Of each run's rows the numbers of these names, and ``values``, which go before them."""

    def observe(runs: Sequence[Facts]) -> Observed:
        for run in runs:
            for row in rows(run):
                yield run, {**numbers(row, *keys), **values(run, row)}

    return observe


def _view(
    name: str,
    title: str,
    by: tuple[tuple[str, str], ...],
    figures: tuple[Figure, ...],
    rows: str | Callable[[Facts], Iterable[Row]],
    values: Callable[[Facts, Row], Values],
    note: str = "",
) -> View:
    """``rows``: what is observed of a run, or the name of a list in its result. A figure is the row's number of its name, where ``values``
    does not tell another."""
    of = rows if callable(rows) else lambda run: run.listed(rows)
    return View(name, title, by, figures, _each(of, [f.key for f in figures if f.how == "median"], values), note)


def _result(run: Facts) -> list[Row]:
    return [run.result] if run.result else []


_KIND = ("kind", "Kind")
_PRIMARY = ("primary", "Primary path")
_PAIRING = ("pairing", "Measured")


def _download(run: Facts, result: Row) -> Values:
    by_path, side = shares(result)
    joins = [d for row in mappings(dict(result), "subflows") if (d := number(row, "join_delay_ms")) is not None]
    multipath = run.kind == "mptcp"
    return {
        "kind": run.kind,
        "path": run.path or "primary varies",
        "pairing": run.pairing,
        "join_delay_ms": max(joins, default=None),
        "most_loaded_share": max(by_path.values()) if multipath and by_path else None,
        "shares_side": side if multipath and by_path else None,
        "fallback": flag(result, "fallback") if multipath else None,
    }


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


DOWNLOAD = _view(
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
    _result,
    _download,
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


def _rounds(run: Facts) -> Iterable[Row]:
    """A row a benefit, which has the round's numbers too."""
    for row in run.listed("rounds"):
        for benefit in mappings(row, "benefits"):
            yield {**row, **benefit}


def _unasked(row: Row, steps: str) -> float | None:
    """Of the MPTCP step of a benefit: what went over none of the run's paths."""
    name = f"mptcp {text(row, 'primary')}"
    step = next((s for s in mappings(row, steps) if text(s, "name") == name), {})
    return unasked_share([s for c in [step, *mappings(step, "connections")] for s in mappings(c, "subflows")])


def _most_loaded(run: Facts, row: Row) -> Values:
    share, side = round_share(run.result, row)
    return {"most_loaded_share": share, "shares_side": None if share is None else side}


def _bandwidth(run: Facts, row: Row) -> Values:
    ratio = number(row, "bandwidth_ratio")
    return {
        "mode": text(run.result, "mode"),
        "primary": text(row, "primary"),
        "ratio": None if ratio is None else round(ratio),
        **_most_loaded(run, row),
        "unasked_share": _unasked(row, "phases"),
        "fallback": flag(row, "fallback"),
    }


BANDWIDTH = _view(
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
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("bandwidth_ratio", "Ratio as measured"),
        Figure("unasked_share", "Over a path not asked for", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    _rounds,
    _bandwidth,
    "Medians over rounds. Ratio: C_max over the slowest path, as measured, rounded."
    " Benefit: −1 to 1 as in Eq. 2; raw: not limited. TDI: C_total over the sum of C_i.",
)

ALONE = _view(
    "bandwidth-alone",
    "Each path alone (C_i)",
    (("path", "Path"),),
    (Figure("c_i_bit_per_s", "C_i", "bit/s", spread=True),),
    lambda run: (
        {"path": path, "c_i_bit_per_s": value}
        for row in run.listed("rounds")
        for path, value in mapping(row, "c_i_bit_per_s").items()
    ),
    lambda _, row: {"path": row["path"]},
)


def size_class(count: int) -> int:
    """From which number of bytes on ``count`` counts: the classes of Cordero's figure 8, 100, 200, 500, 1000, …"""
    decade = int("1" + "0" * (len(str(count)) - 1))
    return max(step * decade for step in (1, 2, 5) if step * decade <= count)


def _delay(run: Facts, row: Row) -> Values:
    size, chosen = whole(row, "bytes"), number(row, "benefit")
    return {
        "mode": text(run.result, "mode"),
        "primary": text(row, "primary"),
        "from_bytes": size_class(size) if size is not None and size > 0 else None,
        "timed_at": text(run.result, "timed_at"),
        "bytes": size,
        "positive": None if chosen is None else chosen > 0,
        **{
            f"{end}_{key}": number(mapping(row, end), key)
            for end in ("agent", "server")
            for key in ("benefit", "delay_s")
        },
        **_most_loaded(run, row),
        "unasked_share": _unasked(row, "transfers"),
    }


DELAY = _view(
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
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("unasked_share", "Over a path not asked for", "share"),
    ),
    _rounds,
    _delay,
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


def _play(run: Facts, result: Row) -> Values:
    stalls = number(result, "stalls")
    return {
        "kind": run.kind,
        "segment_s": segment_s(run),
        "rule": rule(run),
        "path": run.path,
        "stalled": None if stalls is None else stalls > 0,
        "unasked_share": unasked_share(mappings(result, "subflows")),
        "fallback": flag(result, "fallback") if run.kind == "mptcp" else None,
    }


DASH = _view(
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
    _result,
    _play,
    "Medians over plays. QoE: linear score of Yin et al. by segment; compare equal lengths."
    " Path: the primary one of MPTCP, the only one of TCP.",
)


_TIMES = ("page_load_time_ms", "object_load_time_ms", "first_contentful_paint_ms", "dom_content_loaded_ms")


def _load(run: Facts, row: Row) -> Values:
    by_path, side = load_shares(run.result, row)
    known = run.kind == "mptcp" and bool(by_path)
    # A load that failed has no time; it counts in the share of those.
    failed = text(row, "failure") is not None
    return {
        "kind": run.kind,
        "path": run.path,
        "by": text(row, "by"),
        "page": text(row, "page"),
        **(dict.fromkeys(_TIMES) if failed else {}),
        "failed": failed,
        "most_loaded_share": max(by_path.values()) if known else None,
        "shares_side": side if known else None,
        "fallback": flag(run.result, "fallback") if run.kind == "mptcp" else None,
    }


PAGELOAD = _view(
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
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("failed", "Failed", "share", "share"),
        Figure("fallback", "Fell back", "share", "share"),
    ),
    "loads",
    _load,
    "Medians over loads; times of loads that came to their end. Browser: navigation to the load event’s end; graph: without a browser,"
    " first connection to the last object’s last byte.",
)


QUANTILES = (1, 5, 10, 25, 50, 75, 90, 95, 99)
"""Of the distributions that experiments tell."""


def distributions(told: Iterable[tuple[str, Row]]) -> dict[str, list[tuple[float, float]]]:
    """Of what experiments tell under each name: points (value, share below), medians over all of that name."""
    found: dict[str, dict[int, list[float]]] = {}
    for name, of in told:
        points = found.setdefault(name, {})
        for q in QUANTILES:
            if (value := number(of, f"p{q}")) is not None:
                points.setdefault(q, []).append(value)
    return {
        name: [(x, q / 100) for q, values in points.items() if (x := quantile(values, 0.5)) is not None]
        for name, points in found.items()
    }


def _percentiles(row: Row, key: str, percents: Iterable[int], name: str = "p{}_ms") -> dict[str, float | None]:
    """Of a distribution that an experiment tells."""
    return {name.format(q): number(mapping(dict(row), key), f"p{q}") for q in percents}


def _together(row: Row, key: str, by: str) -> str:
    """Names of a list as one."""
    names = row.get(key)
    return by.join(map(str, names)) if isinstance(names, list) else ""


WAYS = _view(
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
    "ways",
    lambda _, row: {
        "way": text(row, "way"),
        **_percentiles(row, "name_rtt_ms", (10, 50, 90, 99), "rtt_p{}_ms"),
    },
    "With Wi-Fi W and LTE L the ways are the paper’s WW, WL, LW and LL. Unresponsive: never any answer. RTT: of each name, the mean over"
    " its addresses.",
)


OVERLAP = _view(
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
    "overlap",
    lambda _, row: {"paths": _together(row, "paths", " / ")},
)


COMPARISON = _view(
    "reachability-comparison",
    "Name by name: the second way against the first",
    (("ways", "Ways"),),
    (
        Figure("names", "Names"),
        Figure("second_slower_share", "Second slower", "share"),
        *(Figure(f"p{q}_ms", f"Difference p{q}", "ms") for q in (10, 50, 90)),
    ),
    "comparison",
    lambda _, row: {
        "ways": _together(row, "ways", " → "),
        **_percentiles(row, "difference_ms", (10, 50, 90)),
    },
)


def _stream(_: Facts, row: Row) -> Values:
    return {
        "path": text(row, "path"),
        "load": "under load" if flag(row, "loaded") else "idle",
        **_percentiles(row, "rtt_ms", (5, 50, 95, 99), "rtt_p{}_ms"),
        "up_p50_ms": number(mapping(row, "up_ms"), "p50"),
        "down_p50_ms": number(mapping(row, "down_ms"), "p50"),
        "jitter_p50_ms": number(mapping(row, "rtt_jitter_ms"), "p50"),
    }


LATENCY = _view(
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
    "streams",
    _stream,
    "One-way times are absent where the clocks cannot be compared.",
)


def _trace(_: Facts, row: Row) -> Values:
    hops = mappings(row, "hops")
    silent = sum(not mappings(hop, "routers") for hop in hops)
    told = {key: text(row, key) for key in ("path", "protocol", "ended")}
    return {**told, "hops": len(hops), "hops_silent": silent}


TRACES = _view(
    "traceroute",
    "Traces to the server",
    (("path", "Path"), ("protocol", "Protocol")),
    (Figure("hops", "Hops"), Figure("hops_silent", "of them silent"), Figure("ended", "Ended", "", "tally")),
    "traces",
    _trace,
)


DISJOINT = _view(
    "traceroute-disjointness",
    "How far the paths are disjoint",
    (("paths", "Paths"), ("protocol", "Protocol")),
    (
        Figure("shared", "Routers shared"),
        Figure("disjoint_share", "Disjoint by router", "share"),
        Figure("systems_disjoint_share", "Disjoint by AS", "share"),
    ),
    "disjointness",
    lambda _, row: {"paths": _together(row, "paths", " / "), "protocol": text(row, "protocol")},
)


def _verdict(_: Facts, row: Row) -> Values:
    told: dict[str, str | None] = {}
    for key in ("primary", "join"):
        judged = mapping(row, key)
        where = text(judged, "where")
        word = f"{text(judged, 'verdict') or 'untested'}{f' ({where})' if where else ''}"
        told[key] = word if judged else None
    return {"path": row["path"], **told}


VERDICT = _view(
    "verdict",
    "What becomes of Multipath TCP on each path",
    (("path", "Path"),),
    (Figure("primary", "As primary", "", "tally"), Figure("join", "As joined path", "", "tally")),
    lambda run: (
        {**found, "path": path}
        for path in mapping(run.result, "paths")
        if (found := mapping(mapping(run.result, "paths"), path))
    ),
    _verdict,
)
