"""What the command says at its end: which figures are drawn, which are lacking and why."""

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
