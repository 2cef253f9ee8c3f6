"""``tandem modem watch``: the radio of some modems, live, without the collector."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tandem.modem.access import Access
from tandem.modem.poll import Poll
from tandem.modem.poller import Poller

_SHOWN = (
    ("rsrp_dbm", "RSRP", "dBm"), ("rsrq_db", "RSRQ", "dB"), ("sinr_db", "SINR", "dB"), ("rssi_dbm", "RSSI", "dBm"),
    ("rscp_dbm", "RSCP", "dBm"), ("ecno_db", "Ec/N0", "dB"), ("nr_rsrp_dbm", "NR RSRP", "dBm"), ("plmn", "PLMN", ""),
    ("enb_id", "eNB", ""), ("sector_id", "sector", ""), ("ci", "CI", ""), ("pci", "PCI", ""), ("earfcn", "EARFCN", ""),
    ("band", "band", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Watched:
    """One modem. ``driver``: a family's name or ``auto``."""

    name: str
    operator: str | None
    access: Access
    driver: str


def watch(modems: Sequence[Watched], period_s: float, count: int | None) -> Iterator[Poll]:
    """Every poll of every modem as it ends, until each was polled ``count`` times; None for ever. UnknownDriver at once."""
    made: queue.SimpleQueue[Poll] = queue.SimpleQueue()
    pollers = [Poller(m.name, m.operator, m.access, m.driver, period_s, made.put) for m in modems]
    left: dict[str, int | None] = {m.name: count for m in modems}
    try:
        for poller in pollers:
            poller.start()
        while any(n is None or n > 0 for n in left.values()):
            poll = made.get()
            n = left[poll.path]
            if n is None or n > 0:
                left[poll.path] = None if n is None else n - 1
                yield poll
    finally:
        for poller in pollers:
            poller.stop()


def as_json(poll: Poll) -> str:
    """One object on one line: the record's tags and fields."""
    record = poll.record()
    found: dict[str, Any] = {"monotonic_ns": record.monotonic_ns, **record.tags, **record.fields, "model": poll.model}
    return json.dumps({name: value for name, value in found.items() if value is not None})


def as_text(poll: Poll) -> str:
    """One line for people."""
    fields = poll.record().fields
    shown = [
        f"{name} {_number(fields[key])} {unit}".strip() for key, name, unit in _SHOWN if fields.get(key) is not None
    ]
    rat = poll.reading.rat if poll.reading is not None else None
    who = f"{poll.path} {poll.driver or '-'}"
    failure = f"({poll.failure})" if poll.failure not in (None, poll.state) else ""
    parts = (
        time.strftime("%H:%M:%S"),
        who,
        poll.state,
        failure,
        rat or "",
        "  ".join(shown),
        "stale" if poll.stale else "",
    )
    return "  ".join(part for part in parts if part) + f"  [{poll.duration_ms:.0f} ms]"


def _number(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)
