"""A power budget as text and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from tandem_hardware.power import Budget, Limit

_WORDS = {
    "supply": ("the supply {of}", "a stronger supply (--supply), or a battery between that charges more slowly than it gives"),
    "battery": ("the battery {of}", "a battery that gives more (--battery)"),
    "usb": ("the USB ports of {of}, all together", "a powered hub between, or a feed of its own for what draws most"),
    "port": ("one USB port of {of} ({note})", "a feed of its own for it"),
    "standard": (
        "what USB grants one device, on {of} ({note})",
        "a hub whose ports give more than the standard asks, as those with charging ports do",
    ),
}  # fmt: skip
"""By a limit's kind: what it is, and what helps."""


def warnings(budget: Budget) -> list[dict[str, str]]:
    """What does not hold, or hardly: ``level`` (exceeded, close), ``kind``, ``of``, ``text``, ``mend``; the worst first."""
    return [
        {
            "level": limit.verdict,
            "kind": limit.kind,
            "of": limit.of,
            "text": f"{_what(limit)}: {limit.drawn_a:.2f} A at peak of {limit.limit_a:.2f} A",
            "mend": _WORDS[limit.kind][1],
        }
        for limit in sorted(budget.limits, key=lambda one: one.verdict != "exceeded")
        if limit.verdict != "kept"
    ]


def _what(limit: Limit) -> str:
    return _WORDS[limit.kind][0].format(of=limit.of, note=limit.note)


def table(budget: Budget, hours_on: float, campaign: str) -> str:
    """For a terminal."""
    build, hours = budget.build, budget.battery_hours
    lines = [f"{build.title} ({build.name}): {budget.share:.0%} of the time measuring ({campaign})"]
    watts = dict[str, float](budget.watts.items()) | {"average": budget.average_w}
    lines += [f"  {name:<10} {one / budget.volts:5.2f} A  {one:6.2f} W" for name, one in watts.items()]
    lines.append("  no battery" if hours is None else f"  {budget.battery}: {hours:.1f} h of its {budget.battery_wh:.0f} Wh at 5 V, "
                 f"{hours / hours_on:.1f} days of {hours_on:g} h")  # fmt: skip
    for limit in budget.limits:
        lines.append(
            f"  {limit.verdict:<9} {_what(limit)}: {limit.drawn_a:.2f} of {limit.limit_a:.2f} A, "
            f"margin {limit.margin_a:+.2f} A" + (f" ({limit.note})" if limit.kind == "usb" and limit.note else "")
        )
    lines += [f"  {one['level'].upper()}: {one['text']}; hint: {one['mend']}" for one in warnings(budget)]
    if budget.estimates:
        lines.append(f"  power is an estimate for: {', '.join(budget.estimates)}")
    return "\n".join(lines) + "\n"


def as_json(budget: Budget, hours_on: float, campaign: str) -> dict[str, Any]:
    """For ``--json``; the help of the command documents the keys."""
    hours = budget.battery_hours
    watts = dict[str, float](budget.watts.items()) | {"average": budget.average_w}
    return {
        "build": budget.build.name,
        "campaign": campaign,
        "duty_share": round(budget.share, 4),
        "hours_on": hours_on,
        "volts": budget.volts,
        "current_a": {name: round(one / budget.volts, 4) for name, one in watts.items()},
        "power_w": {name: round(one, 3) for name, one in watts.items()},
        "supply": budget.supply,
        "battery": budget.battery,
        "battery_hours": None if hours is None else round(hours, 2),
        "battery_days": None if hours is None else round(hours / hours_on, 2),
        "limits": [
            {**asdict(one), "drawn_a": round(one.drawn_a, 4), "margin_a": round(one.margin_a, 4), "verdict": one.verdict}
            for one in budget.limits
        ],
        "warnings": warnings(budget),
        "estimates": list(budget.estimates),
    }  # fmt: skip
