"""``hardware/power-budget``: what a build draws, how long its battery lasts, which limits hold. Standard library only."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from tandem.schema.campaign import Campaign, CampaignError
from tandem.schema.campaign_reader import parse
from tandem.schema.campaign_text import text_of
from tandem_hardware import bom, builds
from tandem_hardware.duty import Duty, duty
from tandem_hardware.errors import LackError, SourceError
from tandem_hardware.places import ROOT
from tandem_hardware.power import Budget, budget
from tandem_hardware.power_text import table, told

CAMPAIGNS = ROOT / "collector" / "src" / "tandem" / "campaigns"


def parser() -> argparse.ArgumentParser:
    """Of the command line."""
    top = argparse.ArgumentParser(
        prog="power-budget",
        description="Computes current on the 5 V rail, hours per battery and margins from hardware/bom.csv, hardware/builds.toml and a "
        "campaign. Exit status: 0 every limit is kept, 1 one is exceeded, 2 bad input, 3 this machine lacks a program.",
    )
    top.add_argument("--build", choices=bom.BUILDS, help="default: all")
    top.add_argument("--campaign", metavar="NAME|FILE", help="default: as builds.toml says")
    top.add_argument(
        "--duty",
        type=_share,
        metavar="SHARE",
        help="0 to 1: share of the time on that is measured, in place of a campaign",
    )
    top.add_argument(
        "--hours-on", type=_hours, metavar="H", help="hours a day on the move; default: as builds.toml says"
    )
    top.add_argument("--battery", metavar="ID", help="another battery of bom.csv")
    top.add_argument("--supply", metavar="ID", help="another mains supply of bom.csv")
    top.add_argument("--on-supply", action="store_true", help="without the battery: the supply alone feeds the build")
    top.add_argument(
        "--stock-config", action="store_true", help="without the image's lines in config.txt that raise USB limits"
    )
    top.add_argument("--json", action="store_true", help="print one JSON object")
    top.add_argument("--plot", type=Path, metavar="FILE.svg|png", help="draw it, too (needs matplotlib)")
    return top


def _share(text: str) -> float:
    return _within(text, 0.0, 1.0)


def _hours(text: str) -> float:
    return _within(text, 0.1, 24.0)


def _within(text: str, low: float, high: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from {low:g} to {high:g}")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """See the parser for the exit status."""
    args = parser().parse_args(argv)
    try:
        return _run(args)
    except (SourceError, CampaignError) as error:
        sys.stderr.write(f"power-budget: {error}\n")
        return 2
    except LackError as error:
        sys.stderr.write(f"power-budget: {error}\n")
        return 3


def _run(args: argparse.Namespace) -> int:
    parts = bom.load()
    known = builds.load(parts)
    hours_on = args.hours_on or known.hours_on
    name, share, busy = _duty(args, known.campaign, hours_on)
    _feeder(parts, "battery", args.battery)
    _feeder(parts, "supply", args.supply)
    if args.plot is not None and args.plot.suffix not in (".svg", ".png"):
        raise SourceError(f"--plot {args.plot}: neither .svg nor .png")
    wanted = [build for build in known.builds.values() if args.build in (None, build.name)]
    found = [
        budget(
            parts, known, build, 1.0 if build.always_on else share, supply=args.supply, stock_config=args.stock_config,
            battery=None if build.battery is None else args.battery, on_supply=args.on_supply,
        )
        for build in wanted
    ]  # fmt: skip
    if args.plot is not None:
        _plot(args.plot, found, hours_on)
    _say(args.json, found, hours_on, name, busy)
    return 1 if any(one.exceeded for one in found) else 0


def _say(as_json: bool, found: list[Budget], hours_on: float, name: str, busy: Duty | None) -> None:
    if as_json:
        assumed = list(busy.assumed) if busy else []
        content = {
            "format": "tandem-power-budget/1",
            "bytes_per_day": round(busy.bytes_per_day) if busy else None,
            "runs_per_day": round(busy.runs_per_day, 2) if busy else None,
            "assumed_steps": assumed,
            "budgets": [told(one, hours_on, name) for one in found],
        }
        sys.stdout.write(json.dumps(content, indent=1) + "\n")
        return
    sys.stdout.write("\n".join(table(one, hours_on, name) for one in found))
    if busy:
        sys.stdout.write(
            f"\n{name}, {hours_on:g} h a day on: {busy.runs_per_day:.0f} runs of {busy.seconds_per_run:.0f} s, "
            f"{busy.bytes_per_day / 1e9:.2f} GB over the path that carries most, at assumed rates\n"
        )
        if busy.assumed:
            sys.stdout.write(f"taken as begun whenever they may (nothing says how often): {', '.join(busy.assumed)}\n")


def _duty(args: argparse.Namespace, default: str, hours_on: float) -> tuple[str, float, Duty | None]:
    if args.duty is not None:
        if args.campaign is not None:
            raise SourceError("--duty and --campaign: one of the two")
        return "as told", args.duty, None
    campaign = read_campaign(args.campaign or default)
    busy = duty(campaign, hours_on)
    return campaign.name, busy.share, busy


def read_campaign(told_name: str) -> Campaign:
    """A campaign that comes with the kit, or a file. CampaignError: neither, or wrong."""
    shipped = CAMPAIGNS / f"{told_name}.toml"
    if "/" not in told_name and shipped.is_file():
        return parse(text_of(str(shipped)), told_name)
    if not Path(told_name).is_file():
        names = ", ".join(sorted(path.stem for path in CAMPAIGNS.glob("*.toml")))
        raise CampaignError(f"{told_name}: no such campaign; mend: a file, or one of {names}")
    return parse(text_of(told_name), told_name)


def _feeder(parts: dict[str, bom.Part], kind: str, told_id: str | None) -> None:
    good = [part.id for part in parts.values() if part.id.startswith(f"{kind}-") and part.feeds_a]
    if told_id is not None and told_id not in good:
        raise SourceError(f"--{kind} {told_id}: no {kind} of bom.csv; mend: one of {', '.join(good)}")


def _plot(path: Path, found: list[Budget], hours_on: float) -> None:
    try:
        from tandem_hardware.power_plot import draw
    except ImportError as error:
        raise LackError(f"{error.name} is missing; mend: ./kit setup, or without --plot") from error
    try:
        path.write_bytes(draw(found, hours_on, path.suffix[1:]))
    except OSError as error:
        raise SourceError(f"--plot {path}: {error.strerror}") from error


if __name__ == "__main__":
    sys.exit(main())
