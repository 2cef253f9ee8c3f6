"""``tandem campaign``: the papers' campaigns and one's own."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli import campaign_run
from tandem.cli.run import CONFIG
from tandem.schema.campaign import PAPER

if TYPE_CHECKING:
    from tandem.app.campaign.estimate import Estimate, PlanFit
    from tandem.app.config import Config
    from tandem.schema.campaign import Campaign


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "campaign", help="campaigns that run themselves", description="Campaigns that run themselves."
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="the papers' campaigns")
    listing.add_argument("--json", action="store_true", help="print one JSON object")
    listing.set_defaults(func=_list)
    show = actions.add_parser("show", help="print a campaign's file")
    show.add_argument("campaign", metavar="NAME|FILE")
    show.set_defaults(func=_show)
    check = actions.add_parser(
        "check",
        help="is it right, and what does it take",
        description="Checks all forms of the file, the experiments that it names and their parameters; estimates runs, days and bytes "
        "of each SIM for one form. Touches no network. Exit status: 0 good, 1 it does not fit the plan, 2 a mistake, told with file, "
        "line and hint.",
    )
    check.add_argument("campaign", metavar="NAME|FILE")
    _add_form(check)
    check.add_argument(
        "--plan-bytes",
        type=_bytes,
        metavar="N",
        help="what each SIM may carry a month, both ways; default: 10 GB, as for the day_bytes of a SIM without a plan",
    )
    check.add_argument(
        "--config",
        type=Path,
        default=CONFIG,
        metavar="FILE",
        help="for experiments of your own, and for the bytes of [round_trip]; default: %(default)s",
    )
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(func=_check)
    _add_run(actions)
    _add_idle(actions)
    for name, func, what in (
        ("status", campaign_run.status, "how far it is, where it came from, and what the server has queued"),
        ("stop", campaign_run.stop, "begin no more runs; run goes on with it"),
    ):
        other = actions.add_parser(name, help=what, description=f"{what.capitalize()}.")
        if name == "status":
            other.add_argument("campaign", nargs="?", metavar="NAME", help="default: the one under way, or the last")
        other.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
        other.add_argument("--json", action="store_true", help="print one JSON object")
        other.set_defaults(func=func)


def _add_idle(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    idle = actions.add_parser(
        "idle",
        help="whether maintenance may go on",
        description="For what is not urgent, as upgrades of the system: is a run under way, or the quiet before one? Exit status: 0 "
        "nothing is measured now, or no collector runs; 1 held: wait; 2 the configuration is wrong. "
        "docs/contributing/collector.md shows it in a systemd unit.",
    )
    idle.add_argument(
        "--wait", type=_seconds, default=0.0, metavar="S", help="wait up to S seconds until nothing is measured"
    )
    idle.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    idle.add_argument("--json", action="store_true", help="print one JSON object")
    idle.set_defaults(func=campaign_run.idle)


def _add_form(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--form",
        default=PAPER,
        metavar="NAME",
        help="pilot: two weeks within 10 GB a SIM; short: for the bench; or another of the file's; default: paper, the file as it stands",
    )


def _bytes(text: str) -> int:
    value = int(text)
    if not 1 <= value <= 10**15:
        raise argparse.ArgumentTypeError("1 to 10^15 bytes")
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 86400:
        raise argparse.ArgumentTypeError("0 to 86400 seconds")
    return value


def _add_run(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = actions.add_parser(
        "run",
        help="run a campaign, or go on with it",
        description="Hands the campaign to the running collector, which goes on with it after every restart; without one, runs it here "
        "until it is done or waits for a hand. With --label: one run of each step that begins by hand. Exit status: 0 accepted or "
        "done, 1 a run failed on the network (that is recorded), 2 wrong usage or file, 3 this machine lacks something.",
    )
    run.add_argument("campaign", metavar="NAME|FILE")
    _add_form(run)
    run.add_argument("--label", metavar="L", help="as which a run by hand is kept, as in walking")
    run.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="which path plays a role; default: in their order",
    )
    run.add_argument(
        "--timezone",
        metavar="ZONE",
        help="whose local time windows and days are, as in America/Los_Angeles; default: the file's, else this machine's",
    )
    run.add_argument(
        "--allow-substitutes", action="store_true", help="run without what the campaign requires; every result says so"
    )
    run.add_argument("--anew", action="store_true", help="begin again, what there was is kept beside it")
    run.add_argument("--wait", action="store_true", help="with a running collector: wait for the end")
    run.add_argument("--config", type=Path, default=CONFIG, metavar="FILE", help="default: %(default)s")
    run.add_argument("--json", action="store_true", help="print the state as one JSON object")
    run.set_defaults(func=campaign_run.run)


def _list(args: argparse.Namespace) -> int:
    from tandem import campaigns
    from tandem.app.campaign.files import load

    found = {name: load(name) for name in campaigns.names()}
    if args.json:
        print(json.dumps([{"name": n, "title": c.title, "reference": c.reference} for n, c in found.items()]))
        return 0
    for name, campaign in found.items():
        print(f"{name:<20} {campaign.title}")
    return 0


def _show(args: argparse.Namespace) -> int:
    from tandem.app.campaign.files import source
    from tandem.schema.campaign import CampaignError

    try:
        print(source(args.campaign)[0], end="")
    except CampaignError as error:
        return campaign_run.refused(error)
    return 0


def _check(args: argparse.Namespace) -> int:
    from tandem.app.campaign.check import fitted
    from tandem.app.campaign.estimate import estimate, plan_fit
    from tandem.app.campaign.files import source
    from tandem.app.config import UNTOLD_PLAN_BYTES, ConfigError
    from tandem.app.runs.registry import Registry
    from tandem.cli.view.campaign_text import check_lines, kernel_lines, plan_lines
    from tandem.mptcp import kernels
    from tandem.schema.campaign import CampaignError
    from tandem.schema.campaign_reader import forms, parse

    try:
        config = _config(args.config)
        registry = Registry(config.experiments if config else None)
        text, file = source(args.campaign)
        campaign, left_out = fitted(parse(text, file, form=args.form), registry)
        others = forms(text, file)
        for other in others.values():
            fitted(other, registry)
    except (CampaignError, ConfigError) as error:
        return campaign_run.refused(error)
    found = estimate(campaign)
    fit = plan_fit(found, args.plan_bytes or UNTOLD_PLAN_BYTES, _round_trips(config))
    there = kernels.installed()
    if args.json:
        print(json.dumps({**_told(campaign, found, fit, left_out), "kernels": [asdict(one) for one in there]}))
    else:
        lines = [*check_lines(campaign, found, left_out), *kernel_lines(campaign, there), *plan_lines(found, fit)]
        print("\n".join([*lines, "the campaign is good"]))
    if fit.reason is None:
        return 0
    smaller = "--form pilot" if "pilot" in others and campaign.form != "pilot" else "fewer repetitions, fewer bytes"
    what = f"{file}: form {campaign.form} does not fit the plan: {fit.reason}; hint: {smaller}, or --plan-bytes N"
    return campaign_run.refused(CampaignError(what), 1)


def _told(campaign: Campaign, found: Estimate, fit: PlanFit, left_out: list[str]) -> dict[str, Any]:
    return {
        "name": campaign.name,
        "file": campaign.file,
        "form": campaign.form,
        "requires": asdict(campaign.requires),
        "left_out": left_out,
        "estimate": asdict(found),
        "plan": {**asdict(fit), "fits": fit.reason is None},
    }


def _config(file: Path) -> Config | None:
    """None: this machine has none, and none was named."""
    from tandem.app.config import load

    return load(file) if file != CONFIG or file.exists() else None


def _round_trips(config: Config | None) -> int:
    """Bytes a day of one SIM: its own questions, and the records of all paths, since any one may carry the uploads."""
    if config is None or not config.round_trip.enabled:
        return 0
    return config.round_trip.day_bytes + len(config.paths) * config.round_trip.records_day_bytes
