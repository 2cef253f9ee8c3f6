"""Campaigns as lines for people. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tandem.app.campaign.estimate import Estimate, PlanFit
from tandem.mptcp.kernels import Installed
from tandem.schema.campaign import PAPER, Campaign, Step


def size(count: float) -> str:
    """Bytes, in the unit that fits."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def span(seconds: float) -> str:
    """A time, in the unit that fits."""
    for limit, divisor, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{seconds / divisor:.3g} {unit}"
    return f"{seconds / 86400:.3g} days"


def check_lines(campaign: Campaign, estimate: Estimate, left_out: Sequence[str]) -> list[str]:
    """What a campaign would do."""
    lines = [f"{campaign.name}{_form(campaign.form)}: {campaign.title}"]
    if campaign.reference:
        lines.append(f"after {campaign.reference}")
    steps = {s.name: s for s in campaign.steps}
    for one in estimate.steps:
        apart = "" if one.days is None else f", {span(one.days * 86400)} from first to last"
        runs = f"{one.runs} runs ({one.arms} arms × {steps[one.name].repetitions})"
        lines.append(
            f"  {one.name}: {one.experiment}, {runs}, {span(one.seconds)}{apart}; begins {begins(steps[one.name], campaign.timezone)}"
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
        has = (
            wanted
            if wanted in one.schedulers
            else f"no {wanted}, but {', '.join(one.schedulers) or 'no Multipath TCP'}"
        )
        where = "runs" if one.runs else "installed; tandem-kernel status"
        lines.append(f"  Linux {one.linux} ({one.name}, {where}): {has}")
    if not any(wanted in one.schedulers for one in kernels if one.runs):
        instead = next((", ".join(one.schedulers) for one in kernels if one.runs), "") or "plain TCP"
        lines.append(
            f"  with --allow-substitutes here: {instead} in its place, and each result says so; {_MEANS.get(wanted, '')}".rstrip(
                "; "
            )
        )
    return lines


_MEANS = {
    "minsrtt": "minsrtt fills the path with the lowest round-trip time first, the stock scheduler the one with the fewest bytes queued for "
    "its rate: shares and reordering may differ from the papers'"
}
"""By scheduler, what measuring with another means."""


def plan_lines(found: Estimate, fit: PlanFit) -> list[str]:
    """What of a plan it takes."""
    lines = [f"of a plan of {size(fit.plan_bytes)} a month, {size(fit.day_bytes)} a day (day_bytes):"]
    for role, one in fit.by_role.items():
        month = f"{size(one.month_bytes)} a month ({one.plan_share:.0%})"
        lines.append(f"  {role}: {month}, {size(one.day_bytes)} a day ({one.day_share:.0%})")
    if fit.round_trip_day_bytes:
        lines.append(
            f"  of it round trips all the time ([round_trip]): {size(fit.round_trip_day_bytes)} a day of each SIM"
        )
    return [*lines, f"  largest run: {size(found.largest_run_bytes)} of one SIM"]


def _form(form: str) -> str:
    return "" if form == PAPER else f" ({form} form)"


def _bytes(by_role: Any) -> str:  # noqa: ANN401 a mapping
    return ", ".join(f"{role} {size(count)}" for role, count in by_role.items())


def begins(step: Step, timezone: str | None) -> str:
    """When a step's runs begin; ``timezone``: the campaign's."""
    trigger = step.trigger
    match trigger.on:
        case "always":
            words = "as soon as it may"
        case "periodic":
            words = f"every {trigger.every_s:g} s"
        case "poisson":
            words = f"at random, every {trigger.mean_s:g} s on average"
        case "window":
            words = f"between {clock(trigger.start)} and {clock(trigger.end)}, local time of {timezone or 'the probe'}"
        case "event":
            words = f"within {trigger.within_s:g} s of {' or '.join(trigger.event)}"
        case "mobility_start":
            words = f"within {trigger.within_s:g} s of the start of mobility"
        case "speed_class":
            words = f"while the speed class is {trigger.speed_class}"
        case "place":
            words = f"within {trigger.radius_m:g} m of a place"
        case _:
            words = f"by hand{' as ' + ' | '.join(trigger.labels) if trigger.labels else ''}"
    return words


def clock(minute: int | None) -> str:
    """A minute of the day."""
    return "--:--" if minute is None else f"{minute // 60:02}:{minute % 60:02}"


def status_lines(status: dict[str, Any] | None) -> list[str]:
    """How far a campaign is."""
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
        words = f"  {role} ({status['paths'].get(role, '?')}): {size(one['used_bytes'])}"
        if one["budget_bytes"] is not None:
            words += f" of {size(one['budget_bytes'])}"
        if one["at_reset_bytes"] is not None:
            words += f", {size(one['at_reset_bytes'])} until {one['reset']} at this pace"
        lines.append(words + (": more than the budget" if one["exceeds"] else ""))
    for name, instead in status["substitutes"].items():
        lines.append(f"  {name}: {instead['used'] or 'the system default'} instead of {instead['asked']}")
    return lines


def queue_lines(queue: dict[str, Any] | None) -> list[str]:
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
