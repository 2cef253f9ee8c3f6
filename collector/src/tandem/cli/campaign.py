"""``tandem campaign``: the papers' campaigns and one's own; run by the running collector or, when none runs, by this process."""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tandem.cli.command import (
    CONFIG,
    Actions,
    CommandError,
    ExitCode,
    answer_of,
    columns,
    command,
    configuration,
    ends_on_signals,
    group,
    log_to_stderr,
    number,
    optional_config,
    output,
    say,
)
from tandem.schema.campaign import PAPER

if TYPE_CHECKING:
    from tandem.app.campaign.estimate import Estimate, PlanFit
    from tandem.app.config import Config
    from tandem.mptcp.kernels import Installed
    from tandem.schema.campaign import Campaign, Step

_LOOK_S = 1.0


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    actions = group(commands, "campaign", "campaigns that run themselves", "Campaigns that run themselves.")
    command(actions, "list", _list, "the papers' campaigns", json=True)
    show = command(actions, "show", _show, "print a campaign's file")
    check = command(actions, "check", _check, "is it right, and what does it take", json=True)
    check.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=f"for experiments of your own, and for the bytes of [round_trip]; default: {CONFIG}, where there is one",
    )
    check.add_argument(
        "--plan-bytes",
        type=number(1, 10**15, "bytes", whole=True),
        metavar="N",
        help="what each SIM may carry a month, both ways; default: 10 GB, as for the day_bytes of a SIM without a plan",
    )
    run = command(actions, "run", _run, "run a campaign, or go on with it", config=True, json=True)
    for one in (show, check, run):
        one.add_argument("campaign", metavar="NAME|FILE")
    for one in (check, run):
        one.add_argument(
            "--form",
            default=PAPER,
            metavar="NAME",
            help="pilot: two weeks within 10 GB a SIM; short: for the bench; or another of the file's; default: paper, the file as is",
        )
    run.add_argument("--label", metavar="L", help="as which a run by hand is kept, as in walking")
    roles = "which path plays a role; default: in their order"
    run.add_argument("--path", action="append", default=[], metavar="ROLE=NAME", help=roles)
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
    idle = command(actions, "idle", _idle, "whether maintenance may go on", config=True, json=True)
    wait = "wait up to S seconds until nothing is measured"
    idle.add_argument("--wait", type=number(0, 86400, "seconds"), default=0.0, metavar="S", help=wait)
    status = command(
        actions,
        "status",
        _status,
        "how far it is, where it came from, and what the server has queued",
        config=True,
        json=True,
    )
    status.add_argument("campaign", nargs="?", metavar="NAME", help="default: the one under way, or the last")
    command(actions, "stop", _stop, "begin no more runs; run goes on with it", config=True, json=True)


def _list(args: argparse.Namespace) -> None:
    from tandem import campaigns
    from tandem.campaigns import load

    found = {name: load(name) for name in campaigns.names()}
    rows = [{"name": name, "title": one.title, "reference": one.reference} for name, one in found.items()]
    output(args, rows, lambda: columns([(row["name"], row["title"]) for row in rows]))


def _show(args: argparse.Namespace) -> None:
    from tandem.campaigns import source

    print(source(args.campaign)[0], end="")


def _check(args: argparse.Namespace) -> None:
    """Checks all forms of the file, the experiments that it names and their parameters; estimates runs, days and bytes of each SIM for
    one form. Touches no network. Exit status: 0 good, 1 it does not fit the plan, 2 a mistake, with file, line and hint."""
    from tandem.app.campaign.check import fitted
    from tandem.app.campaign.estimate import estimate, plan_fit
    from tandem.app.config_schema import UNTOLD_PLAN_BYTES
    from tandem.app.runs.registry import Registry
    from tandem.campaigns import source
    from tandem.mptcp import kernels
    from tandem.schema.campaign_reader import forms, parse

    config = optional_config(args.config)
    registry = Registry(config.experiments if config else None)
    text, file = source(args.campaign)
    campaign, left_out = fitted(parse(text, file, form=args.form), registry)
    others = forms(text, file)
    for other in others.values():
        fitted(other, registry)
    found = estimate(campaign)
    fit = plan_fit(found, args.plan_bytes or UNTOLD_PLAN_BYTES, _round_trip_bytes(config))
    there = kernels.installed()
    result = {
        "name": campaign.name,
        "file": campaign.file,
        "form": campaign.form,
        "requires": asdict(campaign.requires),
        "left_out": left_out,
        "estimate": asdict(found),
        "plan": {**asdict(fit), "fits": fit.reason is None},
        "kernels": [asdict(one) for one in there],
    }
    lines = [*_check_lines(campaign, found, left_out), *kernel_lines(campaign, there), *_plan_lines(found, fit)]
    output(args, result, lambda: [*lines, "the campaign is good"])
    if fit.reason is not None:
        smaller = "--form pilot" if "pilot" in others and campaign.form != "pilot" else "fewer repetitions, fewer bytes"
        what = f"{file}: form {campaign.form} does not fit the plan: {fit.reason}; hint: {smaller}, or --plan-bytes N"
        raise CommandError(what, ExitCode.NEGATIVE)


