"""An emulated modem on a pseudo-terminal changes its cell and loses service between two polls: noticed when it says so."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tandem.app.config import parse
from tandem.app.parts import PathChange, PollLike
from tandem.app.real_modems import modem_poller
from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

FAMILIES = ("generic", "quectel", "huawei")
PERIOD_S = 3.0
HANDOVER_S, LOSS_S, LENGTH_S = 4.0, 7.0, 40.0
LATEST_S = 1.3
"""The bench's modem holds a quarter of what it says unasked back for up to 1.1 s."""

GOOD = (Path(__file__).parents[1] / "app" / "good.toml").read_text()
SERVED = {
    "rat": "LTE", "registered": True, "rsrp_dbm": -92.0, "rsrq_db": -9.0, "sinr_db": 14.0, "rssi_dbm": -63.0,
    "plmn": "00101", "tac": 0x1A2B, "eci": 0x05201002, "pci": 54, "earfcn": 1300, "band": 3,
}  # fmt: skip
UNSERVED = {**dict.fromkeys(SERVED), "registered": False}


def row(at_s: float) -> dict[str, Any]:
    if at_s >= LOSS_S:
        return UNSERVED
    return SERVED if at_s < HANDOVER_S else {**SERVED, "eci": 0x05201103, "pci": 55}


class Noticed:
    """What the collector would make of it: every thing in the order in which it came, to the detectors."""

    def __init__(self) -> None:
        self._detectors = Detectors(Settings(period_s=PERIOD_S))
        self._changed = threading.Condition()
        self.events: list[tuple[Record, int]] = []
        self.polls: list[Record] = []

    def put(self, thing: PollLike | PathChange | list[Record]) -> None:
        with self._changed:
            records = thing if isinstance(thing, list) else [] if isinstance(thing, PathChange) else [thing.record()]
            self.polls += [r for r in records if r.measurement == "radio"]
            for record in records:
                self.events += [(event, time.monotonic_ns()) for event in self._detectors.feed(record)]
            self._changed.notify_all()

    def wait(self, what: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(what, 30), self.events

    def of(self, kind: str) -> list[tuple[Record, int]]:
        return [(event, heard_ns) for event, heard_ns in self.events if event.tags["kind"] == kind]


@contextmanager
def bench_modem(family: str, folder: Path, timeline: Path, epoch_ns: int) -> Iterator[Path]:
    """Its port."""
    port = folder / family
    argv = [
        *(sys.executable, "-m", "tandem_bench", "modem", "--family", family, "--timeline", str(timeline)),
        *("--epoch-ns", str(epoch_ns), "--link", str(port), "--seed", "3"),
    ]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("ready")
            yield port
        finally:
            process.terminate()


@contextmanager
def polled(port: Path) -> Iterator[Noticed]:
    """By the collector's own wiring."""
    config = parse(GOOD.replace("/dev/ttyUSB2", str(port)), port.parent / "c.toml")
    path, noticed = next(p for p in config.paths if p.name == "a"), Noticed()
    poller = modem_poller(path, PERIOD_S, noticed.put, lambda _path: None)
    poller.start()
    try:
        yield noticed
    finally:
        poller.stop()


def test_a_handover_and_a_loss_are_noticed_when_the_modem_says_so(tmp_path: Path) -> None:
    header = {"format": "tandem-timeline/1", "operator": "A", "tick_s": 0.5, "duration_s": LENGTH_S}
    rows = [{"t_s": i / 2, **row(i / 2)} for i in range(int(LENGTH_S * 2))]
    timeline = tmp_path / "t.jsonl"
    timeline.write_text("".join(json.dumps(one) + "\n" for one in [header, *rows]))
    with ExitStack() as stack:
        epoch_ns = time.monotonic_ns() + 10**9
        ports = [stack.enter_context(bench_modem(family, tmp_path, timeline, epoch_ns)) for family in FAMILIES]
        all_noticed = [stack.enter_context(polled(port)) for port in ports]
        for noticed in all_noticed:
            noticed.wait(lambda found=noticed: bool(found.of("service_lost")))
            polls = len(noticed.polls)
            noticed.wait(lambda found=noticed, polls=polls: len(found.polls) > polls)
    for noticed in all_noticed:
        for kind, true_s in (("handover", HANDOVER_S), ("service_lost", LOSS_S)):
            ((event, _heard_ns),) = noticed.of(kind)
            assert 0 <= (event.monotonic_ns - epoch_ns) / 1e9 - true_s <= LATEST_S
            assert event.monotonic_ns not in {one.monotonic_ns for one in noticed.polls}
        ((handover, heard_ns),) = noticed.of("handover")
        assert (handover.fields["from_eci"], handover.fields["to_eci"]) == (0x05201002, 0x05201103)
        assert heard_ns < min(one.monotonic_ns for one in noticed.polls if one.monotonic_ns > handover.monotonic_ns)
