"""Rejected records, for people: JSON lines with the reason. A record may stand here twice after a crash; its ``seq`` tells."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

from tandem.spool.blob import Item


def quarantine(folder: Path, rejected: Iterable[tuple[Item, str]]) -> None:
    """Append to ``folder``/rejected.jsonl, durable on return. OSError when the disk takes nothing."""
    lines = [
        json.dumps(
            {
                "seq": item.seq,
                "reason": reason,
                "measurement": item.record.measurement,
                "tags": dict(item.record.tags),
                "fields": dict(item.record.fields),
                "boot": item.boot,
                "monotonic_ns": item.record.monotonic_ns,
                "utc_ns": item.record.utc_ns,
                "rejected_utc_ns": time.time_ns(),
            }
        )
        for item, reason in rejected
    ]
    if not lines:
        return
    folder.mkdir(exist_ok=True)
    with (folder / "rejected.jsonl").open("a") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())
