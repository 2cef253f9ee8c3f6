"""Blobs that are given out, or settled but not yet removed from their files. Not safe for several threads: the spool locks."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tandem.spool.blob import Item
from tandem.spool.counts import Counts


@dataclass(slots=True)
class Batch:
    """What ``Spool.take`` gave out. It must come back by ``acknowledge`` or ``release``.

    ``parts``: first number of the file, id of the blob, records in it. ``rejected``: reason by number.
    """

    items: tuple[Item, ...]
    parts: tuple[tuple[int, int, int], ...]
    rejected: dict[int, str] = field(default_factory=dict)


class Outstanding:
    """Files are named by their first number. ``settled``: by file, each blob's id and how many of it were sent and rejected."""

    def __init__(self) -> None:
        self.settled: dict[int, list[tuple[int, int, int]]] = {}
        self._taken: dict[int, tuple[int, int]] = {}
        self._orphans: set[int] = set()

    def of(self, first: int) -> set[int]:
        """Ids of the file ``first`` that are not to be had."""
        return set(self._taken) | {blob for blob, _, _ in self.settled.get(first, ())}

    def take(self, first: int, blob: int, records: int) -> None:
        """The blob is given out."""
        self._taken[blob] = (first, records)

    def settle(self, first: int, blob: int, sent: int, rejected: int) -> None:
        """All of the blob's records are sent or rejected."""
        self._taken.pop(blob, None)
        self._orphans.discard(blob)
        self.settled.setdefault(first, []).append((blob, sent, rejected))

    def release(self, blob: int) -> bool:
        """The blob waits again; False when its file lost it meanwhile."""
        self._taken.pop(blob, None)
        lost = blob in self._orphans
        self._orphans.discard(blob)
        return not lost

    def counted(self, committed: Counts) -> Counts:
        """``committed`` with what is settled but not yet removed."""
        settled = [entry for parts in self.settled.values() for entry in parts]
        sent, rejected = sum(sent for _, sent, _ in settled), sum(rejected for _, _, rejected in settled)
        return replace(committed, sent=committed.sent + sent, rejected=committed.rejected + rejected)

    def elsewhere(self, first: int) -> dict[int, int]:
        """Blobs of the file whose records damage cannot lose: they are in memory, or settled. Records by id."""
        out = {blob: records for blob, (file, records) in self._taken.items() if file == first}
        return out | {blob: sent + rejected for blob, sent, rejected in self.settled.get(first, ())}

    def saved(self, first: int, ids: set[int]) -> None:
        """The file was damaged, and of its blobs only ``ids`` are left: what is out and not among them cannot come back."""
        self._orphans |= {blob for blob, (file, _) in self._taken.items() if file == first} - ids
