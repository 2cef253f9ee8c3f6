"""Campaigns that a server queues for a probe: what goes over the wire (docs/reference/probe-api.md), read strictly at both ends. Pure.

A pushed campaign has an id of its own, so that the same file may be pushed twice and nothing is carried out twice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tandem.schema.campaign_reader import LONGEST_TEXT

FORMAT = "tandem-campaign-queue/2"

STATES = ("queued", "taken", "running", "done", "refused", "withdrawn")
"""``queued`` the probe does not have it yet; ``taken`` it lies on the probe and waits its turn; ``running`` under way, also while its
triggers wait; the rest are settled and stay."""
SETTLED = ("done", "refused", "withdrawn")

MOST_QUEUED = 100
"""Of one probe, not settled."""
DEFAULT_PRIORITY, HIGHEST_PRIORITY = 50, 100
MOST_PATHS = 8

_ID = re.compile(r"push-[0-9a-f]{12}\Z")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?\Z")


class QueueError(ValueError):
    """What came is not what the specification says; the message names the first fault."""


@dataclass(frozen=True, slots=True)
class Pushed:
    """One campaign in a probe's queue. ``file``: the name of its file, for messages; ``form``: of the file's;
    ``paths``: path by role, those that were named; ``withdraw``: the probe shall end it; ``timezone``: instead of the file's."""

    id: str
    name: str
    file: str
    form: str
    label: str | None
    paths: Mapping[str, str]
    allow_substitutes: bool
    priority: int
    pushed_utc_ns: int
    withdraw: bool = False
    timezone: str | None = None

    @property
    def turn(self) -> tuple[int, int, str]:
        """Sorts the queue: the highest priority first, then the oldest."""
        return (-self.priority, self.pushed_utc_ns, self.id)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "paths": dict(self.paths)}


@dataclass(frozen=True, slots=True)
class Report:
    """What a probe reports of one. ``steps``: by name runs ``made`` and ``of`` how many; ``runs``: by ``ok``, ``failed``, ``cut_off``."""

    state: str
    reason: str | None = None
    steps: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        steps = {name: dict(counts) for name, counts in self.steps.items()}
        return {"state": self.state, "reason": self.reason, "steps": steps, "runs": dict(self.runs)}


def is_id(text: str) -> bool:
    """Whether it can be the id of a pushed campaign: also safe as the name of a folder."""
    return _ID.match(text) is not None


def is_name(text: str) -> bool:
    return _NAME.match(text) is not None


def queue_to_dict(queue: list[Pushed]) -> dict[str, Any]:
    """The answer that ``read_queue`` reads."""
    return {"format": FORMAT, "campaigns": [one.to_dict() for one in queue]}


def read_queue(content: object) -> list[Pushed]:
    """The queue in its turn; QueueError."""
    rows = _headed(content).get("campaigns")
    if not isinstance(rows, list) or len(rows) > MOST_QUEUED:
        raise QueueError(f"'campaigns' is no list of at most {MOST_QUEUED}")
    found = [read_pushed(row) for row in rows]
    if len({one.id for one in found}) != len(found):
        raise QueueError("an id occurs twice")
    return sorted(found, key=lambda one: one.turn)


def read_pushed(row: object) -> Pushed:
    """One of the queue; QueueError. Keys that are not known are passed over: a later server may say more."""
    if not isinstance(row, dict):
        raise QueueError("a campaign is no object")
    if not is_id(_text(row, "id", 64)):
        raise QueueError(f"id {row['id']!r} is none")
    if not is_name(_text(row, "name", 64)):
        raise QueueError(f"name {row['name']!r} is none")
    paths = row.get("paths")
    if not isinstance(paths, dict) or len(paths) > MOST_PATHS:
        raise QueueError(f"'paths' is no object of at most {MOST_PATHS}")
    return Pushed(
        id=row["id"],
        name=row["name"],
        file=_text(row, "file", 255),
        form=_form(row),
        label=None if row.get("label") is None else _text(row, "label", 64),
        paths={role: _text(paths, role, 64) for role in paths},
        allow_substitutes=_truth(row, "allow_substitutes"),
        priority=_whole(row, "priority", HIGHEST_PRIORITY),
        pushed_utc_ns=_whole(row, "pushed_utc_ns", 2**63 - 1),
        withdraw=_truth(row, "withdraw"),
        timezone=None if row.get("timezone") is None else _text(row, "timezone", 64),
    )


def read_text(content: object) -> str | None:
    """The file of one campaign; None: the probe has one of that name itself. QueueError."""
    text = _headed(content).get("text", False)  # absent is not null
    if text is None:
        return None
    if not isinstance(text, str):
        raise QueueError("'text' is neither text nor null")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise QueueError("'text' has half of a surrogate pair") from error
    if size > LONGEST_TEXT:
        raise QueueError(f"'text' is longer than {LONGEST_TEXT} bytes")
    return text


def read_report(content: object) -> Report:
    """What a probe reports; QueueError."""
    if not isinstance(content, dict):
        raise QueueError("no JSON object")
    state = content.get("state")
    if state not in STATES or state == "queued":
        raise QueueError(f"state {state!r} is none of {', '.join(STATES[1:])}")
    reason = content.get("reason")
    if reason is not None and not (isinstance(reason, str) and len(reason) <= 1000 and reason.isprintable()):
        raise QueueError("'reason' is no line of at most 1000 characters")
    if state == "refused" and not reason:
        raise QueueError("a refusal has no reason")
    steps, runs = content.get("steps", {}), content.get("runs", {})
    if not isinstance(steps, dict) or len(steps) > 100 or not isinstance(runs, dict):
        raise QueueError("'steps' or 'runs' is no object, or there are more than 100 steps")
    for counts in (runs, *steps.values()):
        if not isinstance(counts, dict) or len(counts) > 10:
            raise QueueError("a step's counts are no object")
        for name in counts:
            _whole(counts, name, 2**53)
    for name in (*steps, *runs):
        if not is_name(name):
            raise QueueError(f"{name[:80]!r} is no name")
    return Report(state, reason, steps, runs)


def _headed(content: object) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise QueueError("no JSON object")
    if content.get("format") != FORMAT:
        raise QueueError(f"format is {str(content.get('format'))[:40]!r}, expected {FORMAT!r}")
    return content


def _text(row: dict[str, Any], key: str, longest: int) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
        raise QueueError(f"{key[:80]!r} is no text of 1 to {longest} printable characters")
    return value


def _form(row: dict[str, Any]) -> str:
    form = _text(row, "form", 64)
    if not is_name(form):
        raise QueueError(f"form {form!r} is none")
    return form


def _truth(row: dict[str, Any], key: str) -> bool:
    value = row.get(key)
    if not isinstance(value, bool):
        raise QueueError(f"{key!r} is not true or false")
    return value


def _whole(row: dict[str, Any], key: str, most: int) -> int:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise QueueError(f"{key[:80]!r} is no whole number from 0 to {most}")
    return value
