"""How far a campaign is: on disk, as plain values and as records.

On disk its text, its sequence and one line for each begin and end of a run, which survive a power cut: ``FOLDER/begun.json`` (written once,
durably) and ``FOLDER/runs.jsonl`` (each line synced; a torn last line is passed over).
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date, tzinfo
from pathlib import Path
from typing import Any

from tandem.app.campaign.estimate import cost
from tandem.app.campaign.scheduler import Entry, Moment, Scheduler, Start
from tandem.app.daemon.accounts import midnight_s
from tandem.schema import zones
from tandem.schema.campaign import Campaign, CampaignError, order
from tandem.schema.campaign_reader import parse
from tandem.schema.metrics import CAMPAIGN_STATES
from tandem.schema.record import Record, Value
from tandem.spool.durable import sync_folder, write_durably

log = logging.getLogger(__name__)


FORMAT = "tandem-campaign-progress/1"
_HEAD, _RUNS = "begun.json", "runs.jsonl"
ACTIVE = "active"
"""In the folder of all campaigns: the key of the one that goes on after a restart."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Of a campaign that the server pushed. ``push``: its id; ``priority``: in the queue, 0 to 100."""

    push: str
    priority: int


@dataclass(frozen=True, slots=True)
class Begun:
    """A campaign that was begun. ``text``: its file; ``campaign``: with the ``timezone`` that was given
    instead of the file's; ``paths``: by role the probe's path; ``label``: of all its runs, where they have
    none of their own; ``substitutes``: as ``request.settled`` says; ``origin`` None: a person began it here."""

    text: str
    campaign: Campaign
    paths: dict[str, str]
    label: str | None
    substitutes: dict[str, dict[str, Any]]
    begun: Moment
    sequences: dict[str, list[tuple[int, int]]]
    origin: Origin | None = None

    @property
    def key(self) -> str:
        """The name of its folder. A pushed one has its id: it takes no place of a person's campaign of that name."""
        return self.campaign.name if self.origin is None else self.origin.push


