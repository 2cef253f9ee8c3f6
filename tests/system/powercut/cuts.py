"""What may be on a disk after the power was cut: everything up to the last flush, and of what came after it who knows what."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence

from recording_disk import SECTOR, Entry

MODELS = ("nothing", "everything", "the first writes", "some writes", "some sectors")
"""What is kept of the writes since the last flush; each sector is the old one or a new one, whole. In ``some sectors`` a write is torn."""


def states(
    base: bytes, entries: Sequence[Entry], positions: Sequence[int], chance: random.Random, seen: Counter[str]
) -> Iterator[tuple[int, bytes]]:
    """For each of ``positions`` (ascending: so many entries had come) the disk as it may be then. ``seen`` counts the models used,
    and the cuts at which anything was unsynced."""
    durable, done = bytearray(base), 0
    for position in positions:
        flush = max((n for n in range(done, position) if entries[n].content is None), default=None)
        if flush is not None:
            for entry in entries[done:flush]:
                _write(durable, entry)
            done = flush + 1
        unsynced = entries[done:position]
        model = chance.choice(MODELS)
        seen[model] += 1
        seen["unsynced"] += bool(unsynced)
        state = bytearray(durable)
        for entry in _kept(model, unsynced, chance):
            _write(state, entry)
        yield position, bytes(state)


def _kept(model: str, unsynced: Sequence[Entry], chance: random.Random) -> Iterator[Entry]:
    share = chance.random()
    if model == "everything":
        yield from unsynced
    elif model == "the first writes":
        yield from unsynced[: chance.randint(0, len(unsynced))]
    elif model == "some writes":
        yield from (entry for entry in unsynced if chance.random() < share)
    elif model == "some sectors":
        for entry in unsynced:
            content = entry.content or b""
            for at in range(0, len(content), SECTOR):
                if chance.random() < share:
                    yield Entry(entry.offset + at, content[at : at + SECTOR])


def _write(image: bytearray, entry: Entry) -> None:
    if entry.content is not None:
        image[entry.offset : entry.offset + len(entry.content)] = entry.content
