"""A power budget as text, as Markdown and as JSON. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem_hardware.power import STATES, Budget, Limit

_WORDS = {
    "supply": "the supply {of}",
    "battery": "the battery {of}",
    "usb": "the USB ports of {of}, all together",
    "port": "one USB port of {of} ({note})",
    "standard": "what USB grants one device, on {of} ({note})",
}
_MENDS = {
    "supply": "a stronger supply (--supply), or a battery between that charges more slowly than it gives",
    "battery": "a battery that gives more (--battery)",
    "usb": "a powered hub between, or a feed of its own for what draws most",
    "port": "a feed of its own for it",
    "standard": "a hub whose ports give more than the standard asks, as those with charging ports do",
}


def warnings(budget: Budget) -> list[dict[str, str]]:
    """What does not hold, or hardly: ``level`` (exceeded, close), ``kind``, ``of``, ``text``, ``mend``; the worst first."""
    found = [limit for limit in budget.limits if limit.verdict != "kept"]
    return [
        {
            "level": limit.verdict,
            "kind": limit.kind,
            "of": limit.of,
            "text": f"{what(limit)}: {limit.drawn_a:.2f} A at peak of {limit.limit_a:.2f} A",
            "mend": _MENDS[limit.kind],
        }
        for limit in sorted(found, key=lambda one: one.verdict != "exceeded")
    ]


def what(limit: Limit) -> str:
    """The limit in words."""
    return _WORDS[limit.kind].format(of=limit.of, note=limit.note)


def table(budget: Budget, hours_on: float, campaign: str) -> str:
    """For a terminal."""
    build = budget.build
    lines = [f"{build.title} ({build.name}): {budget.share:.0%} of the time measuring ({campaign})"]
    lines += [f"  {state:<10} {budget.amps(state):5.2f} A  {budget.watts[state]:6.2f} W" for state in STATES]
    lines.append(f"  {'average':<10} {budget.average_a:5.2f} A  {budget.average_w:6.2f} W")
    if budget.battery_hours is not None and budget.battery_wh is not None:
        days = budget.battery_hours / hours_on
        lines.append(
            f"  {budget.battery}: {budget.battery_hours:.1f} h of its {budget.battery_wh:.0f} Wh at 5 V, "
            f"{days:.1f} days of {hours_on:g} h"
        )
    else:
        lines.append("  no battery")
    for limit in budget.limits:
        lines.append(
            f"  {limit.verdict:<9} {what(limit)}: {limit.drawn_a:.2f} of {limit.limit_a:.2f} A, "
            f"margin {limit.margin_a:+.2f} A" + (f" ({limit.note})" if limit.kind == "usb" and limit.note else "")
        )
    lines += [f"  {one['level'].upper()}: {one['text']}; mend: {one['mend']}" for one in warnings(budget)]
    if budget.estimates:
        lines.append(f"  power is an estimate for: {', '.join(budget.estimates)}")
    return "\n".join(lines) + "\n"


def told(budget: Budget, hours_on: float, campaign: str) -> dict[str, Any]:
    """For ``--json``; hardware/README.md documents the keys."""
    hours = budget.battery_hours
    return {
        "build": budget.build.name,
        "campaign": campaign,
        "duty_share": round(budget.share, 4),
        "hours_on": hours_on,
        "volts": budget.volts,
        "current_a": {state: round(budget.amps(state), 4) for state in STATES}
        | {"average": round(budget.average_a, 4)},
        "power_w": {state: round(budget.watts[state], 3) for state in STATES} | {"average": round(budget.average_w, 3)},
        "supply": budget.supply,
        "battery": budget.battery,
        "battery_hours": None if hours is None else round(hours, 2),
        "battery_days": None if hours is None else round(hours / hours_on, 2),
        "limits": [
            {
                "kind": limit.kind,
                "of": limit.of,
                "drawn_a": round(limit.drawn_a, 4),
                "limit_a": limit.limit_a,
                "margin_a": round(limit.margin_a, 4),
                "verdict": limit.verdict,
                "note": limit.note,
            }
            for limit in budget.limits
        ],
        "warnings": warnings(budget),
        "estimates": list(budget.estimates),
    }


def markdown(budgets: Sequence[Budget], hours_on: float) -> str:
    """The README's table."""
    head = (
        "| build | measuring | idle | average | peak | battery | supply | left of the supply | USB at peak |\n"
        "|---|---|---|---|---|---|---|---|---|"
    )
    rows = []
    for one in budgets:
        hours = one.battery_hours
        lasts = "none" if hours is None else f"{hours:.1f} h, {hours / hours_on:.1f} days ({one.battery})"
        supply = one.limits[0]
        usb = "<br>".join(
            f"{limit.of}: {limit.drawn_a:.2f} of {limit.limit_a:g} A"
            + ("" if limit.verdict == "kept" else f", **{limit.verdict}**")
            for limit in one.limits
            if limit.kind in ("usb", "port")
        )
        mark = "" if supply.verdict == "kept" else f", **{supply.verdict}**"
        rows.append(
            f"| {one.build.name} | {one.share:.0%} | {one.amps('idle'):.2f} A | {one.average_a:.2f} A | {one.amps('peak'):.2f} A | {lasts} "
            f"| {one.supply} | {supply.margin_a:+.2f} A{mark} | {usb} |"
        )
    return "\n".join([head, *rows]) + "\n"
