"""What a build draws from 5 V, how long its battery lasts, and which limits that keeps. Pure.

Three states while on: *idle* (everything on, nothing measured), *measuring* (typical) and *peak* (all parts at their peaks at once:
both modems at full uplink power). The average is idle and measuring by their shares of the time on. Off is nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tandem_hardware.bom import Part
from tandem_hardware.builds import ROOT_FEED, Build, Builds, Usb

State = Literal["idle", "measuring", "peak"]
STATES: tuple[State, ...] = ("idle", "measuring", "peak")
CLOSE = 0.1
"""A margin below this share of a limit is told."""
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


@dataclass(frozen=True, slots=True)
class Limit:
    """One limit at peak. ``kind``: supply, battery, usb (all ports), port (the part of one port that draws most), standard (what a
    port's standard grants a device)."""

    kind: Literal["supply", "battery", "usb", "port", "standard"]
    of: str
    drawn_a: float
    limit_a: float
    note: str = ""

    @property
    def margin_a(self) -> float:
        """What is left; below 0: exceeded."""
        return self.limit_a - self.drawn_a

    @property
    def verdict(self) -> Literal["kept", "close", "exceeded"]:
        """``standard`` is never exceeded, since ports give more than it in practice: close at the most."""
        over = self.drawn_a > self.limit_a + 1e-9
        if self.kind == "standard":
            return "close" if over else "kept"
        return "exceeded" if over else "close" if self.margin_a < CLOSE * self.limit_a - 1e-9 else "kept"


@dataclass(frozen=True, slots=True)
class Budget:
    """Of one build. Currents on the 5 V rail of the source; ``battery_hours`` None: no battery; ``estimates``: parts whose power is one."""

    build: Build
    supply: str
    battery: str | None
    share: float
    volts: float
    watts: Mapping[State, float]
    average_w: float
    battery_wh: float | None
    battery_hours: float | None
    limits: tuple[Limit, ...]
    estimates: tuple[str, ...]

    def amps(self, state: State) -> float:
        """On the rail."""
        return self.watts[state] / self.volts

    @property
    def exceeded(self) -> bool:
        """Whether any limit is."""
        return any(limit.verdict == "exceeded" for limit in self.limits)


def budget(
    parts: Mapping[str, Part],
    builds: Builds,
    build: Build,
    share: float,
    *,
    supply: str | None = None,
    battery: str | None = None,
    on_supply: bool = False,
    stock_config: bool = False,
) -> Budget:
    """``share``: of the time on that is measured; ``supply``, ``battery``: others than the build's; ``on_supply``: no battery between;
    ``stock_config``: without the lines of config.txt that raise USB limits."""
    supply, battery = supply or build.supply, None if on_supply else battery or build.battery
    load = _Load(parts, build)
    watts = {state: load.below(ROOT_FEED, state) for state in STATES}
    average_w = share * watts["measuring"] + (1 - share) * watts["idle"]
    held = parts[battery].capacity_wh if battery else None
    usable = held * builds.efficiency if held is not None else None
    peak_a = watts["peak"] / builds.volts
    limits = [Limit("supply", supply, peak_a, parts[supply].feeds_a or 0.0)]
    if battery:
        limits.append(Limit("battery", battery, peak_a, parts[battery].feeds_a or 0.0))
    for feeder, usb in builds.usb.items():
        if feeder in parts and build.name in parts[feeder].quantities:
            limits += _usb(load, builds.volts, feeder, usb, battery or supply, stock_config)
    told = tuple(one for one in build.fed_by if {"idle_w", "typical_w", "peak_w"} & parts[one].estimates)
    hours = usable / average_w if usable is not None and average_w > 0 else None
    return Budget(build, supply, battery, share, builds.volts, watts, average_w, usable, hours, tuple(limits), told)


class _Load:
    def __init__(self, parts: Mapping[str, Part], build: Build) -> None:
        self._parts, self._build = parts, build

    def count(self, part: str) -> int:
        return self._parts[part].quantities[self._build.name]

    def whole(self, part: str, state: State) -> float:
        """W of all of it and of what it feeds."""
        one = self._parts[part]
        own = {"idle": one.idle_w, "measuring": one.typical_w, "peak": one.peak_w}[state] or 0.0
        return own * self.count(part) + self.below(part, state)

    def below(self, feeder: str, state: State, *, usb: bool = False) -> float:
        """W of what ``feeder`` feeds, of what hangs on its USB ports only if ``usb``."""
        return sum(self.whole(part, state) for part in self.fed(feeder, usb=usb))

    def fed(self, feeder: str, *, usb: bool = False) -> list[str]:
        return [part for part, feed in self._build.fed_by.items() if feed.by == feeder and (feed.usb or not usb)]


def _usb(load: _Load, volts: float, feeder: str, usb: Usb, source: str, stock_config: bool) -> list[Limit]:
    hung = load.fed(feeder, usb=True)
    if not hung:
        return []
    raised = source in usb.full_with if usb.full_with else not stock_config
    low = usb.low_a is not None and not raised
    what = f"with {usb.raised_by}" if usb.raised_by else f"fed by {' or '.join(usb.full_with)}"
    note = "" if usb.low_a is None else f"{usb.total_a:g} A {what}, else {usb.low_a:g} A"
    limit_a = usb.low_a if low and usb.low_a is not None else usb.total_a
    limits = [Limit("usb", feeder, load.below(feeder, "peak", usb=True) / volts, limit_a, note)]
    most_a, most = max((load.whole(part, "peak") / load.count(part) / volts, part) for part in hung)
    if usb.port_a is not None:
        limits.append(Limit("port", feeder, most_a, usb.port_a, most))
    if usb.standard_a is not None:
        limits.append(Limit("standard", feeder, most_a, usb.standard_a, most))
    return limits


def table(budget: Budget, hours_on: float, campaign: str) -> str:
    """For a terminal."""
    build, hours = budget.build, budget.battery_hours
    lines = [f"{build.title} ({build.name}): {budget.share:.0%} of the time measuring ({campaign})"]
    watts = dict[str, float](budget.watts.items()) | {"average": budget.average_w}
    lines += [f"  {name:<10} {one / budget.volts:5.2f} A  {one:6.2f} W" for name, one in watts.items()]
    lines.append("  no battery" if hours is None else f"  {budget.battery}: {hours:.1f} h of its {budget.battery_wh:.0f} Wh at 5 V, "
                 f"{hours / hours_on:.1f} days of {hours_on:g} h")  # fmt: skip
    for limit in sorted(budget.limits, key=lambda one: ("exceeded", "close", "kept").index(one.verdict)):
        what, mend = _WORDS[limit.kind]
        lines.append(
            f"  {limit.verdict:<9} {what.format(of=limit.of, note=limit.note)}: {limit.drawn_a:.2f} A at peak of {limit.limit_a:.2f} A"
            + (f" ({limit.note})" if limit.kind == "usb" and limit.note else "")
            + (f"; hint: {mend}" if limit.verdict != "kept" else "")
        )
    if budget.estimates:
        lines.append(f"  power is an estimate for: {', '.join(budget.estimates)}")
    return "\n".join(lines) + "\n"
