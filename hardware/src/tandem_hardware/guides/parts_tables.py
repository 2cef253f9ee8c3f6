"""Tables of parts in the guides: of ``hardware/bom.csv``. Pure but for reading it."""

from __future__ import annotations

from tandem_hardware.bom import Part, load

KITS = ("paper", "standard", "5g")
SMALL_WH = 5
"""A clock's cell is no power bank."""
FREE_WH, APPROVED_WH = 100, 160
"""The two limits for a passenger's power banks: guides/regulatory.md names the sources."""


def of_kits() -> str:
    """What is put together, by build: a column each."""
    rows = [
        "| `{}` | {} | {} | {} |".format(
            part.id, part.part, part.function, " | ".join(str(part.quantities.get(build, "")) for build in KITS)
        )
        for part in load().values()
        if any(build in part.quantities for build in KITS)
    ]
    return _table(("Id", "Part", "Function", *(f"`{build}`" for build in KITS)), rows)


def of_build(build: str) -> str:
    """One build's parts."""
    rows = [
        f"| {part.quantities[build]} | {part.part} | {part.function} |"
        for part in load().values()
        if build in part.quantities
    ]
    return _table(("Number", "Part", "Function"), rows)


def batteries() -> str:
    """Each battery with its energy, and what a passenger aircraft asks of it."""
    rows = [
        f"| {part.part} | {_kits(part)} | {part.capacity_wh:g} Wh | {in_cabin(part.capacity_wh)} |"
        for part in load().values()
        if part.capacity_wh is not None and part.capacity_wh > SMALL_WH
    ]
    return _table(("Battery", "In", "Energy", "In an aircraft's cabin"), rows)


def in_cabin(capacity_wh: float) -> str:
    """What is asked of a battery with this energy."""
    if capacity_wh <= FREE_WH:
        return f"up to {FREE_WH} Wh: without asking, two a person at most"
    if capacity_wh <= APPROVED_WH:
        return f"above {FREE_WH} Wh: with the airline's approval, before the flight"
    return f"above {APPROVED_WH} Wh: not at all"


def _kits(part: Part) -> str:
    return ", ".join(f"`{build}`" for build in KITS if build in part.quantities) or "an alternative"


def _table(head: tuple[str, ...], rows: list[str]) -> str:
    return "\n".join((f"| {' | '.join(head)} |", "|" + "---|" * len(head), *rows))
