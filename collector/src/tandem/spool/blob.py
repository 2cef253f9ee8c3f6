"""Numbered records to bytes and back: JSON, deflated, one blob for what was appended together."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tandem.schema.record import Record

BLOB_RECORDS = 500
"""Records of one blob at most, so that a batch of 1000 lines can always be filled from both ends."""

KEPT_LONGEST = ("event", "run_begun", "run", "run_usage", "phase", "dash", "aggregation", "verdict")
"""Events, and what a run begins and ends with and comes to. They are dropped last, and so have blobs of their own: few, and what everything
else is read by."""


class BlobError(ValueError):
    """The bytes are no blob of this version, or damaged."""


@dataclass(frozen=True, slots=True)
class Item:
    """A record with its number (from 1, without gaps) and the boot in which it was made."""

    seq: int
    boot: str
    record: Record


def pack(items: Sequence[Item]) -> bytes:
    """``items`` (at least one, all of one boot) as bytes."""
    rows = [[i.seq, i.record.measurement, i.record.tags, i.record.fields, i.record.monotonic_ns] for i in items]
    text = json.dumps([items[0].boot, rows], separators=(",", ":"), default=dict)
    # Level 1: at level 6 a second's records are 4 % smaller for three times the processor time, which a small Pi lacks.
    return zlib.compress(text.encode(), 1)


def unpack(blob: bytes) -> list[Item]:
    """The inverse of ``pack``; BlobError whatever is wrong with the bytes (deflate carries a checksum)."""
    try:
        boot, rows = json.loads(zlib.decompress(blob))
        if not isinstance(boot, str):
            raise BlobError(f"boot is {boot!r}")
        return [_item(boot, *row) for row in rows]
    except (zlib.error, ValueError, TypeError, RecursionError) as error:
        raise BlobError(f"no blob of records: {error}") from error


def beginning(blob: bytes) -> tuple[str, int] | None:
    """The boot of its records and their least CLOCK_MONOTONIC ns; None when the bytes are no blob."""
    try:
        items = unpack(blob)
    except BlobError:
        return None
    return items[0].boot, min(item.record.monotonic_ns for item in items)


def _item(boot: str, seq: object, measurement: object, tags: object, fields: object, mono: object) -> Item:
    if not (
        isinstance(seq, int) and isinstance(measurement, str) and isinstance(tags, dict) and isinstance(fields, dict)
    ):
        raise BlobError("a row of wrong types")
    if not isinstance(mono, int):
        raise BlobError("a row without a time")
    return Item(seq, boot, Record(measurement, tags, fields, mono))
