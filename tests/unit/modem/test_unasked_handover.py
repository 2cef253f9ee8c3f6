"""A modem of the bench, in steps of its own clock, changes its cell and loses service between two polls: noticed when it says so."""

from __future__ import annotations

import json
import os
import random
import select
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from scripted_modem import be_patient

from tandem.app.config import parse
from tandem.app.parts import PathChange, PollLike
from tandem.app.real_modems import modem_poller
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record
from tandem_bench.modem.agenda import Agenda
from tandem_bench.modem.dialogue import Modem
from tandem_bench.modem.emulator import Emulator
from tandem_bench.modem.families import FAMILIES
from tandem_bench.modem.timeline import read

PERIOD_S = 3600.0
"""There is one poll, at the beginning."""
TICK_S, HANDOVER_S, LOSS_S = 50.0, 100.0, 150.0

GOOD = (Path(__file__).parents[1] / "app" / "good.toml").read_text()
SERVED = {
    "rat": "LTE", "registered": True, "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0,
    "plmn": "00101", "tac": 0x1A2B, "eci": 0x05201002, "pci": 54, "earfcn": 1300, "band": 3,
}  # fmt: skip
UNSERVED = {**dict.fromkeys(SERVED), "registered": False}


ROWS = [SERVED, SERVED, {**SERVED, "eci": 0x05201103, "pci": 55}, UNSERVED]


class Noticed:
    """What the collector would make of it: every thing in the order in which it came, to the detectors."""

    def __init__(self) -> None:
        self._detectors = Detectors(Settings(period_s=3.0))
        self._changed = threading.Condition()
        self.events: list[Record] = []
        self.polls: list[Record] = []
        self.told: list[Record] = []

    def put(self, thing: PollLike | PathChange | list[Record]) -> None:
        with self._changed:
            records = thing if isinstance(thing, list) else [] if isinstance(thing, PathChange) else [thing.record()]
            self.polls += [r for r in records if r.measurement == "radio"]
            self.told += [r for r in records if r.measurement == "registration"]
            for record in records:
                self.events += self._detectors.feed(record)
            self._changed.notify_all()

    def wait(self, what: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(what, 60), self.events

    def later(self) -> None:
        """So much later that a reported loss against which nothing spoke is believed."""
        with self._changed:
            self.events += self._detectors.tick(time.monotonic_ns() + 10**12)

    def of(self, kind: str) -> list[Record]:
        return [event for event in self.events if event.tags["kind"] == kind]


class SteppedModem:
    """The bench's modem at a pseudo-terminal. Its clock moves by what its answers take, and when it is told to."""

    def __init__(self, family: str, timeline: Path) -> None:
        self.now_s, self._lock, self._agenda = 0.0, threading.Lock(), Agenda()
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        self.port = os.ttyname(self._slave)
        self._stop_read, self._stop_write = os.pipe()
        modem = Modem("004401010000017", "001010123456789", "89990010100000000012", "Alpha Mobile", "00101")
        self._emulator = Emulator(
            FAMILIES[family], modem, read(timeline), self, self._agenda, lambda: self.now_s, random.Random(3), lambda _: None
        )  # fmt: skip
        self._emulator.start()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def write(self, sent: bytes) -> None:
        os.write(self._master, sent)

    def unread(self) -> int:
        return 0

    def advance(self, until_s: float) -> None:
        with self._lock:
            self._run(until_s)

    def close(self) -> None:
        os.write(self._stop_write, b"x")
        self._thread.join(60)
        for fd in (self._master, self._slave, self._stop_read, self._stop_write):
            os.close(fd)

    def _run(self, until_s: float) -> None:
        while (due_s := self._agenda.next_due_s()) is not None and due_s <= until_s:
            self.now_s = max(self.now_s, due_s)
            self._agenda.run(self.now_s)
        self.now_s = max(self.now_s, until_s)

    def _serve(self) -> None:
        while True:
            ready, _, _ = select.select([self._master, self._stop_read], [], [])
            if self._stop_read in ready:
                return
            with self._lock:
                self._emulator.received(os.read(self._master, 4096))
                self._run(self.now_s + 0.2)


@contextmanager
def polled(port: str, folder: Path) -> Iterator[Noticed]:
    """By the collector's own wiring."""
    config = parse(GOOD.replace("/dev/ttyUSB2", port), folder / "c.toml")
    path, noticed = next(p for p in config.paths if p.name == "a"), Noticed()
    poller = modem_poller(path, PERIOD_S, noticed.put, lambda _path: None)
    poller.start()
    try:
        yield noticed
    finally:
        poller.stop(60)


@pytest.mark.parametrize("family", ["generic", "quectel", "huawei"])
def test_a_handover_and_a_loss_are_noticed_when_the_modem_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str
) -> None:
    be_patient(monkeypatch)
    monkeypatch.setattr("tandem.modem.poller.DEADLINE_SHARE", 0.1)  # of an hour
    header = {"format": "tandem-timeline/1", "operator": "A", "tick_s": TICK_S, "duration_s": TICK_S * len(ROWS)}
    rows = [{"t_s": i * TICK_S, **row} for i, row in enumerate(ROWS)]
    timeline = tmp_path / "t.jsonl"
    timeline.write_text("".join(json.dumps(one) + "\n" for one in [header, *rows]))
    modem = SteppedModem(family, timeline)
    try:
        with polled(modem.port, tmp_path) as noticed:
            noticed.wait(lambda: len(noticed.polls) == 1)
            for kind, at_s, registered in (("handover", HANDOVER_S, True), ("service_lost", LOSS_S, False)):
                modem.advance(at_s - 1)
                before_ns = time.monotonic_ns()
                modem.advance(at_s + 2)
                noticed.wait(
                    lambda after=before_ns, r=registered: any(
                        one.fields.get("registered") is r for one in noticed.told if one.monotonic_ns > after
                    )
                )
                noticed.later()
                (event,) = noticed.of(kind)
                assert before_ns < event.monotonic_ns < time.monotonic_ns()
    finally:
        modem.close()
    (handover,) = noticed.of("handover")
    assert (handover.fields["from_eci"], handover.fields["to_eci"]) == (0x05201002, 0x05201103)
    assert len(noticed.polls) == 1
