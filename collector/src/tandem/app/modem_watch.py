"""``tandem modem watch`` and ``record``: the radio of some modems, live, without the collector; what goes on with one, as a transcript."""

from __future__ import annotations

import json
import queue
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tandem.at.channel import open_port
from tandem.at.dialogue import Unsolicited
from tandem.modem.poll import Poll, registration_record
from tandem.modem.poller import Poller
from tandem.modem.recorder import Turn, record_at, record_web
from tandem.modem.session import Access, access
from tandem.schema.record import Record
from tandem.spool.durable import write_durably

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


def watch(modems: Sequence[Watched], period_s: float, count: int | None) -> Iterator[Poll | Record]:
    """Every poll of every modem as it ends, and every registration that it tells unasked, until each was polled ``count`` times; None
    for ever. UnknownDriver at once."""
    made: queue.SimpleQueue[Poll | Record] = queue.SimpleQueue()

    def on_line(modem: Watched, line: Unsolicited) -> None:
        record = registration_record(modem.name, modem.operator, line)
        if record is not None:
            made.put(record)

    pollers = [Poller(m.name, m.operator, m.access, m.driver, period_s, made.put, partial(on_line, m)) for m in modems]
    left: dict[str, int | None] = {m.name: count for m in modems}
    try:
        for poller in pollers:
            poller.start()
        while any(n is None or n > 0 for n in left.values()):
            poll = made.get()
            if isinstance(poll, Record):
                yield poll
                continue
            n = left[poll.path]
            if n is None or n > 0:
                left[poll.path] = None if n is None else n - 1
                yield poll
    finally:
        for poller in pollers:
            poller.stop()


def as_json(thing: Poll | Record) -> str:
    """One object on one line: the record's tags and fields; ``measurement`` is radio or registration."""
    record = thing.record() if isinstance(thing, Poll) else thing
    found: dict[str, Any] = {
        "measurement": record.measurement,
        "monotonic_ns": record.monotonic_ns,
        **record.tags,
        **record.fields,
    }
    if isinstance(thing, Poll):
        found["model"] = thing.model
    return json.dumps({name: value for name, value in found.items() if value is not None})


def _registration(record: Record) -> str:
    eci, ci = (record.fields.get(name) for name in ("eci", "ci"))
    cell = f"eNB {eci >> 8}  sector {eci & 255}" if isinstance(eci, int) and record.tags.get("rat") != "NR-SA" else ""
    if not cell and (eci is not None or ci is not None):
        cell = f"cell {eci if eci is not None else ci}"
    state = "registered" if record.fields.get("registered") else str(record.fields.get("state")).replace("_", " ")
    parts = (time.strftime("%H:%M:%S"), record.tags["path"], "says unasked:", state, record.tags.get("rat") or "", cell)
    return "  ".join(part for part in parts if part)


def as_text(thing: Poll | Record) -> str:
    return _registration(thing) if isinstance(thing, Record) else _poll(thing)


def _poll(poll: Poll) -> str:
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


# ---------------------------------------------------------------------------------------------------------------------
# Transcripts.


def record(port: str | None, usb: str | None, out: Path | None, interface: str | None = None) -> int:
    """Record the modem at ``port`` (an AT port, or ``http://ADDRESS`` over ``interface``) or ``usb`` into ``out`` (whole or not at
    all), else on standard output. AtError when it does not answer, OSError when the file cannot be written, ValueError for a place
    that is none."""
    made = record_web(port, interface, _show) if port is not None and "://" in port else _record_at(port, usb)
    text = json.dumps(made, indent=1, ensure_ascii=False) + "\n"
    if out is None:
        print(text, end="")
        return 0
    write_durably(out, text.encode(), 0o644)  # made with sudo, looked through without
    print(
        f"{out}: {len(made['further'])} commands, driver {made['driver']}; look it through before you give it away",
        file=sys.stderr,
    )
    return 0


def _record_at(port: str | None, usb: str | None) -> dict[str, Any]:
    opened = open_port(access(port, usb).look())
    try:
        return record_at(opened, _show)
    finally:
        opened.close()


def _show(turn: Turn) -> None:
    print(f"{turn.send[:120]}  {turn.failure or 'answered'}", file=sys.stderr)
