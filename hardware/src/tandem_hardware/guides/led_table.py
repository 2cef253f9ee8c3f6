"""What the status LED says, as a table: of ``tandem.schema.status_led.STATES``, for Markdown and for paper. Pure."""

from __future__ import annotations

import html
from itertools import pairwise

from tandem.schema.status_led import STATES, LedState

SHOWN_MS = 4000
"""How much time a drawing shows: the same for all, so that they can be compared."""

_CELL_MS, _ENOUGH_MS, _LONG_MS = 100, 50, 500
_COUNTS = ("no", "one", "two", "three", "four", "five")
_INKS = {
    "red": "#d62828", "green": "#2a9134", "blue": "#1d4ed8", "yellow": "#e0a800", "cyan": "#0891b2", "magenta": "#c026d3",
    "white": "#ffffff", "dark": "#ffffff",
}  # fmt: skip


def lit(state: LedState, until_ms: int = SHOWN_MS) -> list[tuple[int, int]]:
    """(from, to) in ms, in which it is lit, from 0 to ``until_ms``; neighbours are joined."""
    spans: list[tuple[int, int]] = []
    at = 0
    while at < until_ms:
        for on, off in state.pattern:
            begin, end = min(at, until_ms), min(at + on, until_ms)
            if end > begin:
                if spans and spans[-1][1] == begin:
                    spans[-1] = (spans[-1][0], end)
                else:
                    spans.append((begin, end))
            at += on + off
    return spans


def words(state: LedState) -> str:
    """How it looks, for whoever cannot tell the colours: "two short flashes every 2 s"."""
    if not state.blinks:
        return "steady" if any(on for on, _ in state.pattern) else "dark"
    kinds = ["long" if on >= _LONG_MS else "short" for on, _ in state.pattern]
    groups: list[list[str]] = [[kinds[0]]]
    for before, kind in pairwise(kinds):
        if kind == before:
            groups[-1].append(kind)
        else:
            groups.append([kind])
    flashes = ", ".join(f"{_COUNTS[len(group)]} {group[0]}" for group in groups)
    return f"{flashes} every {state.period_ms / 1000:g}\N{NO-BREAK SPACE}s"


def bars(state: LedState) -> str:
    """Its first four seconds, a character each tenth of a second: lit or dark."""
    spans = lit(state)
    cells = range(0, SHOWN_MS, _CELL_MS)
    return "".join(
        "█" if sum(max(0, min(end, at + _CELL_MS) - max(begin, at)) for begin, end in spans) >= _ENOUGH_MS else "·"
        for at in cells
    )


def markdown() -> str:
    """Gravest first."""
    rows = [f"| {state.colour} | `{bars(state)}` {words(state)} | {state.means} | {state.do} |" for state in STATES]
    return "\n".join(("| Light | Four seconds of it | What it means | What you do |", "|---|---|---|---|", *rows))


def printed() -> str:
    """The same as HTML with drawings."""
    head = "<tr><th>Light</th><th>Four seconds of it</th><th>What it means</th><th>What you do</th></tr>"
    rows = "".join(
        f"<tr><td><b>{state.colour}</b></td><td>{_drawing(state)}<br><span class='how'>{words(state)}</span></td>"
        f"<td>{html.escape(state.means)}</td><td>{html.escape(state.do)}</td></tr>"
        for state in STATES
    )
    return f"<table class='led'>{head}{rows}</table>"


def _drawing(state: LedState) -> str:
    ink = _INKS[state.colour]
    edge = "#444" if state.colour == "white" else ink
    lamps = "".join(
        f"<rect x='{begin / 50:g}' y='0.6' width='{(end - begin) / 50:g}' height='6.8' fill='{ink}' stroke='{edge}' stroke-width='0.5'/>"
        for begin, end in lit(state)
    )
    line = "<line x1='0' y1='7.4' x2='80' y2='7.4' stroke='#999' stroke-width='0.6'/>"
    return f"<svg class='blinks' viewBox='0 0 80 8' preserveAspectRatio='none'>{line}{lamps}</svg>"
