"""``tandem-server campaign push|list|status|withdraw``: campaigns for probes that come and go; ``export`` and ``publish`` are in
``campaign_folder``."""

from __future__ import annotations

import argparse
import json
import time
from argparse import Namespace
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from tandem.schema import zones
from tandem.schema.campaign import PAPER, Campaign
from tandem.schema.campaign_queue import DEFAULT_PRIORITY, HIGHEST_PRIORITY, MOST_PATHS, is_name
from tandem.schema.campaign_reader import forms, parse, text_of
from tandem_server.cli import campaign_folder
from tandem_server.cli.command import Actions, ConfigError, add_command
from tandem_server.cli.configuration import load
from tandem_server.cli.stores import open_registry
from tandem_server.registry import QueuedCampaign, QueueFull, Registry
from tandem_server.report.words import visible
from tandem_server.utc import utc

BOARD, BOARD_TITLE = "/d/tandem-campaign", "Tandem: campaign"
"""Where Grafana shows how far campaigns are."""
_SHIPPED = ("tandem", "campaigns")
"""Where the collector's package has its campaigns: read as files, none of its code is loaded."""
_DAY_NS = 86400 * 10**9
_HEAD = ("probe", "state", "done", "planned", "failed", "days left", "id")


def add(commands: Actions[argparse.ArgumentParser]) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "campaign",
        help="queue campaigns for probes that come and go, export what came of them, and publish it",
        description="Queue campaigns for probes, export what came of them, and publish it. A probe asks for its queue when it is on the"
        " network, and goes on without it.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_push(actions)
    listing = add_command(actions, "list", _list, "what is queued, taken or running", json="as JSON")
    status = add_command(
        actions,
        "status",
        _status,
        "how far each is, what became of the settled ones, and why a probe refused",
        json="as JSON",
    )
    withdraw = add_command(
        actions,
        "withdraw",
        _withdraw,
        "take campaigns back; a run of theirs that is under way is ended and kept as far as it came",
        json="as JSON",
    )
    status.add_argument("campaign", metavar="ID|NAME", nargs="?", help="as push and list print it")
    withdraw.add_argument("campaign", metavar="ID|NAME", help="as push and list print it")
    for one in (listing, status, withdraw):
        one.add_argument("--probes", nargs="+", default=[], metavar="P", help="of these probes only; default: of all")
    campaign_folder.add(actions)


def _add_push(actions: Actions[argparse.ArgumentParser]) -> None:
    push = add_command(
        actions,
        "push",
        _push,
        "queue a campaign",
        "Checks the file (exit status 2, with FILE:LINE and hint) and queues it. The probe checks it against its own "
        "experiments, paths and kernel, and refuses with a reason that status shows. Of its queue a probe takes the highest "
        "priority first, then the oldest; a campaign that a person began there goes before all.",
        json="as JSON",
    )
    push.add_argument("campaign", metavar="NAME|FILE", help="one of the papers' campaigns, or a file")
    push.add_argument(
        "--probes",
        nargs="+",
        required=True,
        metavar="P",
        help="for these probes; all: every probe whose token is good now (push again for one that is enrolled later)",
    )
    push.add_argument(
        "--form",
        default=PAPER,
        metavar="NAME",
        help="pilot: two weeks within 10 GB a SIM; short: for the bench; or another of the file's; default: paper, the file as it stands",
    )
    push.add_argument(
        "--label", metavar="L", help="as which its runs are kept; begins one run of each step that waits for a hand"
    )
    push.add_argument(
        "--path",
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="which path plays a role; default: in their order",
    )
    push.add_argument(
        "--timezone",
        metavar="ZONE",
        help="whose local time windows and days are, as in America/Los_Angeles; default: the file's, else each probe's own",
    )
    push.add_argument(
        "--allow-substitutes", action="store_true", help="run without what the campaign requires; every result says so"
    )
    push.add_argument(
        "--priority",
        type=int,
        default=DEFAULT_PRIORITY,
        metavar="N",
        help=f"0 to {HIGHEST_PRIORITY}; the highest goes first, and pauses a lower one between two runs; default: %(default)s",
    )


