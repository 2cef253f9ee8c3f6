"""Cuts the power of a recording probe again and again and counts what is lost. Root; in a mount namespace of its own. Prints JSON.

A chain of lives: a probe records (``story.py``) on an ext4 of this kernel, on a disk that remembers every write and flush
(``recording_disk.py``). Then, for moments drawn from that log, the disk is made as it may have been just then (``cuts.py``), mounted,
and read by the real code (``judge.py``). One of those disks is the next life's: its first writes are the recovery itself.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cuts import states
from judge import FAULTS, NO_CAP, judge, known_at
from recording_disk import MountError, make_ext4, mend, mounted, mounted_plainly, read_log
from story import Known, Story

SMALL_CAP = 200_000


def life(
    image: bytes, known: Known, chance: random.Random, cuts: int, deeds: int, root: Path, tally: Counter[str]
) -> tuple[bytes, Known]:
    """One life of the probe and ``cuts`` ends of it; one of them, with what is known then."""
    limit = chance.choice([NO_CAP, NO_CAP, SMALL_CAP])
    with mounted(image, root, root / "log") as (place, position):
        story = Story(place, position, known, chance, limit)
        story.tell(deeds)
        end = position()
        story.close()
    entries = read_log(root / "log")
    tally["writes"] += sum(e.content is not None for e in entries[:end])
    tally["flushes"] += sum(e.content is None for e in entries[:end])
    tally["appends"] += sum(deed.what == "_append" for deed in story.deeds)
    tally["acknowledgements"] += sum(deed.what == "_send" for deed in story.deeds)
    positions = sorted(chance.choices(range(end + 1), k=cuts))
    ends: list[tuple[bytes, Known]] = []
    for at, state in states(image, entries, positions, chance, tally):
        promised, under_way = known_at(at, known, story.deeds)
        tally["cuts in the middle of an append"] += under_way is not None and under_way.what == "_append"
        tally["cuts while opening"] += under_way is not None and under_way.what in ("open", "_reopen")
        file = (
            root / f"cut-{tally['cuts']}"
        )  # a file of its own: a loop device may hold on to the last one for a moment
        file.write_bytes(state)
        try:
            with mounted_plainly(file, root / "seen") as place:
                world = judge(place, promised, under_way, limit, tally)
        except MountError:
            # A torn superblock: what ext4 writes in place, outside its journal. A system runs e2fsck before it mounts.
            tally["disks that needed e2fsck"] += 1
            if not mend(file):
                tally["unreadable spools"] += 1
                continue
            state = file.read_bytes()
            with mounted_plainly(file, root / "seen") as place:
                world = judge(place, promised, under_way, limit, tally)
        file.unlink()
        tally["records owed"] += len(promised.appended)
        world.mark = story.left
        ends.append((state, world))
        tally["cuts"] += 1
    return chance.choice(ends)


def main() -> int:
    """Exit status 0, whatever was found: the caller judges."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=20)
    parser.add_argument("--cuts", type=int, default=12, help="in each life")
    parser.add_argument("--deeds", type=int, default=60, help="in each life")
    parser.add_argument("--chain", type=int, default=5, help="lives on one disk, then a new one")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chance, tally, began_s = random.Random(args.seed), Counter[str](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="power-cuts-", dir="/dev/shm") as folder:
        root = Path(folder)
        blank = make_ext4(root / "blank")
        image, known = blank, Known()
        for number in range(args.lives):
            if number % args.chain == 0:
                image, known = blank, Known()
            image, known = life(image, known, chance, args.cuts, args.deeds, root, tally)
    found = {fault: tally[fault] for fault in FAULTS}
    print(json.dumps({**found, **tally, "seconds": round(time.monotonic() - began_s, 1)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
