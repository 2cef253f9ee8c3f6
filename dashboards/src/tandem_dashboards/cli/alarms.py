"""``alarms``: which there are; with a database, which would fire now."""

from __future__ import annotations

import argparse
import json
import time

from tandem_dashboards.alarms.live import Finding, findings
from tandem_dashboards.alarms.rules import GROUPS
from tandem_dashboards.cli import asked as common


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Its arguments."""
    parser = commands.add_parser(
        "alarms",
        help="list the alarms and their tolerances; with --url: which would fire now (exit 1 when one would)",
        description="List the alarms and their tolerances. With --url every rule is evaluated once, as Grafana would: what fires "
        "is told with its text, and how long it must go on before people are told of it.",
    )
    common.add_account(parser, needed=False)
    parser.add_argument("--json", action="store_true", help="one JSON object, for machines")
    parser.set_defaults(run=run)


def run(asked: argparse.Namespace) -> int:
    """List, or evaluate."""
    if asked.url is None:
        print(json.dumps({"alarms": listed()}, indent=1) if asked.json else table())
        return 0
    with common.database(asked) as database:
        found = findings(database, int(time.time() * 1000))
    firing = [one for one in found if one.outcome in ("Alerting", "Error")]
    if asked.json:
        print(json.dumps({"findings": [one.to_json() for one in found]}, indent=1))
    else:
        for one in firing:
            print(told(one))
        print(f"{len({one.rule.uid for one in found})} alarms evaluated; {len(firing)} would fire")
    return 1 if firing else 0


def listed() -> list[dict[str, object]]:
    """Each alarm, for machines."""
    return [
        {
            "group": group,
            "alarm": alarm.key,
            "title": alarm.title,
            "severity": alarm.severity,
            "limit": alarm.tolerance.limit,
            "for_s": alarm.tolerance.for_s,
            "why": alarm.tolerance.why,
            "no_data": alarm.no_data,
            "why_no_data": alarm.why_no_data,
        }
        for group, alarms in GROUPS.items()
        for alarm in alarms
    ]


def table() -> str:
    """Each alarm in a line."""
    lines = []
    for group, alarms in GROUPS.items():
        lines.append(group)
        lines += [
            f"  {a.key:20} {a.severity:8} limit {a.tolerance.limit:>8g}, for {a.tolerance.for_s:>5} s: {a.tolerance.why}"
            for a in alarms
        ]
    return "\n".join(lines)


def told(one: Finding) -> str:
    """One finding, for people."""
    labels = ", ".join(f"{name} {value}" for name, value in one.labels.items() if value)
    head = f"{one.rule.labels['severity']}: {one.rule.title}{f' ({labels})' if labels else ''}"
    if one.outcome == "Error":
        return f"{head}\n  cannot be evaluated: {one.error}"
    waits = f"\n  Told when it has been so for {one.waits_s} s." if one.waits_s else ""
    texts = one.texts
    return f"{head}\n  {texts['summary']}\n  {texts['since']}\n  {texts['do']}{waits}"
