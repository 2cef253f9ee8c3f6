"""Which files of runs are to go up to the server, and which are there: made anew from manifests, receipts and files whenever the collector
starts. The server's receipts are on disk beside the manifests: ``receipts/NAME.json``, one a file."""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tandem.schema.trace import Receipt, TraceError, is_name, is_sha256, read_receipt
from tandem.spool.durable import sync_folder, write_durably

log = logging.getLogger(__name__)

DAMAGED = "damaged/"
"""Goes before the name of a file that is no longer what its manifest says: so the promised name stays free, and both can be seen."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A file of the probe's folder that is to go up. ``run``: None for one that several runs share; ``bytes`` and ``sha256`` as its
    manifest promises, None where there is no manifest (the collector was killed): then it goes as it is; ``made_utc_ns``: when its run
    ended, 0 when that is not known."""

    name: str
    run: str | None
    bytes: int
    sha256: str | None
    made_utc_ns: int

    @property
    def turn(self) -> tuple[bool, int, str]:
        """Small results before captures, since figures are made of them; then the oldest first, which has been at risk longest."""
        return (self.name.startswith("captures/"), self.made_utc_ns, self.name)


_RUN_OF = re.compile(r"captures/(run-[0-9a-f]{12})-[^/]+\Z")


def left_behind(name: str, size: int, made_utc_ns: int) -> Wanted | None:
    """A file without a manifest; None when its name is none of a trace. Captures bear the id of their run, or of a pair's."""
    found = _RUN_OF.match(name)
    return Wanted(name, found[1] if found else None, size, None, made_utc_ns) if is_name(name) else None


def wanted_of(manifest: object) -> list[Wanted]:
    """The files of a manifest (tandem.schema.manifest), also of one that is not as it was written: what cannot be sent is left out."""
    if not isinstance(manifest, dict):
        return []
    run, files, ended = manifest.get("id"), manifest.get("files"), manifest.get("ended_utc_ns")
    if not isinstance(run, str) or not isinstance(files, list):
        return []
    made = ended if type(ended) is int else 0
    found = []
    for file in files:
        if not isinstance(file, dict):
            continue
        name, size, digest = file.get("name"), file.get("bytes"), file.get("sha256")
        placed = is_name(name) and "/" in str(name) and not str(name).startswith(DAMAGED)
        if placed and type(size) is int and size >= 0 and is_sha256(digest):
            found.append(Wanted(str(name), run, size, str(digest), made))
    return found


