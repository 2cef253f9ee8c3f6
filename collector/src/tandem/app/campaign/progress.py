"""How far a campaign is, on disk: its text, its sequence and one line for each begin and end of a run. Survives a power cut.

``FOLDER/begun.json`` (written once, durably) and ``FOLDER/runs.jsonl`` (each line synced; a torn last line is passed over).
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tandem.app.campaign.state import Entry, Moment
from tandem.schema.campaign import Campaign, CampaignError, order
from tandem.schema.campaign_reader import parse
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
    none of their own; ``substitutes``: as ``requires.settled`` says; ``origin`` None: a person began it here."""

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
        """Whether it was begun."""
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
                told: dict[str, Any] = json.loads(line)
                started, ended = Moment(**told.pop("started")), told.pop("ended")
                entry = Entry(**told, started=started, ended=None if ended is None else Moment(**ended))
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
        """No more is written."""
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