def _round_trip_bytes(config: Config | None) -> int:
    """Bytes a day of one SIM: its own round trips, and the records of all paths, since any one may carry the uploads."""
    if config is None or not config.round_trip.enabled:
        return 0
    return config.round_trip.day_bytes + len(config.paths) * config.round_trip.records_day_bytes


def _run(args: argparse.Namespace) -> int:
    """Hands the campaign to the running collector, which goes on with it after every restart; without one, runs it here until it is
    done or waits for a hand. With --label: one run of each step that begins by hand. Exit status: 0 accepted or done, 1 a run failed on
    the network (that is recorded), 2 wrong usage or file, 3 this machine misses a requirement."""

    config = configuration(args)
    request = _request(args, config)
    answer = _ask(config, request)
    if answer is None:
        return _run_here(args, config, request)
    state = answer.get("campaign")
    while args.wait and state is not None and state.get("state") in ("running", "waiting"):
        time.sleep(_LOOK_S)
        answer = _ask(config, {"op": "campaign", "action": "status"})
        if answer is None:
            what = "the collector ended before the campaign did; it goes on at its next start"
            raise CommandError(what, ExitCode.NEGATIVE)
        state = answer.get("campaign")
    return _report(args, state, ended=args.wait)


def _request(args: argparse.Namespace, config: Config) -> dict[str, Any]:
    """The request to a collector, checked against what is installed and what the kernels have."""
    from tandem.app.campaign.check import fit
    from tandem.app.runs.registry import Registry
    from tandem.campaigns import source

    text, file = source(args.campaign)
    paths: dict[str, str] = {}
    for pair in args.path:
        role, sign, paths[role] = pair.partition("=")
        if not sign:
            raise CommandError(f"--path {pair}: no ROLE=NAME; hint: as in --path wifi={config.paths[0].name}")
    found = fit(
        text,
        file,
        form=args.form,
        paths=paths,
        allow=args.allow_substitutes,
        config=config,
        installed=Registry(config.experiments),
        timezone=args.timezone,
    )
    for line in found.left_out:
        say(line)
    return {
        "op": "campaign",
        "action": "begin",
        "text": text,
        "file": file,
        "form": args.form,
        "timezone": args.timezone,
        "steps": [s.name for s in found.campaign.steps],
        "paths": found.paths,
        "substitutes": found.substitutes,
        "label": args.label,
        "anew": args.anew,
    }


def _ask(config: Config, request: dict[str, Any]) -> dict[str, Any] | None:
    """The running collector's answer, None when none runs; CommandError."""
    from tandem.app.daemon.status_socket import NAME, NoCollectorError

    try:
        return answer_of(config.folder / NAME, request, 30.0, ExitCode.USAGE)
    except NoCollectorError:
        return None


def _run_here(args: argparse.Namespace, config: Config, request: dict[str, Any]) -> int:
    from tandem.app.daemon.supervisor import Supervisor
    from tandem.campaigns import load

    log_to_stderr()
    # A person's one campaign: what the server has for this probe waits for the collector.
    config = replace(config, campaigns=replace(config.campaigns, from_server=False))
    campaign = load(args.campaign, form=args.form)
    needs_modems = any(
        s.trigger.on in ("mobility_start", "event", "speed_class", "place")
        or (s.conditions.mobile, s.conditions.speed_class) != (None, None)
        for s in campaign.steps
    )
    supervisor = Supervisor(config, modems=needs_modems)
    ends_on_signals(supervisor)
    supervisor.start()
    try:
        supervisor.service.campaign(request)
        part = supervisor.campaigns.campaigns
        supervisor.run(until=lambda: not part.under_way or part.waits_for_a_hand)
        state = part.status()
    finally:
        supervisor.close()
    return _report(args, state, ended=True)


def _report(
    args: argparse.Namespace, state: dict[str, Any] | None, *, ended: bool, queue: dict[str, Any] | None = None
) -> ExitCode:
    whole = state if queue is None else {**(state or {"state": "none"}), "queue": queue}
    output(args, whole, lambda: [*status_lines(state), *_queue_lines(queue)])
    failed = 0 if state is None else state["runs"].get("failed", 0)
    return ExitCode.NEGATIVE if ended and failed else ExitCode.OK