class Progress:
    """One campaign's folder. OSError when the disk takes nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._file: int | None = None

    @property
    def exists(self) -> bool:
        return (self.folder / _HEAD).exists()

    def begin(self, wanted: Begun) -> Begun:
        """Store the campaign as it is now, with its sequence. What an earlier one of that name left is kept beside it."""
        campaign = wanted.campaign
        if self.folder.exists():
            number = 1
            while (kept := self.folder.with_name(f"{self.folder.name}.{number}")).exists():
                number += 1
            self.folder.rename(kept)
        self.folder.mkdir(parents=True)
        sequences = {step.name: order(campaign, step) for step in campaign.steps}
        head = {
            "format": FORMAT,
            "name": campaign.name,
            "file": campaign.file,
            "form": campaign.form,
            "timezone": campaign.timezone,
            "seed": campaign.seed,
            "substitutes": wanted.substitutes,
            "steps": [s.name for s in campaign.steps],
            "paths": wanted.paths,
            "label": wanted.label,
            "begun": asdict(wanted.begun),
            "text": wanted.text,
            "origin": None if wanted.origin is None else asdict(wanted.origin),
            "sequences": sequences,
        }
        write_durably(self.folder / _HEAD, json.dumps(head).encode())
        return replace(wanted, sequences=sequences)

    def load(self) -> tuple[Begun, list[Entry]]:
        """The campaign as it was begun, and its runs; CampaignError when the folder holds none that can be gone on with."""
        file = self.folder / _HEAD
        try:
            head = json.loads(file.read_bytes())
            if head["format"] != FORMAT:
                raise ValueError(f"format {head['format']!r}")
            campaign = parse(head["text"], head["file"], form=head["form"])
            sequences = {name: [(int(r), int(a)) for r, a in rows] for name, rows in head["sequences"].items()}
            begun = Moment(**head["begun"])
            paths, label, steps = dict(head["paths"]), head["label"], set(head["steps"])
            text, substitutes = str(head["text"]), dict(head["substitutes"])
            pushed, timezone = head["origin"], head["timezone"]
            origin = None if pushed is None else Origin(str(pushed["push"]), int(pushed["priority"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CampaignError(f"{file}: holds no campaign: {error}; hint: begin the campaign anew") from error
        kept = tuple(s for s in campaign.steps if s.name in steps)
        campaign = replace(campaign, steps=kept, timezone=timezone)
        return Begun(text, campaign, paths, label, substitutes, begun, sequences, origin), self.entries()

    def entries(self) -> list[Entry]:
        """All runs, in the order in which they began."""
        found: dict[tuple[str, int, int], Entry] = {}
        try:
            lines = (self.folder / _RUNS).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        for number, line in enumerate(lines, 1):
            try:
                row: dict[str, Any] = json.loads(line)
                started, ended = Moment(**row.pop("started")), row.pop("ended")
                entry = Entry(**row, started=started, ended=None if ended is None else Moment(**ended))
            except (ValueError, KeyError, TypeError, AttributeError):
                log.warning("%s:%d: a line torn by a power cut is passed over", self.folder / _RUNS, number)
                continue
            found[entry.step, entry.number, entry.attempt] = entry
        return list(found.values())

    def write(self, entry: Entry) -> None:
        """Store the run as it stands; the last line of a run counts."""
        if self._file is None:
            path = self.folder / _RUNS
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o640)
            sync_folder(self.folder)
            size = os.fstat(self._file).st_size
            if size and os.pread(self._file, 1, size - 1) != b"\n":
                os.write(self._file, b"\n")  # end the line that a power cut tore
        rest = memoryview(json.dumps(asdict(entry), separators=(",", ":")).encode() + b"\n")
        while rest:
            rest = rest[os.write(self._file, rest) :]
        os.fdatasync(self._file)

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def active(folder: Path) -> str | None:
    """The campaign that goes on after a restart."""
    try:
        return (folder / ACTIVE).read_text().strip() or None
    except FileNotFoundError:
        return None


def set_active(folder: Path, name: str | None) -> None:
    """From now on ``name`` goes on after a restart; None: nothing does."""
    folder.mkdir(parents=True, exist_ok=True)
    if name is None:
        (folder / ACTIVE).unlink(missing_ok=True)
        sync_folder(folder)
    else:
        write_durably(folder / ACTIVE, f"{name}\n".encode())


def latest(folder: Path) -> str | None:
    """The campaign that was begun last."""
    try:
        heads = [(head.stat().st_mtime, head.parent.name) for head in folder.glob(f"*/{_HEAD}")]
    except OSError:
        return None
    return max(heads, default=(0.0, None))[1]


# ---------------------------------------------------------------------------------------------------------------------
# As plain values.


def scheduler_of(begun: Begun, entries: list[Entry]) -> Scheduler:
    """The scheduler of a campaign with these runs made; CampaignError when its time zone is not there."""
    steps = {s.name: s for s in begun.campaign.steps}
    return Scheduler(
        begun.campaign,
        begun.sequences,
        entries,
        begun.begun,
        lambda item: cost(begun.campaign, steps[item.step], item),
        zones.of(begun.campaign),
    )


def describe(begun: Begun, scheduler: Scheduler, now: Moment) -> dict[str, Any]:
    return {
        "name": begun.campaign.name,
        "push": None if begun.origin is None else begun.origin.push,
        "priority": None if begun.origin is None else begun.origin.priority,
        "form": begun.campaign.form,
        "timezone": str(scheduler.local),
        "label": begun.label,
        "paths": dict(begun.paths),
        "begun_utc_s": begun.begun.utc_s,
        "steps": {step: {"made": made, "of": of} for step, (made, of) in scheduler.made().items()},
        "runs": dict(scheduler.counts),
        "substitutes": begun.substitutes,
        "budget": scheduler.forecast(now),
    }


def run_description(
    begun: Begun,
    start: Start,
    label: str | None,
    instead: Mapping[str, Mapping[str, Any]],
    local: tzinfo,
    utc_s: float | None,
) -> dict[str, Any]:
    """Which run of the campaign it is: for its manifest and its records. ``utc_s``: now, None while it is not known."""
    return {
        "name": begun.campaign.name,
        "form": begun.campaign.form,
        "step": start.item.step,
        "number": start.item.number,
        "repetition": start.item.repetition,
        "arm": start.item.arm,
        "attempt": start.attempt,
        "label": label,
        "roles": dict(begun.paths),
        "substituted": instead,
        "timezone": str(local),
        "utc_offset_s": zones.offset_s(utc_s, local),
        "sha256": hashlib.sha256(begun.text.encode()).hexdigest(),
        **({} if begun.origin is None else {"push": begun.origin.push}),
    }


def stored(folder: Path, name: str, now: Moment) -> dict[str, Any]:
    """How far a stored campaign is, without a collector; CampaignError when there is none."""
    begun, entries = Progress(folder / name).load()
    state = "under way" if active(folder) == name else "not under way"
    return {**describe(begun, scheduler_of(begun, entries), now), "state": state}


# ---------------------------------------------------------------------------------------------------------------------
# As records: of a campaign, its steps and its data.


def campaign_records(
    status: Mapping[str, Any], operators: Mapping[str, str | None], utc_s: float | None, monotonic_ns: int
) -> list[Record]:
    """The campaign's record, and one for each of its steps and of its roles. ``utc_s``: now, None while it is not known. Pure."""
    begun_s = status["begun_utc_s"]
    fields: dict[str, Value | None] = {
        "state": status["state"],
        "state_code": CAMPAIGN_STATES.index(status["state"]),
        "made": sum(step["made"] for step in status["steps"].values()),
        "of": sum(step["of"] for step in status["steps"].values()),
        **{name: status["runs"].get(name, 0) for name in ("ok", "failed", "cut_off")},
        "step": status.get("run", {}).get("step"),
        "said": (status.get("said") or "")[:500] or None,
        "from_server": status["push"] is not None,
        "age_s": None if utc_s is None or begun_s is None else max(0.0, utc_s - begun_s),
    }
    tags = {"campaign": status["name"]}
    records = [Record.make("campaign", tags, fields, monotonic_ns)]
    for step, counts in status["steps"].items():
        records.append(Record.make("campaign_step", {**tags, "step": step}, counts, monotonic_ns))
    for role, path in status["paths"].items():
        spent = status["budget"].get(role)
        if spent is None:
            continue
        reset = spent["reset"]
        until_s = None if reset is None or utc_s is None else midnight_s(date.fromisoformat(reset)) - utc_s
        of_role: dict[str, Value | None] = {
            "used_bytes": max(0, spent["used_bytes"]),
            "used_today_bytes": max(0, spent["used_today_bytes"]),
            "budget_bytes": spent["budget_bytes"],
            "day_budget_bytes": spent["day_budget_bytes"],
            "left_bytes": spent["left_bytes"],
            "expected_bytes": None if spent["at_reset_bytes"] is None else max(0, spent["at_reset_bytes"]),
            "reset_in_s": None if until_s is None else max(0.0, until_s),
        }
        where = {**tags, "role": role, "path": path, "operator": operators.get(path)}
        records.append(Record.make("campaign_data", where, of_role, monotonic_ns))
    return records
