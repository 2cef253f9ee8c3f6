"""The short table at the end of a rehearsal, from summary.json, and the verdict."""

from __future__ import annotations

import itertools
from typing import Any

from tandem_bench.scenario.model import TICK_S
from tandem_bench.scenario.played import Played
from tandem_bench.truth import by_the_rule, states

FLOOR_HANDOVERS, MARGIN_MOBILITY = 0.8, 0.15
"""A commute of 180 s or more has failed with a smaller share of handovers detected, or with a share of time in the right mobility state
that is smaller by so much than what the published rule gives on the levels that were played (``rule``): a detector is broken then, or the
machine cannot keep up. What the rule itself does not notice (a walk, mostly) is no failure."""

SCORED_FROM_S = 180.0
"""Shorter rehearsals have too few events to judge."""


def rule(played: Played) -> float:
    """The share of time that the published rule is right in on ``played``, whenever in a second either modem is polled: the least."""
    columns = [timeline.columns for timeline in played.operators.values()]
    moving, levels = states(columns[0]["speed_m_s"], TICK_S), [c["rsrp_dbm"] for c in columns]
    phases = itertools.product(range(0, round(1 / TICK_S), 3), repeat=len(levels))
    said = (by_the_rule(levels, offsets, TICK_S) for offsets in phases)
    return min(sum(a == b for a, b in zip(one, moving, strict=True)) for one in said) / len(moving)


def _rate(value: float | None) -> str:
    return "–" if value is None else f"{value / 1e6:.1f}"


def _share(value: float | None, decimals: int = 1) -> str:
    return "–" if value is None else f"{100 * value:.{decimals}f} %"


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)


def _scored(score: dict[str, Any]) -> str:
    if score["true"] is None:
        return "not scored"
    return f"{score['detected']} of {score['true']} detected, {score['false']} false"


def _runs(summary: dict[str, Any]) -> list[str]:
    lines = ["  run                         while     Mbit/s  offered  ratio  shares"]
    for run in summary["runs"]:
        name = f"{run['kind']} {run.get('path') or ''} ({run['pairing']})"
        goodput, capacity = run["goodput_bit_per_s"], run.get("capacity_bit_per_s")
        ratio = f"{goodput / capacity:.2f}" if goodput is not None and capacity else "–"
        shares = ", ".join(
            f"{flow['operator'] or flow.get('path') or '?'} {_share(flow['share'], 0)}" for flow in run["subflows"]
        )
        failure = f"  FAILED: {run['failure']}" if run.get("failure") else ""
        lines.append(
            f"  {name:<27} {run.get('activity') or '–':<8} {_rate(goodput):>7} {_rate(capacity):>8} {ratio:>6}  {shares}{failure}"
        )
    return lines


def table(summary: dict[str, Any]) -> str:
    """A person's summary of ``summary.json``."""
    handovers, drops, mobility, records = (summary[key] for key in ("handovers", "signal_drops", "mobility", "records"))
    return "\n".join(
        [
            "",
            f"  {summary['scenario']}, seed {summary['seed']}, {summary['duration_s'] or 0:.0f} s",
            "",
            *_runs(summary),
            "",
            f"  handovers     {_scored(handovers)}",
            f"  signal drops  {_scored(drops)}",
            f"  mobility      right {_share(mobility['accuracy'])} of the time, {_count(mobility['false_starts'])} false starts, "
            f"{_count(mobility['missed_starts'])} missed",
            f"  polls         {_count(summary['radio_records'])} records, {_count(summary['polls_late'])} late",
            f"  records       {_count(records['made'])} made, {_count(records['sent'])} sent, "
            f"{_count(records['in_database'])} in the database, {_count(records['lost'])} lost",
            f"  captures      {len(summary['captures'])} files, {sum(c['bytes'] or 0 for c in summary['captures']) / 1e6:.1f} MB, "
            f"{sum(c['packets'] or 0 for c in summary['captures'])} packets",
            "",
        ]
    )


def _paired(runs: list[dict[str, Any]]) -> bool:
    """Whether some sequential pair has its MPTCP run and a TCP run on every path, none of them failed."""
    whole = [run for run in runs if run["pairing"] == "sequential" and not run.get("failure")]
    for mptcp in (run for run in whole if run["kind"] == "mptcp"):
        singles = {run["path"] for run in whole if run["kind"] == "tcp" and run["pair"] == mptcp["pair"]}
        if len(singles) >= 2 and {flow["path"] for flow in mptcp["subflows"]} <= singles:
            return True
    return False


def verdict(summary: dict[str, Any], *, scored: bool, paired: bool = True, right: float = 1.0) -> list[str]:
    """What went wrong, one line each; empty when everything arrived.

    ``scored``: this rehearsal is one whose detection scores can be promised (the shipped commute, long enough); ``paired``: it makes
    a sequential pair at the start; ``right``: the share of time with the right mobility state that is expected (``rule``).
    """
    wrong = []
    records = summary["records"]
    if records["lost"] is None or records["lost"] != 0 or not records["made"]:
        wrong.append(f"records lost: {records['lost']} of {records['made']} made")
    if not paired:
        pass  # a replay makes the runs that its drive had
    elif not summary["runs"]:
        wrong.append("no run was made")
    elif not summary.get("interrupted") and not _paired(summary["runs"]):
        wrong.append("the sequential pair at the start is not whole: MPTCP, and TCP on each of its paths")
    wrong += [
        f"run {run['id']} failed: {run['failure']}"
        for run in summary["runs"]
        if scored and run.get("failure") and "stopped" not in str(run["failure"])
    ]
    if summary.get("interrupted"):
        wrong.append(f"interrupted: {summary['interrupted']}")
    if scored and (summary["duration_s"] or 0) >= SCORED_FROM_S:
        handovers, mobility = summary["handovers"], summary["mobility"]
        if handovers["true"] and handovers["detected"] / handovers["true"] < FLOOR_HANDOVERS:
            wrong.append(f"handovers: only {handovers['detected']} of {handovers['true']} detected")
        if mobility["accuracy"] is None or mobility["accuracy"] < right - MARGIN_MOBILITY:
            found, expected = _share(mobility["accuracy"]), _share(right)
            wrong.append(
                f"mobility state right only {found} of the time, where the published rule gives {expected} or more"
            )
    return wrong