def _status(args: argparse.Namespace) -> int:
    from tandem.app.campaign import progress
    from tandem.app.campaign.progress import stored
    from tandem.app.campaign.queue import read
    from tandem.app.campaign.scheduler import Moment
    from tandem.app.campaign.wiring import folder

    config = configuration(args)
    answer = None if args.campaign else _ask(config, {"op": "campaign", "action": "status"})
    state = None if answer is None else answer.get("campaign")
    name = args.campaign or progress.active(folder(config)) or progress.latest(folder(config))
    if state is None and name is not None:
        state = stored(folder(config), name, Moment("", 0.0, time.time()))
    queue = None if answer is None else answer.get("queue")
    if answer is None and (lying := read(folder(config))):
        queue = {"campaigns": [one.as_json() for one in sorted(lying, key=lambda one: one.pushed.turn)]}
    return _report(args, state, ended=False, queue=queue)


def _stop(args: argparse.Namespace) -> None:
    from tandem.app.campaign import progress
    from tandem.app.campaign.wiring import folder

    config = configuration(args)
    answer = _ask(config, {"op": "campaign", "action": "stop"})
    name = progress.active(folder(config)) if answer is None else answer.get("stopped")
    if answer is None and name is not None:
        progress.set_active(folder(config), None)
    said = "no campaign is under way" if name is None else f"{name}: begins no more runs"
    output(args, {"stopped": name}, lambda: [said])


def _idle(args: argparse.Namespace) -> int:
    """For what is not urgent, as upgrades of the system: is a run under way, or the quiet before one? Exit status: 0 nothing is
    measured now, or no collector runs; 1 held: wait; 2 the configuration is wrong.
    docs/contributing/collector.md shows it in a systemd unit."""

    until = time.monotonic() + args.wait
    config = configuration(args)
    while True:
        answer = _ask(config, {"op": "campaign", "action": "idle"})
        held = None if answer is None else answer.get("held")
        left_s = until - time.monotonic()
        if held is None or left_s <= 0:
            break
        time.sleep(min(_LOOK_S, left_s))
    said = "idle" if held is None else f"held: {held}"
    output(args, {"held": held, "collector": answer is not None}, lambda: [said])
    return ExitCode.OK if held is None else ExitCode.NEGATIVE


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def span(seconds: float) -> str:
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"


def _check_lines(campaign: Campaign, estimate: Estimate, left_out: Sequence[str]) -> list[str]:
    lines = [f"{campaign.name}{_form(campaign.form)}: {campaign.title}"]
    if campaign.reference:
        lines.append(f"after {campaign.reference}")
    steps = {s.name: s for s in campaign.steps}
    for one in estimate.steps:
        apart = "" if one.days is None else f", {span(one.days * 86400)} from first to last"
        runs = f"{one.runs} runs ({one.arms} arms × {steps[one.name].repetitions})"
        lines.append(
            f"  {one.name}: {one.experiment}, {runs}, {span(one.seconds)}{apart}; begins {_begins(steps[one.name], campaign.timezone)}"
        )
        lines.append(f"    {_bytes(one.bytes_by_role)}")
    lines.append(f"in all {estimate.runs} runs, {span(estimate.seconds)}; {_bytes(estimate.bytes_by_role)}")
    if estimate.days is None:
        lines.append(f"how many days: depends on {estimate.held_by}")
    else:
        lines.append(f"at least {span(estimate.days * 86400)}, because of {estimate.held_by}")
    requires = campaign.requires
    if requires.scheduler or requires.controllers:
        controllers = f"controllers {', '.join(requires.controllers)}" if requires.controllers else ""
        scheduler = f"scheduler {requires.scheduler}" if requires.scheduler else ""
        lines.append(f"requires {'; '.join(w for w in (scheduler, controllers) if w)}")
    return [*lines, *left_out]


def kernel_lines(campaign: Campaign, kernels: Sequence[Installed]) -> list[str]:
    """Which kernels of this machine have the scheduler that a campaign requires, and what it means to measure without."""
    wanted = campaign.requires.scheduler
    if wanted is None:
        return []
    lines = []
    for one in kernels:
        there = ", ".join(one.schedulers) or "no Multipath TCP"
        has = wanted if wanted in one.schedulers else f"no {wanted}, but {there}"
        where = "runs" if one.runs else "installed; tandem-kernel status"
        lines.append(f"  Linux {one.linux} ({one.name}, {where}): {has}")
    if not any(wanted in one.schedulers for one in kernels if one.runs):
        instead = next((", ".join(one.schedulers) for one in kernels if one.runs), "") or "plain TCP"
        means = f"; {_MEANS[wanted]}" if wanted in _MEANS else ""
        lines.append(f"  with --allow-substitutes here: {instead} in its place, and each result says so{means}")
    return lines


