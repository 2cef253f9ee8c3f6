"""``hardware/power-budget``: what a build draws, how long its battery lasts, which limits hold. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tandem.app.campaign.estimate import estimate
from tandem.schema.campaign import Campaign, CampaignError, Trigger
from tandem.schema.campaign_reader import parse, text_of
from tandem_hardware import bom, builds
from tandem_hardware.power import Budget, as_json, budget, table
from tandem_hardware.sources import ROOT, LackError, SourceError

_JSON = """--json prints one object: format (tandem-power-budget/1), runs_per_day, bytes_per_day (over the path that carries most;
null with --duty), assumed_steps, and budgets, each with build, campaign, duty_share, hours_on, volts, current_a and power_w (idle,
measuring, peak, average), supply, battery, battery_hours, battery_days (null without a battery), limits (kind: supply, battery, usb,
port, standard; of, drawn_a, limit_a, margin_a, verdict: kept, close, exceeded; note), warnings (level: exceeded, close; kind, of, text,
mend) and estimates (parts whose power is one)."""
CAMPAIGNS = ROOT / "collector" / "src" / "tandem" / "campaigns"


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(
        prog="power-budget",
        description="Computes current on the 5 V rail, hours per battery and margins from hardware/bom.csv, hardware/builds.toml and a "
        "campaign. Exit status: 0 every limit is kept, 1 one is exceeded, 2 bad input, 3 this machine lacks a program.",
        epilog=_JSON,
    )
    add = top.add_argument
    add("--build", choices=bom.BUILDS, help="default: all")
    add("--campaign", metavar="NAME|FILE", help="default: as builds.toml says")
    share = "0 to 1: share of the time on that is measured, in place of a campaign"
    add("--duty", type=_within(0.0, 1.0), metavar="SHARE", help=share)
    add(
        "--hours-on", type=_within(0.1, 24.0), metavar="H", help="hours a day on the move; default: as builds.toml says"
    )
    add("--battery", metavar="ID", help="another battery of bom.csv")
    add("--supply", metavar="ID", help="another mains supply of bom.csv")
    add("--on-supply", action="store_true", help="without the battery: the supply alone feeds the build")
    add("--stock-config", action="store_true", help="without the image's lines in config.txt that raise USB limits")
    add("--json", action="store_true", help="print one JSON object")
    add("--plot", type=Path, metavar="FILE.svg|png", help="draw it, too (needs matplotlib)")
    return top


def _within(low: float, high: float) -> Callable[[str], float]:
    def number(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is no number from {low:g} to {high:g}")
        return value

    return number


def main(argv: Sequence[str] | None = None) -> int:
    """See the parser for the exit status."""
    args = parser().parse_args(argv)
    try:
        return _run(args)
    except (SourceError, CampaignError, LackError) as error:
        sys.stderr.write(f"power-budget: {error}\n")
        return 3 if isinstance(error, LackError) else 2


def _run(args: argparse.Namespace) -> int:
    parts = bom.load()
    known = builds.load(parts)
    hours_on: float = args.hours_on or known.hours_on
    busy: Duty | None = None
    if args.duty is None:
        campaign = read_campaign(args.campaign or known.campaign)
        name, busy = campaign.name, duty(campaign, hours_on)
    elif args.campaign is not None:
        raise SourceError("--duty and --campaign: one of the two")
    else:
        name = "as told"
    for kind, id_ in (("battery", args.battery), ("supply", args.supply)):
        good = [part.id for part in parts.values() if part.id.startswith(f"{kind}-") and part.feeds_a]
        if id_ is not None and id_ not in good:
            raise SourceError(f"--{kind} {id_}: no {kind} of bom.csv; hint: one of {', '.join(good)}")
    found = [
        budget(
            parts, known, one, 1.0 if one.always_on else busy.share if busy else args.duty, supply=args.supply,
            battery=one.battery and args.battery, on_supply=args.on_supply, stock_config=args.stock_config,
        )
        for one in known.builds.values() if args.build in (None, one.name)
    ]  # fmt: skip
    if args.plot is not None:
        _plot(args.plot, found, hours_on)
    if args.json:
        content = {
            "format": "tandem-power-budget/1",
            "bytes_per_day": round(busy.bytes_per_day) if busy else None,
            "runs_per_day": round(busy.runs_per_day, 2) if busy else None,
            "assumed_steps": list(busy.assumed) if busy else [],
            "budgets": [as_json(one, hours_on, name) for one in found],
        }
        print(json.dumps(content, indent=1))
    else:
        print("\n".join(table(one, hours_on, name) for one in found), end="")
    if busy and not args.json:
        print(
            f"\n{name}, {hours_on:g} h a day on: {busy.runs_per_day:.0f} runs of {busy.seconds_per_run:.0f} s, "
            f"{busy.bytes_per_day / 1e9:.2f} GB over the path that carries most, at assumed rates"
        )
        if busy.assumed:
            print(f"taken as begun whenever they may (nothing says how often): {', '.join(busy.assumed)}")
    return 1 if any(one.exceeded for one in found) else 0


def read_campaign(name: str) -> Campaign:
    """A campaign that comes with the kit, or a file. CampaignError: neither, or wrong."""
    shipped = CAMPAIGNS / f"{name}.toml"
    if "/" not in name and shipped.is_file():
        return parse(text_of(str(shipped)), name)
    if not Path(name).is_file():
        names = ", ".join(sorted(path.stem for path in CAMPAIGNS.glob("*.toml")))
        raise CampaignError(f"{name}: no such campaign; hint: a file, or one of {names}")
    return parse(text_of(name), name)


def _plot(path: Path, found: list[Budget], hours_on: float) -> None:
    if path.suffix not in (".svg", ".png"):
        raise SourceError(f"--plot {path}: neither .svg nor .png")
    try:
        from tandem_hardware.power_plot import draw
    except ImportError as error:
        raise LackError(f"{error.name} is missing; hint: ./kit setup, or without --plot") from error
    try:
        path.write_bytes(draw(found, hours_on, path.suffix[1:]))
    except OSError as error:
        raise SourceError(f"--plot {path}: {error.strerror}") from error


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


if __name__ == "__main__":
    sys.exit(main())
