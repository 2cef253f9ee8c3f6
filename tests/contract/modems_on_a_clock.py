"""The bench's modems and the collector's drivers on one clock, which moves only as the modem takes its time; and as processes, polled.

What a poll may tell is worked out here from the timeline and from what the makers' manuals say of each coding, not from a parser.
"""

import math
import random
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.modem_on_fake_clock import UNHEARD, write_timeline
from support.polled_modem import PolledModem
from tandem.at.dialogue import Dialogue, NoAnswer, Response
from tandem.at.grammar import Command, LineSplitter
from tandem.modem.poll import Poll, in_range
from tandem.modem.session import prepare
from tandem.modem.web import poll_failure
from tandem_bench.modem.dialogue import Modem
from tandem_bench.modem.emulator import Agenda, Emulator
from tandem_bench.modem.families import FAMILIES as BENCH
from tandem_bench.modem.faults import Fault
from tandem_bench.modem.timeline import Timeline

TICK_S, LENGTH_S = 0.1, 30.0
CELLS = (
    {"plmn": "00101", "tac": 0x1A2B, "eci": 0x05201002, "pci": 54, "earfcn": 1300, "band": 3},
    {"plmn": "00101", "tac": 0x0102, "eci": 0x0DD40301, "pci": 417, "earfcn": 6300, "band": 20},
)
PHASES = {
    "positive SINR": 0.0,
    "after a handover, negative SINR": 2.5,
    "no service": 5.0,
    "WCDMA": 6.25,
    "GSM": 7.5,
    "LTE again": 8.75,
}
"""Name → its first second."""
LAST = "LTE again"


def phase_at(t_s: float) -> str:
    return [name for name, begins in PHASES.items() if begins <= max(0.0, t_s) + 1e-9][-1]


def tick(i: int) -> dict[str, Any]:
    """One tick: levels that move by more than a bin from each to the next, so that a value of the tick before is a wrong value."""
    phase = phase_at(i * TICK_S)
    rssi, level, quality = -55 - i * 3.1 % 40, -70.2 - i * 2.3 % 45, -4.1 - i * 0.7 % 10
    if phase == "no service":
        return {"rat": None, "registered": False}
    if phase == "GSM":
        cell = {"plmn": "00101", "tac": 7, "eci": 0x51A2, "pci": 33, "band": 8}
        return {"rat": "GSM", "registered": True, "rssi_dbm": rssi, **cell}
    levels = {"rsrp_dbm": level, "rsrq_db": quality, "rssi_dbm": rssi, "registered": True}
    if phase == "WCDMA":
        cell = {"plmn": "00101", "tac": 7, "eci": 0xABC1234, "pci": 300, "earfcn": 10562, "band": 1}
        return {**levels, "rat": "WCDMA", **cell}
    below = "negative" in phase
    sinr = -1 - i * 1.3 % 15 if below else 2 + i * 1.7 % 22
    return {**levels, "rat": "LTE", "sinr_db": sinr, **CELLS[below]}


TICKS = [tick(i) for i in range(round(LENGTH_S / TICK_S))]

OLDER = {"lac": "tac", "ci": "eci", "rscp_dbm": "rsrp_dbm", "ecno_db": "rsrq_db"}
"""What 2G and 3G have of their own → where the timeline has it."""


def _floor(step: float) -> tuple[float, float]:
    return -step, 0.0


def _rounded(step: float) -> tuple[float, float]:
    return -step / 2, step / 2


@dataclass(frozen=True)
class Tells:
    """What a family tells: by technology, quantity → how far the record may be from the truth; None: as it is."""

    lte: Mapping[str, tuple[float, float] | None]
    older: Mapping[str, tuple[float, float] | None]
    registered: str
    pin: str

    def of(self, rat: str | None) -> Mapping[str, tuple[float, float] | None]:
        """For one technology; nothing without service."""
        return {} if rat is None else self.lte if rat == "LTE" else self.older


_CELL = dict.fromkeys(("plmn", "tac", "eci"))
# +CSQ in steps of 2 dB, +CESQ of 1 and 0.5 (3GPP TS 27.007 clauses 8.5 and 8.69); no SINR, no physical cell.
_STANDARD = Tells(
    lte={"rsrp_dbm": _floor(1), "rsrq_db": _floor(0.5), "rssi_dbm": _floor(2), **_CELL},
    older={"rssi_dbm": _floor(2), "plmn": None, "lac": None, "ci": None, "rscp_dbm": _floor(1), "ecno_db": _floor(0.5)},
    registered="unknown",
    pin="no_service",
)
FAMILIES = {
    "generic": _STANDARD,
    "ublox": _STANDARD,  # the bench answers +UCGED with an error
    # +QENG in whole decibels, its SINR in steps of 2.
    "quectel": Tells(
        lte={
            "rsrp_dbm": _rounded(1), "rsrq_db": _rounded(1), "rssi_dbm": _rounded(1), "sinr_db": _rounded(2.2), **_CELL,
            **dict.fromkeys(("pci", "earfcn", "band")),
        },
        older={
            "rssi_dbm": _rounded(1), "plmn": None, "lac": None, "ci": None, "rscp_dbm": _rounded(1), "ecno_db": _rounded(1),
        },
        registered="idle",
        pin="limited",
    ),
    # ^MONSC in whole decibels, ^HCSQ's SINR in fifths; of the older technologies ^HCSQ's RSSI by its lower edge.
    "huawei": Tells(
        lte={
            "rsrp_dbm": _rounded(1), "rsrq_db": _rounded(1), "rssi_dbm": _rounded(1), "sinr_db": _floor(0.2), **_CELL,
            **dict.fromkeys(("pci", "earfcn")),
        },
        older={"rssi_dbm": _floor(1), "plmn": None},
        registered="unknown",
        pin="no_service",
    ),
}  # fmt: skip


