"""Whether what is on the disk after a power cut is what was owed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path

from story import BOOT, Deed, Known

from tandem.spool import Spool, SpoolError

NO_CAP = 1 << 29
FAULTS = ("lost records", "duplicates", "unreadable spools", "lost or torn files", "wrong counts")


def known_at(position: int, before: Known, deeds: Sequence[Deed]) -> tuple[Known, Deed | None]:
    """What was promised when the log had ``position`` entries, and the deed that was under way."""
    known = deepcopy(before)
    under_way: Deed | None = None
    for deed in deeds:
        if 0 <= deed.done <= position:
            known.appended |= deed.marks
            known.server |= {number: known.appended[number] for number in deed.sent}
            known.rejected |= set(deed.rejected)
            known.versions |= deed.versions
        elif deed.begun <= position:
            under_way = deed
    return known, under_way


def judge(folder: Path, known: Known, under_way: Deed | None, limit_bytes: int, faults: Counter[str]) -> Known:
    """Open what is in ``folder`` with the real code and count ``faults``; the world as it is from now on."""
    world = deepcopy(known)
    may = under_way or Deed("nothing", 0)
    try:
        spool = Spool(folder / "spool", BOOT, NO_CAP)
    except SpoolError as error:
        faults["unreadable spools"] += 1
        faults[f"  {error}"] += 1
        return world
    notices = [notice.detail for notice in spool.notices()]
    damaged = [told for told in notices if "damaged" in told or "cannot be read" in told or "in no page" in told]
    faults["unreadable spools"] += bool(damaged)
    faults.update(f"  {detail}" for detail in damaged)
    counts = spool.counts()
    pending: dict[int, int] = {}
    batches = []
    while (batch := spool.take(1000)) is not None:
        batches.append(batch)
        for item in batch.items:
            faults["duplicates"] += item.seq in pending
            pending[item.seq] = item.record.monotonic_ns
    for batch in batches:
        spool.release(batch)
    spool.close()
    ever = {**may.marks, **known.appended}
    faults["duplicates"] += sum(ever.get(number) != mark for number, mark in pending.items())
    there = counts.made != len(known.appended)
    if counts.made not in (len(known.appended), len(known.appended) + len(may.marks)):
        faults["wrong counts"] += 1
        told = f"{counts.made} made, {counts.dropped} dropped; promised {len(known.appended)}, under way {may.what} of {len(may.marks)}"
        faults[f"  {told}"] += 1
        faults.update(f"  {told}" for told in notices)
    if there:
        world.appended |= may.marks
    if counts.pending != len(pending):
        faults["wrong counts"] += 1
    rejected = _rejected(folder / "spool" / "quarantine")
    faults["lost records"] += len(known.rejected - rejected)
    missing = world.appended.keys() - pending.keys() - known.server.keys() - set(may.sent) - rejected
    faults["lost records"] += max(0, len(missing) - counts.dropped)
    faults["wrong counts"] += counts.dropped > 0 and limit_bytes >= NO_CAP
    world.server |= {number: ever[number] for number in may.sent}
    world.rejected = rejected & (known.rejected | set(may.rejected))
    _files(folder, known, may, faults, world)
    return world


def _rejected(quarantine: Path) -> set[int]:
    numbers = set()
    for file in quarantine.glob("rejected*.jsonl"):
        for line in file.read_bytes().splitlines():
            try:
                numbers.add(int(json.loads(line)["seq"]))
            except ValueError:
                continue  # the last line of a write that had not returned
    return numbers


def _files(folder: Path, known: Known, may: Deed, faults: Counter[str], world: Known) -> None:
    """Each file old or new, whole: what had been written last, or what was being written."""
    for name in known.versions.keys() | may.versions.keys():
        file = folder / name
        found = None
        if file.exists():
            found = file.read_bytes().hex() if name.endswith(".pcap") else file.read_text(errors="replace")
        allowed = {known.versions.get(name), may.versions.get(name, known.versions.get(name))}
        if "-" in allowed:
            allowed |= {None, ""}
        if found not in allowed:
            faults["lost or torn files"] += 1
            faults[f"  {name.split('/')[0]}: {'gone' if found is None else 'neither the old nor the new'}"] += 1
        if found is None:
            world.versions.pop(name, None)
        else:
            world.versions[name] = found
