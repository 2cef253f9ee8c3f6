"""``hardware/power-budget``: what a build draws, how long its battery lasts, which limits hold. Standard library only."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from tandem import campaigns
from tandem.app.campaign.estimate import estimate
from tandem.schema.campaign import Campaign, CampaignError, Trigger
from tandem_hardware import bom, builds
from tandem_hardware.power import budget, table
from tandem_hardware.sources import SourceError


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(
        prog="power-budget",
        description="Computes current on the 5 V rail, hours per battery and margins from hardware/bom.csv, hardware/builds.toml and a "
        "campaign. Exit status: 0 every limit is kept, 1 one is exceeded, 2 bad input.",
    )
    add = top.add_argument
    add("--build", choices=bom.BUILDS, help="default: all")
    add("--campaign", metavar="NAME|FILE", help="default: as builds.toml says")
    add("--duty", type=float, metavar="SHARE", help="share of the time on that is measured, in place of a campaign")
    add("--hours-on", type=float, metavar="H", help="hours a day on the move; default: as builds.toml says")
    add("--battery", metavar="ID", help="another battery of bom.csv")
    add("--supply", metavar="ID", help="another mains supply of bom.csv")
    add("--on-supply", action="store_true", help="without the battery: the supply alone feeds the build")
    add("--stock-config", action="store_true", help="without the image's lines in config.txt that raise USB limits")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """See the parser for the exit status."""
    args = parser().parse_args(argv)
    try:
        return _run(args)
    except (SourceError, CampaignError) as error:
        sys.stderr.write(f"power-budget: {error}\n")
        return 2


def _run(args: argparse.Namespace) -> int:
    parts = bom.load()
    known = builds.load(parts)
    for option, value, low, high in (("--duty", args.duty, 0.0, 1.0), ("--hours-on", args.hours_on, 0.1, 24.0)):
        if value is not None and not low <= value <= high:
            raise SourceError(f"{option} {value:g}: no number from {low:g} to {high:g}")
    hours_on: float = args.hours_on or known.hours_on
    busy: Duty | None = None
    if args.duty is None:
        campaign = campaigns.load(args.campaign or known.campaign)
        name, busy = campaign.name, duty(campaign, hours_on)
    elif args.campaign is not None:
        raise SourceError("--duty and --campaign: one of the two")
    else:
        name = "as told"
    for kind, id_ in (("battery", args.battery), ("supply", args.supply)):
        good = [part.id for part in parts.values() if part.id.startswith(f"{kind}-") and part.feeds_a]
        if id_ not in (None, *good):
            raise SourceError(f"--{kind} {id_}: no {kind} of bom.csv; hint: one of {', '.join(good)}")
    found = [
        budget(
            parts, known, one, 1.0 if one.always_on else busy.share if busy else args.duty, supply=args.supply,
            battery=one.battery and args.battery, on_supply=args.on_supply, stock_config=args.stock_config,
        )
        for one in known.builds.values() if args.build in (None, one.name)
    ]  # fmt: skip
    print("\n".join(table(one, hours_on, name) for one in found), end="")
    if busy:
        print(
            f"\n{name}, {hours_on:g} h a day on: {busy.runs_per_day:.0f} runs of {busy.seconds_per_run:.0f} s, "
            f"{busy.bytes_per_day / 1e9:.2f} GB over the path that carries most, at assumed rates"
        )
        if busy.assumed:
            print(f"taken as begun whenever they may (nothing says how often): {', '.join(busy.assumed)}")
    return 1 if any(one.exceeded for one in found) else 0


@dataclass(frozen=True, slots=True)
class Duty:
    """Of a day with every step still to do. ``share``: of the time on, from 0 to 1; ``bytes_per_day``: over the path that carries most;
    ``assumed``: steps of which nothing says how often they start, taken as if they started whenever they may."""

    share: float
    runs_per_day: float
    seconds_per_run: float
    bytes_per_day: float
    assumed: tuple[str, ...]


def duty(campaign: Campaign, hours_on: float) -> Duty:
    """What triggers ask for, at most all the time; less where a day's runs or bytes are limited. Runs as the collector estimates them."""
    on_s, whole_s, count, moved = hours_on * 3600, 0.0, 0.0, dict.fromkeys(campaign.roles, 0.0)
    assumed: tuple[str, ...] = ()
    for step, cost in zip(campaign.steps, estimate(campaign).steps, strict=True):
        took_s = (cost.seconds + campaign.quiet_s) / cost.runs
        runs = _runs_per_day(step.trigger, took_s, on_s)
        if runs is None:
            runs, assumed = on_s / max(step.trigger.gap_s, took_s), (*assumed, step.name)
        count, whole_s = count + runs, whole_s + runs * took_s
        for role, size in cost.bytes_by_role.items():
            moved[role] += runs * size / cost.runs
    day_bytes, budget_ = max(moved.values(), default=0.0), campaign.budget
    part = min(
        1.0, on_s / whole_s if whole_s else 1.0,
        budget_.day_runs / count if budget_.day_runs is not None and count else 1.0,
        budget_.day_bytes / day_bytes if budget_.day_bytes is not None and day_bytes else 1.0,
    )  # fmt: skip
    busy_s = whole_s - count * campaign.quiet_s
    return Duty(
        min(1.0, part * busy_s / on_s), part * count, busy_s / count if count else 0.0, part * day_bytes, assumed
    )


def _runs_per_day(trigger: Trigger, took_s: float, on_s: float) -> float | None:
    """Runs that a day with ``on_s`` asks for; None where nothing says so."""
    apart = max(trigger.gap_s, trigger.every_s or 0.0, trigger.mean_s or 0.0, took_s, 1e-3)
    if trigger.on == "window":
        span_s = ((trigger.end or 0) - (trigger.start or 0)) % 1440 * 60
        return min(on_s, span_s or 86400) / apart
    if trigger.on in ("always", "periodic", "poisson"):
        return on_s / apart
    return None if trigger.expected_per_day is None else min(trigger.expected_per_day, on_s / apart)