class Receipts:
    """``folder``: the probe's. For any number of threads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "receipts"

    def keep(self, receipt: Receipt) -> None:
        """Write it durably: when this returns, the probe's copy may go. OSError when the disk takes nothing."""
        file = self._file(receipt.name)
        new = [place for place in (file.parent, *file.parent.parents) if not place.exists()]
        file.parent.mkdir(parents=True, exist_ok=True)
        for place in new:
            sync_folder(place.parent)
        write_durably(file, (json.dumps(receipt.as_json(), indent=1) + "\n").encode())

    def of(self, name: str) -> Receipt | None:
        """The receipt of a file; None when there is none, or none that can be read (the server tells it again)."""
        try:
            receipt = read_receipt(json.loads(self._file(name).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, RecursionError, TraceError) as error:
            log.warning("%s is no receipt: %s; the server is asked for it again", self._file(name), error)
            return None
        return receipt if receipt.name == name else None

    def names(self) -> set[str]:
        found = set()
        for place, _, files in os.walk(self._folder):
            for file in files:
                name = str((Path(place) / file).relative_to(self._folder))
                if name.endswith(".json") and is_name(name.removesuffix(".json")):
                    found.add(name.removesuffix(".json"))
        return found

    def _file(self, name: str) -> Path:
        if not is_name(name):
            raise ValueError(f"{name!r} is no trace's name")
        return self._folder / f"{name}.json"


FOLDER = "traces"
"""In the probe's folder: offers made, which can be made again."""

State = Literal["waiting", "damaged", "refused", "missing", "received"]


class TraceQueue:
    """``folder``: the probe's. For any number of threads."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.receipts = Receipts(folder)
        self._lock = threading.Lock()
        self._waiting: dict[str, Wanted] = {}
        self._aside: dict[str, tuple[Wanted, State, str]] = {}
        self._kept: dict[str, Receipt] = {}
        """Of files that the server has and that are still here."""
        self._first: list[str] = []
        self.scanned = False

    # --- from the disk ---------------------------------------------------------------------------------------------------

    def scan(self) -> None:
        """Read what lies on the disk; writes nothing."""
        for file in sorted((self.folder / "runs").glob("*.json")):
            self.note(file.stem)
        received = self.receipts.names()
        for name in received:
            self._note_kept(name)
        for file in sorted((self.folder / "captures").glob("*.pcap")):
            self._note_left_behind(file, received)
        self.scanned = True

    def _note_left_behind(self, file: Path, received: set[str]) -> None:
        """A capture of a run that was killed before its manifest was written. Only at a start, when no run is under way."""
        name = str(file.relative_to(self.folder))
        state = file.stat()
        one = left_behind(name, state.st_size, state.st_mtime_ns)
        with self._lock:
            if one is not None and name not in received and name not in self._waiting and name not in self._aside:
                self._waiting[name] = one

    def note(self, run: str) -> None:
        """The manifest of ``run`` lies in its folder."""
        try:
            manifest = json.loads((self.folder / "runs" / f"{run}.json").read_bytes())
        except (OSError, ValueError, RecursionError) as error:
            log.warning("the manifest of run %s cannot be read, its files stay here: %s", run, error)
            return
        missing = [one for one in wanted_of(manifest) if not self._received(one)]
        with self._lock:
            for one in missing:
                self._add(one)

    def _add(self, one: Wanted) -> None:
        if one.name in self._aside:
            return
        if self.receipts.of(DAMAGED + one.name) is not None:
            self._aside[one.name] = (one, "damaged", f"the server has it as {DAMAGED}{one.name}")
            return
        there = self._waiting.get(one.name)
        shared = there is not None and there.run != one.run
        self._waiting[one.name] = replace(one, run=None) if shared else one

    def _received(self, one: Wanted) -> bool:
        receipt = self.receipts.of(one.name)
        return receipt is not None and (receipt.bytes, receipt.sha256) == (one.bytes, one.sha256)

    # --- the order -------------------------------------------------------------------------------------------------------

    def next(self) -> Wanted | None:
        """What is to go up next; None when nothing waits."""
        with self._lock:
            first = next((self._waiting[name] for name in self._first if name in self._waiting), None)
            return first or min(self._waiting.values(), key=lambda one: one.turn, default=None)

    def waiting(self) -> set[str]:
        with self._lock:
            return set(self._waiting)

    def ask_for(self, names: Iterable[str]) -> list[str]:
        """Let these go first, also what was refused before; those that are not known and waiting."""
        unknown = []
        with self._lock:
            wished = list(names)
            for name in wished:
                if name in self._aside and self._aside[name][1] == "refused":
                    self._waiting[name] = self._aside.pop(name)[0]
                if name not in self._waiting:
                    unknown.append(name)
            self._first = [name for name in wished if name in self._waiting] + self._first
        return unknown

    def put_aside(self, wanted: Wanted, state: State, reason: str) -> None:
        """It does not go up in this life of the collector."""
        with self._lock:
            self._waiting.pop(wanted.name, None)
            self._aside[wanted.name] = (wanted, state, reason)

    # --- received --------------------------------------------------------------------------------------------------------

    def received(self, wanted: Wanted, receipt: Receipt) -> None:
        """Keep the receipt. OSError when the disk takes it not: then the file still waits."""
        self.receipts.keep(receipt)
        with self._lock:
            self._waiting.pop(wanted.name, None)
            if receipt.name != wanted.name:
                self._aside[wanted.name] = (wanted, "damaged", f"the server has it as {receipt.name}")
                return
        self._note_kept(wanted.name)

    def _note_kept(self, name: str) -> None:
        if name.startswith(DAMAGED):
            return
        receipt = self.receipts.of(name)
        if receipt is not None and _size(self.folder / name) == receipt.bytes:
            with self._lock:
                self._kept[name] = receipt

    def kept(self) -> list[Receipt]:
        """Of what the server has and is still here, that which was received first before all others."""
        with self._lock:
            return sorted(self._kept.values(), key=lambda one: (one.received_utc_ns, one.name))

    def delete(self, kept: Receipt) -> bool:
        """Delete the probe's copy, if its receipt is on this disk and says so; whether it is gone."""
        receipt = self.receipts.of(kept.name)
        file = self.folder / kept.name
        with self._lock:
            self._kept.pop(kept.name, None)
        if receipt is None or _size(file) != receipt.bytes:
            return False
        file.unlink()
        return True

    # --- for people ------------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """Files and bytes that wait, files that are put aside, files and bytes that are kept."""
        with self._lock:
            return {
                "waiting": len(self._waiting),
                "waiting_bytes": sum(one.bytes for one in self._waiting.values()),
                "aside": len(self._aside),
                "kept": len(self._kept),
                "kept_bytes": sum(one.bytes for one in self._kept.values()),
            }

    def rows(self) -> list[dict[str, Any]]:
        """What waits in its turn, what is put aside and why, what was received."""
        with self._lock:
            waiting = sorted(self._waiting.values(), key=lambda one: one.turn)
            aside, kept = list(self._aside.values()), set(self._kept)
        rows = [_row(one, "waiting", None) for one in waiting]
        rows += [_row(one, state, reason) for one, state, reason in aside]
        for name in sorted(self.receipts.names()):
            receipt = self.receipts.of(name)
            if receipt is not None:
                here = {"kept": name in kept, "received_utc_ns": receipt.received_utc_ns}
                row = {"name": name, "run": receipt.run, "bytes": receipt.bytes, "sha256": receipt.sha256}
                rows.append({**row, "state": "received", "reason": None, **here})
        return rows


def _row(one: Wanted, state: State, reason: str | None) -> dict[str, Any]:
    row = {"name": one.name, "run": one.run, "bytes": one.bytes, "sha256": one.sha256}
    return {**row, "state": state, "reason": reason, "kept": True, "received_utc_ns": None}


def _size(file: Path) -> int | None:
    try:
        return file.stat().st_size
    except OSError:
        return None
