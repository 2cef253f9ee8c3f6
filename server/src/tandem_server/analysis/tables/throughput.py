"""Downloads, and Cordero's bandwidth and delay experiments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tandem_server.analysis.reading import flag, mapping, mappings, number, text, whole
from tandem_server.analysis.sender_shares import KEY, part
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


def _most_loaded(run: Facts, benefit: dict[str, object]) -> dict[str, object]:
    """The share of the path that carried most, and who counted: of an upload the probe is the sender."""
    sent = part(run.result, text(benefit, "token"))
    share = max(sent.values()) if sent else number(benefit, "most_loaded_share")
    counters = "acknowledged" if text(run.result, "mode") == "oneway" else "receiver"
    return {"most_loaded_share": share, "shares_side": None if share is None else "sender" if sent else counters}


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
                    **numbers(benefit, "goodput_bit_per_s", "benefit", "benefit_raw"),
                    **_most_loaded(run, benefit),
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
        Figure("shares_side", "counted at", "1", "tally"),
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
                    **_most_loaded(run, benefit),
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
        Figure("shares_side", "counted at", "1", "tally"),
        Figure("unasked_share", "Over a path not asked for", "share"),
    ),
    _delays,
    "Medians over rounds by the paper's classes of size (100, 200, 500, 1000 … bytes and more)."
    " Benefit is Eq. 3 by the clock that the paper times with: the agent's one way, the server's for request and response;"
    " both ends' own are beside it.",
)