_MEANS = {
    "minsrtt": "minsrtt fills the path with the lowest round-trip time first, the stock scheduler the one with the fewest bytes queued for "
    "its rate: shares and reordering may differ from the papers'"
}
"""By scheduler, what measuring with another means."""


def _plan_lines(found: Estimate, fit: PlanFit) -> list[str]:
    lines = [f"of a plan of {_size(fit.plan_bytes)} a month, {_size(fit.day_bytes)} a day (day_bytes):"]
    for role, one in fit.by_role.items():
        month = f"{_size(one.month_bytes)} a month ({one.plan_share:.0%})"
        lines.append(f"  {role}: {month}, {_size(one.day_bytes)} a day ({one.day_share:.0%})")
    if fit.round_trip_day_bytes:
        trips = _size(fit.round_trip_day_bytes)
        lines.append(f"  of it round trips all the time ([round_trip]): {trips} a day of each SIM")
    return [*lines, f"  largest run: {_size(found.largest_run_bytes)} of one SIM"]


def _form(form: str) -> str:
    return "" if form == PAPER else f" ({form} form)"


def _bytes(by_role: Mapping[str, float]) -> str:
    return ", ".join(f"{role} {_size(count)}" for role, count in by_role.items())


def _begins(step: Step, timezone: str | None) -> str:
    trigger = step.trigger
    within = f"within {trigger.within_s:g} s of"
    match trigger.on:
        case "always":
            return "as soon as it may"
        case "periodic":
            return f"every {trigger.every_s:g} s"
        case "poisson":
            return f"at random, every {trigger.mean_s:g} s on average"
        case "window":
            zone = timezone or "the probe"
            return f"between {_clock(trigger.start)} and {_clock(trigger.end)}, local time of {zone}"
        case "event":
            return f"{within} {' or '.join(trigger.event)}"
        case "mobility_start":
            return f"{within} the start of mobility"
        case "speed_class":
            return f"while the speed class is {trigger.speed_class}"
        case "place":
            return f"within {trigger.radius_m:g} m of a place"
    return f"by hand{' as ' + ' | '.join(trigger.labels) if trigger.labels else ''}"


def _clock(minute: int | None) -> str:
    return "--:--" if minute is None else f"{minute // 60:02}:{minute % 60:02}"


def status_lines(status: dict[str, Any] | None) -> list[str]:
    if status is None:
        return ["no campaign"]
    form = _form(status.get("form", PAPER))
    lines = [f"{status['name']}{form}: {status['state']}{': ' + status['said'] if status.get('said') else ''}"]
    lines.append(f"  local time: {status['timezone']}")
    if status.get("push") is not None:
        lines.append(f"  pushed by the server as {status['push']}, priority {status['priority']}")
    for step, count in status["steps"].items():
        lines.append(f"  {step}: {count['made']} of {count['of']} runs")
    runs = status["runs"]
    lines.append(f"  ok {runs.get('ok', 0)}, failed {runs.get('failed', 0)}, cut off {runs.get('cut_off', 0)}")
    for role, one in status["budget"].items():
        words = f"  {role} ({status['paths'].get(role, '?')}): {_size(one['used_bytes'])}"
        if one["budget_bytes"] is not None:
            words += f" of {_size(one['budget_bytes'])}"
        if one["at_reset_bytes"] is not None:
            words += f", {_size(one['at_reset_bytes'])} until {one['reset']} at this pace"
        lines.append(words + (": more than the budget" if one["exceeds"] else ""))
    for name, instead in status["substitutes"].items():
        lines.append(f"  {name}: {instead['used'] or 'the system default'} instead of {instead['asked']}")
    return lines


def _queue_lines(queue: dict[str, Any] | None) -> list[str]:
    """What the server pushed, in its turn; nothing when there is nothing."""
    if queue is None:
        return []
    lines = []
    for one in queue["campaigns"]:
        words = f"  {one['id']}  {one['priority']:>3}  {one['state']:<9} {one['name']}"
        lines.append(words + _form(one["form"]) + (f": {one['reason']}" if one["reason"] else ""))
    if lines:
        lines.insert(0, "from the server's queue:")
    if queue.get("trouble"):
        lines.append(f"the server's queue waits: {queue['trouble']}")
    return lines