def _push(args: Namespace) -> int:
    config = load(args.config)
    if not 0 <= args.priority <= HIGHEST_PRIORITY:
        raise ConfigError(f"--priority {args.priority}; hint: 0 to {HIGHEST_PRIORITY}")
    text, file = source(args.campaign)
    name, paths = checked(text, file, form=args.form, label=args.label, paths=args.path, timezone=args.timezone)
    with open_registry(config) as registry:
        try:
            rows = registry.campaigns.push(
                _probes(registry, args),
                name,
                Path(file).name[:255],
                text,
                form=args.form,
                label=args.label,
                paths=paths,
                allow_substitutes=args.allow_substitutes,
                priority=args.priority,
                timezone=args.timezone,
            )
        except QueueFull as error:
            raise ConfigError(f"{error}; hint: tandem-server campaign withdraw") from error
    _print(args, rows)
    if not args.json:
        print(f"progress: tandem-server campaign status {name}")
        print(f"board: {BOARD_TITLE}, {BOARD}?var-campaign={name} of this server's Grafana")
    return 0


def _list(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = [row for row in _rows(registry, args) if not row.settled]
    _print(args, sorted(rows, key=lambda row: (row.probe, row.pushed.turn)))
    return 0


def _status(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = _named(_rows(registry, args), args.campaign)
    if args.json:
        _print(args, rows)
    else:
        for line in _progress_lines(rows, time.time_ns()):
            print(line)
    return 0


def _withdraw(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = _named(_rows(registry, args), args.campaign)
        open_ones = [row.pushed.id for row in rows if not row.settled]
        if not open_ones:
            raise ConfigError(f"{args.campaign}: is settled already; hint: tandem-server campaign list")
        rows = registry.campaigns.withdraw(open_ones)
    _print(args, rows)
    return 0


def _probes(registry: Registry, args: Namespace) -> list[str]:
    """For whom; ConfigError for one that can never ask."""
    known = {probe.name: probe.revoked_utc_ns is None for probe in registry.probes.all()}
    if args.probes == ["all"]:
        found = [name for name, good in known.items() if good]
        if not found:
            raise ConfigError("--probes all: no probe is enrolled; hint: tandem-server probe add NAME")
        return found
    for name in args.probes:
        if not known.get(name):
            what = "its token is revoked" if name in known else "there is no such probe"
            hint = f"tandem-server probe rotate {name}" if name in known else "tandem-server probe list"
            raise ConfigError(f"--probes {name}: {what}; hint: {hint}")
    return list(dict.fromkeys(args.probes))


def _rows(registry: Registry, args: Namespace) -> list[QueuedCampaign]:
    return [row for row in registry.campaigns.all() if not args.probes or row.probe in args.probes]


def _named(rows: list[QueuedCampaign], named: str | None) -> list[QueuedCampaign]:
    found = [row for row in rows if named in (None, row.pushed.id, row.pushed.name)]
    if named is not None and not found:
        raise ConfigError(f"{named}: no such campaign was pushed; hint: tandem-server campaign status")
    return found


def _print(args: Namespace, rows: Sequence[QueuedCampaign]) -> None:
    if args.json:
        print(json.dumps([_to_dict(row) for row in rows], indent=1))
        return
    for row in rows:
        one = row.pushed
        form = "" if one.form == PAPER else f" ({one.form} form)"
        line = f"{one.id}  {row.probe:<16} {one.priority:>3}  {row.state:<9} {one.name}{form}"
        if one.timezone is not None:
            line += f", local time of {one.timezone}"
        if one.withdraw and not row.settled:
            line += ", to be withdrawn"
        print(line)


def _to_dict(row: QueuedCampaign) -> dict[str, Any]:
    return {
        **row.pushed.to_dict(),
        "probe": row.probe,
        "state": row.state,
        "reason": row.reason,
        "steps": row.progress.get("steps", {}),
        "runs": row.progress.get("runs", {}),
        "pushed": utc(row.pushed.pushed_utc_ns),
        "state_since": utc(row.state_utc_ns),
    }


def _progress_lines(rows: Sequence[QueuedCampaign], now_utc_ns: int) -> list[str]:
    """A table for each campaign and form. ``planned`` and ``days left`` are ``-`` until the probe reports runs."""
    groups: dict[str, list[QueuedCampaign]] = {}
    for row in rows:
        form = "" if row.pushed.form == PAPER else f" ({row.pushed.form} form)"
        groups.setdefault(row.pushed.name + form, []).append(row)
    lines = []
    for title, members in groups.items():
        lines.append(f"{title}, {sum(m.state == 'done' for m in members)} of {len(members)} done")
        cells = [_HEAD, *(_cells(m, now_utc_ns) for m in members)]
        widths = [max(len(row[n]) for row in cells) for n in range(len(_HEAD))]
        reasons = ["", *(visible(m.reason or "") for m in members)]
        for line, reason in zip(cells, reasons, strict=True):
            aligned = [c.ljust(w) if n < 2 else c.rjust(w) for n, (c, w) in enumerate(zip(line, widths, strict=True))]
            lines += ["  " + "  ".join(aligned), *([f"    {reason}"] if reason else [])]
    return lines


def _cells(row: QueuedCampaign, now_utc_ns: int) -> tuple[str, ...]:
    steps = row.progress.get("steps", {}).values()
    done, planned = (sum(counts.get(name, 0) for counts in steps) for name in ("made", "of"))
    failed = row.progress.get("runs", {}).get("failed", 0)
    left = _days_left(row, done, planned, now_utc_ns)
    shown = (str(planned) if planned else "-", str(failed), "-" if left is None else f"{left:.1f}")
    return (row.probe, row.state, str(done), *shown, row.pushed.id)


def _days_left(row: QueuedCampaign, done: int, planned: int, now_utc_ns: int) -> float | None:
    """At the pace since it was pushed; None where that says nothing."""
    if row.state != "running" or not done:
        return None
    return (now_utc_ns - row.pushed.pushed_utc_ns) / _DAY_NS * (planned - done) / done


# --- What is pushed: a file, or one of the collector's own campaigns by its name -------------------------------------------


def shipped() -> list[str]:
    """Names of the campaigns that came with the collector's package; none where only its schema is installed."""
    folder = files(_SHIPPED[0]).joinpath(_SHIPPED[1])
    if not folder.is_dir():
        return []
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def source(named: str) -> tuple[str | None, str]:
    """Text and name (for messages) of a campaign; CampaignError, ConfigError. Text None: only the schema is installed here, and the
    probe has to find a campaign of that name in its own package."""
    if "/" not in named and not named.endswith(".toml"):
        names = shipped()
        if named in names:
            return files(_SHIPPED[0]).joinpath(*_SHIPPED[1:], f"{named}.toml").read_text("utf-8"), f"{named}.toml"
        if not names and is_name(named):
            return None, f"{named}.toml"
        known = ", ".join(names) or "the collector's on the probe"
        raise ConfigError(f"{named}: there is no campaign of that name; hint: a file's path, or one of {known}")
    return text_of(named), named


def checked(
    text: str | None, file: str, *, form: str, label: str | None, paths: Sequence[str], timezone: str | None
) -> tuple[str, dict[str, str]]:
    """The campaign's name, and path by role; CampaignError with FILE:LINE, ConfigError. Every form is read, as ``tandem campaign check``
    does. Experiments, kernels and paths are the probe's to check; so is everything when only the probe has the file (``text`` None)."""
    zones.zone(timezone or "UTC")
    if text is None:
        if not is_name(form):
            raise ConfigError(f"--form {form}: no name of a form; hint: pilot")
        return file.removesuffix(".toml"), _paths(paths, None)
    campaign = parse(text, file, form=form)
    zones.of(campaign)
    forms(text, file)
    given = _paths(paths, campaign)
    if label is not None:
        _label(campaign, label)
    return campaign.name, given


def _paths(pairs: Sequence[str], campaign: Campaign | None) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        role, sign, name = pair.partition("=")
        if not sign or not all(0 < len(word) <= 64 and word.isprintable() for word in (role, name)):
            raise ConfigError(f"--path {pair}: no ROLE=NAME; hint: as in --path wifi=wlan")
        if campaign is not None and role not in campaign.roles:
            roles = ", ".join(campaign.roles)
            raise ConfigError(f"{campaign.where('roles')}: {role!r} is no role of the campaign; hint: one of {roles}")
        if role in given or name in given.values():
            raise ConfigError(f"--path {pair}: a role or a path is named twice; hint: each once")
        given[role] = name
    if len(given) > MOST_PATHS:
        raise ConfigError(f"--path: {len(given)} paths; hint: at most {MOST_PATHS}")
    return given


def _label(campaign: Campaign, label: str) -> None:
    if not label or len(label) > 64 or not label.isprintable():
        raise ConfigError("--label: no text of 1 to 64 printable characters; hint: as in --label walking")
    taking = [s for s in campaign.steps if s.trigger.on == "hand"]
    if taking and not any(not s.trigger.labels or label in s.trigger.labels for s in taking):
        where = campaign.where("step", taking[0].name, "trigger")
        known = ", ".join(sorted({name for s in taking for name in s.trigger.labels}))
        raise ConfigError(f"{where}: no step takes the label {label!r}; hint: one of {known}")
