"""The cap: when more is pending than there is room for, the oldest records go, events and summaries last."""

from __future__ import annotations

from functools import partial

from tandem.spool.dayfile import DayFile
from tandem.spool.store import Store


def make_room(store: Store, limit_bytes: int) -> None:
    """Drop while there is too much, and then a sixty-fourth more: one commit for many seconds' records. SpoolFullError as it comes."""
    used = store.used_bytes()
    if used <= limit_bytes:
        return
    goal = limit_bytes - limit_bytes // 64
    lost = 0
    for kept in (False, True):
        for first in sorted(store.files.days):
            while used > goal:
                skip = store.out.of(first)
                blobs = store.on(first, partial(DayFile.droppable, kept=kept, skip=skip, least_bytes=used - goal))
                if not blobs:
                    break
                lost += store.drop(first, blobs)
                used = store.used_bytes()
    if lost:
        for first in list(store.files.days):
            store.on(first, DayFile.give_back)
        store.notices.add("spool_dropped", lost, f"records dropped: the spool is larger than {limit_bytes} bytes")
