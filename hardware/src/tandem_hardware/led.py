"""How the status LED's states look, of ``tandem.schema.status_led``: in words and in characters. Pure."""

from __future__ import annotations

from itertools import chain, cycle, groupby, islice

from tandem.schema.status_led import LedState

SHOWN_MS, CELL_MS = 4000, 100
"""How much time is shown, the same for all, so that they can be compared; and of each character."""
_COUNTS = ("no", "one", "two", "three", "four", "five")


def looks(state: LedState) -> str:
    """For whoever cannot tell the colours: "two short flashes every 2 s"."""
    if not state.blinks:
        return "steady" if any(on for on, _ in state.pattern) else "dark"
    kinds = groupby("long" if on >= 500 else "short" for on, _ in state.pattern)
    flashes = ", ".join(f"{_COUNTS[len(list(group))]} {kind}" for kind, group in kinds)
    return f"{flashes} every {state.period_ms / 1000:g}\N{NO-BREAK SPACE}s"


def bars(state: LedState) -> str:
    """Lit or dark, a character each tenth of a second: lit for at least half of it."""
    period = chain.from_iterable([on] * ms for times in state.pattern for on, ms in zip((1, 0), times, strict=True))
    lit = list(islice(cycle(period), SHOWN_MS))
    return "".join("█" if 2 * sum(lit[at : at + CELL_MS]) >= CELL_MS else "·" for at in range(0, SHOWN_MS, CELL_MS))
