"""What the command says at its end: which figures are drawn, which are lacking and why; of a campaign file, what its arms did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WIDTH = 100


def table(figures: Sequence[dict[str, Any]]) -> str:
    """A line a figure, by paper."""
    names = max((len(f["label"]) for f in figures), default=0)
    lines = []
    paper = ""
    for figure in figures:
        if figure["paper"] != paper:
            paper = figure["paper"]
            mine = [f for f in figures if f["paper"] == paper]
            lines += ["", f"  {paper}: {sum(f['drawn'] for f in mine)} of {len(mine)} figures"]
        text = figure["title"] if figure["drawn"] else f"LACKING: {figure['lacks']}"
        lines.append(f"    {figure['label']:<{names}}  {text[:WIDTH]}")
    return "\n".join(lines)


def told(summary: dict[str, Any], figures: Sequence[dict[str, Any]], failed: Sequence[str]) -> dict[str, Any]:
    """The same for a machine."""
    return {
        "scenario": summary["scenario"],
        "seed": summary["seed"],
        "runs": sum(step["measured"] or 0 for c in summary["campaigns"] for step in c["steps"]),
        "campaigns": sorted(c["name"] for c in summary["campaigns"] if c["name"]),
        "campaigns_with_failures": list(failed),
        "drawn": [f["name"] for f in figures if f["drawn"]],
        "lacking": {f["name"]: f["lacks"] for f in figures if not f["drawn"]},
        "interrupted": summary["interrupted"],
    }


def arms_told(summary: dict[str, Any], name: str, starts_s: Sequence[float], misplaced: int) -> dict[str, Any]:
    """Of a campaign file, for a machine. ``starts_s``: how far into its stretch each run began; ``misplaced``: runs under another stretch
    than their block's."""
    steps = [step for c in summary["campaigns"] if c["name"] == name for step in c["steps"]]
    return {
        "campaign": name,
        "scenario": summary["scenario"],
        "seed": summary["seed"],
        "runs": sum(step["measured"] or 0 for step in steps),
        "failed": sum(sum(step["failed"].values()) for step in steps),
        "misplaced": misplaced,
        "starts_in_stretch_s": [round(s, 2) for s in (min(starts_s), max(starts_s))] if starts_s else None,
        "arms": summary["arms"],
        "interrupted": summary["interrupted"],
    }


def arms_table(outcome: dict[str, Any]) -> str:
    """The same for a person: a line an arm and outcome."""
    keys = [column["key"] for column in outcome["arms"]["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in outcome["arms"]["rows"]]
    lines = [f"\n  {outcome['campaign']}: {outcome['runs']} runs, {outcome['failed']} of them failed"]
    if outcome["misplaced"]:
        lines.append(f"  {outcome['misplaced']} runs were late, under another stretch than their block's")
    if outcome["starts_in_stretch_s"]:
        lines.append("  begun {:.1f} to {:.1f} s into their stretch".format(*outcome["starts_in_stretch_s"]))
    lines += [f"    {row['step']}, {row['outcome']}: {row['arm']} {row['verdict']}" for row in rows if row["verdict"]]
    return "\n".join(lines)