class VirtualModem:
    """One modem as its driver sees it, driver ``auto``; the wire is a buffer, and every wait is over at once."""

    def __init__(self, family: str, timeline: Timeline) -> None:
        self.family, self.now_s = family, 0.0
        self._agenda, self._wire, self._splitter = Agenda(), bytearray(), LineSplitter()
        modem = Modem("004401010000017", "001010123456789", "89990010100000000012", "Alpha Mobile", "00101")
        self._emulator = Emulator(
            BENCH[family], modem, timeline, self, self._agenda, lambda: self.now_s, random.Random(1), lambda _fault: None
        )  # fmt: skip
        self._emulator.start()
        self._identity, self._driver = prepare(self, "auto")  # type: ignore[arg-type]

    def write(self, sent: bytes) -> None:
        self._wire += sent

    def unread(self) -> int:
        return 0

    def ask(self, command: str, deadline_s: float) -> Response:
        """As ``at.channel.Channel`` does."""
        until_s, dialogue = self.now_s + deadline_s, Dialogue(Command(command))
        self._emulator.received(command.encode() + b"\r")
        while True:
            received = bytes(self._wire)
            self._wire.clear()
            for line in self._splitter.feed(received):
                if (response := dialogue.feed(line)) is not None:
                    return response
            due_s = self._agenda.next_due_s()
            if due_s is None or due_s > until_s:
                raise NoAnswer(command)
            self.advance(due_s)

    def advance(self, until_s: float) -> None:
        while (due_s := self._agenda.next_due_s()) is not None and due_s <= until_s:
            self.now_s = max(self.now_s, due_s)
            self._agenda.run(self.now_s)
        self.now_s = max(self.now_s, until_s)

    def play(self, fault: Fault) -> None:
        self._emulator.play(fault)

    def poll(self) -> Poll:
        began_s = self.now_s
        answers = [self.ask(command, 10.0) for command in self._driver.poll_commands(self._identity)]
        reading, out_of_range = in_range(self._driver.decode(answers, self._identity))
        assert out_of_range == (), answers
        failure = poll_failure(self._driver, answers, reading)
        began_ns, ended_ns = round(began_s * 1e9), round(self.now_s * 1e9)
        kept = reading if failure is None else None
        return Poll("a", "A", self._driver.name, None, began_ns, began_ns, ended_ns, kept, failure)

    def wrong(self, poll: Poll, *, registered: bool = True) -> list[str]:
        """Quantities of the poll's record that no tick from its beginning to its end explains.

        What the family tells must be there, unless the technology changed meanwhile or, for the cell, it was not ``registered``.
        """
        record, tells = poll.record(), FAMILIES[self.family]
        first, last = (
            math.floor(at / 1e9 / TICK_S + 1e-9) for at in (poll.began_monotonic_ns, poll.ended_monotonic_ns)
        )
        ticks = TICKS[first : last + 1]
        changed = len({true["rat"] for true in ticks}) > 1
        found = []
        for key in (*UNHEARD, *(key for key in OLDER if key in tells.older)):
            value = record.fields.get(key)
            absent_is_fine = changed or (not registered and tells.lte.get(key, ()) is None)
            if (value is None and absent_is_fine) or any(
                explained(tells.of(true["rat"]), key, value, true.get(OLDER.get(key, key)), loosely=changed)
                for true in ticks
            ):
                continue
            found.append(f"{key} {value}, not {[true.get(OLDER.get(key, key)) for true in ticks]}: {shown(poll)}")
        if record.tags.get("rat") not in {true["rat"] for true in ticks}:
            found.append(f"rat {record.tags.get('rat')}: {shown(poll)}")
        return found


def explained(
    told: Mapping[str, tuple[float, float] | None], key: str, value: Any, true: Any, *, loosely: bool
) -> bool:
    """Whether ``value`` is what a family that tells ``told`` makes of ``true``. ``loosely``: two answers may have made it up."""
    if key not in told or true is None:
        return value is None
    edges = told[key]
    if value is None or edges is None:
        return bool(value == true)
    low, high = (min(edges[0], -edges[1]), max(-edges[0], edges[1])) if loosely else edges
    return bool(low - 1e-6 <= value - true <= high + 1e-6)


def shown(poll: Poll) -> str:
    fields = {k: v for k, v in poll.record().fields.items() if v is not None}
    return f"{poll.failure} {fields}"


@contextmanager
def polled_modems(folder: Path, period_s: float) -> Iterator[list[PolledModem]]:
    """Every family of the bench at once, each a process whose timeline is its first tick for ever, polled with driver ``auto``."""
    timeline = write_timeline(folder / "timeline.jsonl", TICKS[:1], usual=UNHEARD)
    with ExitStack() as stack:
        modems = [PolledModem(folder, timeline, family, period_s) for family in BENCH]
        for polled in modems:
            polled.start()
            stack.callback(polled.close)
        yield modems
