"""``tandem-server campaign push|list|status|withdraw|export|publish``: campaigns for probes that come and go."""

from __future__ import annotations

import argparse
import json
import time
from argparse import Namespace
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tandem.schema.campaign import PAPER
from tandem.schema.campaign_queue import DEFAULT_PRIORITY, HIGHEST_PRIORITY
from tandem_server.cli import campaign_export, campaign_publish
from tandem_server.cli.campaign_source import checked, source
from tandem_server.cli.config_file import add_config
from tandem_server.cli.configuration import load
from tandem_server.cli.stop import ConfigError, with_plain_ends
from tandem_server.cli.stores import open_registry
from tandem_server.registry import QueuedCampaign, QueueFull, Registry
from tandem_server.report.words import visible

BOARD, BOARD_TITLE = "/d/tandem-campaign", "Tandem: campaign"
"""Where Grafana shows how far campaigns are."""
_DAY_NS = 86400 * 10**9
_HEAD = ("probe", "state", "done", "planned", "failed", "days left", "id")


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the subcommand."""
    parser = subparsers.add_parser(
        "campaign",
        help="queue campaigns for probes that come and go, export what came of them, and publish it",
        description="Queue campaigns for probes, export what came of them, and publish it. A probe asks for its queue when it is on the"
        " network, and goes on without it.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    _add_push(actions)
    for name, func, what in (
        ("list", _list, "what is queued, taken or running"),
        ("status", _status, "how far each is, what became of the settled ones, and why a probe refused"),
        (
            "withdraw",
            _withdraw,
            "take campaigns back; a run of theirs that is under way is ended and kept as far as it came",
        ),
    ):
        sub = actions.add_parser(name, help=what, description=f"{what[0].upper()}{what[1:]}.")
        if name != "list":
            every = {"nargs": "?"} if name == "status" else {}
            sub.add_argument("campaign", metavar="ID|NAME", help="as push and list print it", **every)  # type: ignore[arg-type]  # mypy reads one type for all keywords
        sub.add_argument("--probes", nargs="+", default=[], metavar="P", help="of these probes only; default: of all")
        _common(sub)
        sub.set_defaults(func=func)
    campaign_export.add(actions)
    campaign_publish.add(actions)


def _add_push(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    push = actions.add_parser(
        "push",
        help="queue a campaign",
        description="Checks the file (exit status 2, with FILE:LINE and hint) and queues it. The probe checks it against its own "
        "experiments, paths and kernel, and refuses with a reason that status shows. Of its queue a probe takes the highest "
        "priority first, then the oldest; a campaign that a person began there goes before all.",
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
    _common(push)
    push.set_defaults(func=_push)


def _common(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument("--json", action="store_true", help="as JSON")


@with_plain_ends
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


@with_plain_ends
def _list(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = [row for row in _rows(registry, args) if not row.settled]
    _print(args, sorted(rows, key=lambda row: (row.probe, row.pushed.turn)))
    return 0


@with_plain_ends
def _status(args: Namespace) -> int:
    with open_registry(load(args.config)) as registry:
        rows = _named(_rows(registry, args), args.campaign)
    if args.json:
        _print(args, rows)
    else:
        for line in _progress_lines(rows, time.time_ns()):
            print(line)
    return 0


@with_plain_ends
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


def _named(rows: list[QueuedCampaign], wanted: str | None) -> list[QueuedCampaign]:
    found = [row for row in rows if wanted in (None, row.pushed.id, row.pushed.name)]
    if wanted is not None and not found:
        raise ConfigError(f"{wanted}: no such campaign was pushed; hint: tandem-server campaign status")
    return found


def _print(args: Namespace, rows: Sequence[QueuedCampaign]) -> None:
    if args.json:
        print(json.dumps([_told(row) for row in rows], indent=1))
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


def _told(row: QueuedCampaign) -> dict[str, Any]:
    return {
        **row.pushed.to_dict(),
        "probe": row.probe,
        "state": row.state,
        "reason": row.reason,
        "steps": row.progress.get("steps", {}),
        "runs": row.progress.get("runs", {}),
        "pushed": _time(row.pushed.pushed_utc_ns),
        "state_since": _time(row.state_utc_ns),
    }


def _time(utc_ns: int) -> str:
    return datetime.fromtimestamp(utc_ns / 1e9, UTC).isoformat(timespec="seconds")


def _progress_lines(rows: Sequence[QueuedCampaign], now_utc_ns: int) -> list[str]:
    """A table for each campaign and form. ``planned`` and ``days left`` are ``-`` until the probe tells of runs."""
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
    told = (str(planned) if planned else "-", str(failed), "-" if left is None else f"{left:.1f}")
    return (row.probe, row.state, str(done), *told, row.pushed.id)


def _days_left(row: QueuedCampaign, done: int, planned: int, now_utc_ns: int) -> float | None:
    """At the pace since it was pushed; None where that tells nothing."""
    if row.state != "running" or not done:
        return None
    return (now_utc_ns - row.pushed.pushed_utc_ns) / _DAY_NS * (planned - done) / done
