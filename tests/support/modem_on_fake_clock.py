"""A modem on a fake clock, and timelines on disk: what the tests of the emulated modems share."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem_bench.modem.dialogue import Modem
from tandem_bench.modem.emulator import Agenda, Emulator

MODEM = Modem("004401010000017", "001010123456789", "89990010100000000012", "Alpha Mobile", "00101")

TICK: dict[str, Any] = {
    "rsrp_dbm": -97.0, "rsrq_db": -10.0, "sinr_db": 11.0, "rssi_dbm": -67.0, "plmn": "00101", "tac": 6699, "eci": 0x1902E01,
    "pci": 54, "earfcn": 1300, "band": 3, "rat": "LTE", "registered": True,
}  # fmt: skip


UNHEARD: dict[str, Any] = dict.fromkeys(key for key in TICK if key not in ("rat", "registered"))


def write_timeline(
    path: Path, ticks: list[dict[str, Any]], operator: str = "A", tick_s: float = 0.1, usual: dict[str, Any] = TICK
) -> Path:
    """A timeline of ``ticks``, each the ``usual`` one with the given keys changed; without the link's keys."""
    header = {"format": "tandem-timeline/1", "operator": operator, "tick_s": tick_s, "duration_s": len(ticks) * tick_s}
    lines = [header, *({"t_s": round(i * tick_s, 6), **usual, **tick} for i, tick in enumerate(ticks))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@dataclass
class Desk:
    """An emulator with a fake clock and a wire that remembers. ``sent``: what it sent, with the times."""

    emulator: Emulator = field(init=False)
    agenda: Agenda = field(default_factory=Agenda)
    now_s: float = 0.0
    sent: list[tuple[float, bytes]] = field(default_factory=list)
    attached: bool = True
    waiting_unread: int = 0

    def write(self, sent: bytes) -> None:
        assert self.attached, "it sent while it was away"
        self.sent.append((self.now_s, sent))

    def unread(self) -> int:
        return self.waiting_unread

    def detach(self) -> None:
        self.attached = False

    def attach(self) -> None:
        self.attached = True

    def advance(self, seconds: float) -> None:
        until = self.now_s + seconds
        while (due := self.agenda.next_due_s()) is not None and due <= until:
            self.now_s = max(self.now_s, due)
            self.agenda.run(self.now_s)
        self.now_s = until

    def heard(self) -> bytes:
        text = b"".join(sent for _, sent in self.sent)
        self.sent.clear()
        return text

    def ask(self, line: str, wait_s: float = 0.2) -> bytes:
        self.heard()
        self.emulator.received(line.encode() + b"\r")
        self.advance(wait_s)
        return self.heard()
