"""The probe's own copy of its queue: what the server pushed, how far each is, and what the server knows of that. Survives a power cut.

``FOLDER/queue.json`` and for each ``FOLDER/ID.toml``, the file as it came. One that is settled is forgotten when the server has its report
and lists it no more: until then it is known here and not taken again, however often it comes.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.schema.campaign import CampaignError
from tandem.schema.campaign_queue import (
    SETTLED,
    Pushed,
    QueueError,
    Report,
    read_pushed,
    read_report,
)
from tandem.spool.durable import write_durably

log = logging.getLogger(__name__)

FORMAT = "tandem-campaign-probe-queue/1"
FILE = "queue.json"
_LONGEST_REASON = 1000


@dataclass(slots=True)
class Queued:
    """One of them. ``has_file``: it came with its file; ``told``: the last report that the server has, None before any."""

    pushed: Pushed
    state: str
    has_file: bool
    reason: str | None = None
    steps: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    runs: Mapping[str, int] = field(default_factory=dict)
    told: dict[str, Any] | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing more is done about it."""
        return self.state in SETTLED

    @property
    def report(self) -> Report:
        """What the server shall know."""
        return Report(self.state, self.reason, self.steps, self.runs)

    @property
    def untold(self) -> bool:
        """Whether the server does not know it yet."""
        return self.told != self.report.to_dict()

    def now(self, state: str, reason: str | None = None) -> None:
        """From now on it is so."""
        line = None if reason is None else "".join(c if c.isprintable() else " " for c in reason)[:_LONGEST_REASON]
        self.state, self.reason = state, line

    def as_json(self) -> dict[str, Any]:
        """For the disk and for people."""
        return {**self.pushed.to_dict(), **self.report.to_dict(), "has_file": self.has_file, "told": self.told}


class ProbeQueue:
    """All of them, by id. Every call that changes something ends with ``save``; OSError when the disk takes nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._saved: bytes | None = None
        self.known: dict[str, Queued] = {one.pushed.id: one for one in read(folder)}

    def take(self, pushed: Pushed, text: str | None, state: str = "taken", reason: str | None = None) -> None:
        """Keep one that came; ``text``: its file, None when it has none of its own or none is needed."""
        if text is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_durably(self._file(pushed.id), text.encode())
        one = Queued(pushed, state, text is not None)
        one.now(state, reason)
        self.known[pushed.id] = one
        self.save()

    def text(self, push: str) -> str | None:
        """The file as it came; None: one of the probe's own package. CampaignError when it is gone."""
        if not self.known[push].has_file:
            return None
        try:
            return self._file(push).read_bytes().decode()
        except (FileNotFoundError, UnicodeDecodeError) as error:
            # Never another file of that name instead.
            raise CampaignError(f"{self._file(push)}: {error}; hint: push it again") from error

    def next(self) -> Queued | None:
        """The one whose turn it is, under way or not."""
        waiting = [one for one in self.known.values() if not one.settled]
        return min(waiting, key=lambda one: one.pushed.turn, default=None)

    def forget(self, listed: set[str]) -> None:
        """Those that are settled, told, and not ``listed`` by the server any more."""
        for one in [o for o in self.known.values() if o.settled and not o.untold and o.pushed.id not in listed]:
            del self.known[one.pushed.id]
            self._file(one.pushed.id).unlink(missing_ok=True)
        self.save()

    def save(self) -> None:
        """Write what has changed."""
        content = json.dumps({"format": FORMAT, "campaigns": [one.as_json() for one in self.known.values()]}).encode()
        if content != self._saved and (self.known or self._saved is not None or (self._folder / FILE).exists()):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_durably(self._folder / FILE, content)
            self._saved = content

    def _file(self, push: str) -> Path:
        return self._folder / f"{push}.toml"


def read(folder: Path) -> list[Queued]:
    """What lies on the disk. What cannot be read is told and left: the server has it still."""
    file = folder / FILE
    try:
        content = json.loads(file.read_bytes())
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}")
        return [_queued(row) for row in content["campaigns"]]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        log.error("%s: holds no queue: %s; the server is asked anew", file, error)
        return []


def _queued(row: Any) -> Queued:  # noqa: ANN401 any JSON value
    pushed, report = read_pushed(row), read_report(row)
    told, has_file = row.get("told"), row.get("has_file")
    if not isinstance(told, dict | None) or not isinstance(has_file, bool):
        raise QueueError("'told' is no object, or 'has_file' neither true nor false")
    return Queued(pushed, report.state, has_file, report.reason, report.steps, report.runs, told)
