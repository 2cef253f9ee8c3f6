"""What a probe writes while it records, and what must be there of it after a power cut.

``Story`` does things to a spool and its neighbours in a random order and notes, for each, the log's position before and after: whatever
had returned when the power went is owed, whatever had not begun must not be there.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tandem.app.runs.manifest import write_json
from tandem.capture.capture import Budget, CaptureFile
from tandem.export import PendingManifests
from tandem.schema.record import Record
from tandem.spool import Spool
from tandem.spool.database import KEPT_LONGEST
from tandem.spool.durable import write_durably

BOOT = "b1c0ffee-0000-4000-8000-000000000001"


@dataclass
class Deed:
    """One thing done. ``begun``, ``done``: the log's position; ``marks``: what was appended, by number; ``rejected``: numbers; ``sent``:
    numbers; ``versions``: content by file."""

    what: str
    begun: int
    done: int = -1
    marks: dict[int, int] = field(default_factory=dict)
    sent: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Known:
    """What is true of the world at a moment. ``appended``: mark by number; ``server``: mark by number that the gateway confirmed;
    ``rejected``: numbers in quarantine; ``versions``: content by file; ``mark``: the last one used."""

    appended: dict[int, int] = field(default_factory=dict)
    server: dict[int, int] = field(default_factory=dict)
    rejected: set[int] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    mark: int = 0


def record(chance: random.Random, mark: int) -> Record:
    """One of the kinds that a probe makes; its mark is its monotonic time."""
    kind = chance.choices(["subflow", "radio", "event", "phase"], [20, 15, 2, 1])[0]
    if kind == "event":
        return Record.make("event", {"kind": "handover", "path": "a"}, {"from_eci": mark, "to_eci": mark + 1}, mark)
    if kind == "phase":
        return Record.make("phase", {"run": f"run-{mark}", "experiment": "dash"}, {"name": "play", "number": 1}, mark)
    if kind == "radio":
        return Record.make("radio", {"path": "a", "operator": "A"}, {"rsrp_dbm": -90.0 - mark % 40, "eci": mark}, mark)
    tags = {"run": f"run-{mark % 50}", "path": "a", "operator": "A", "end": "probe", "subflow": "1"}
    return Record.make("subflow", tags, {"rtt_ms": chance.random() * 100, "bytes_received": mark * 1448}, mark)


class Story:
    """``folder``: the probe's; ``position``: of the disk's log; ``limit_bytes``: the spool's cap."""

    def __init__(
        self, folder: Path, position: Callable[[], int], known: Known, chance: random.Random, limit_bytes: int
    ) -> None:
        self._folder, self._position, self._chance, self._limit = folder, position, chance, limit_bytes
        self._mark, self._version = known.mark, known.mark
        self._batches: list[Any] = []
        self.deeds: list[Deed] = []
        self._do("open", self._open)

    def _do(self, what: str, action: Callable[[Deed], None]) -> None:
        deed = Deed(what, self._position())
        self.deeds.append(deed)
        action(deed)
        deed.done = self._position()

    def _open(self, _deed: Deed) -> None:
        self._spool = Spool(self._folder / "spool", BOOT, self._limit)
        (self._folder / "runs").mkdir(exist_ok=True)
        self._pending = PendingManifests(self._folder / "pending-runs", self._folder / "runs")

    def tell(self, deeds: int) -> None:
        whats: dict[Callable[[Deed], None], int] = {
            self._append: 50, self._send: 25, self._release: 3, self._flush: 3, self._reopen: 2,
            self._write_back: 8, self._rewrite: 4, self._manifest: 4, self._manifest_sent: 3, self._capture: 3,
        }  # fmt: skip
        for _ in range(deeds):
            action = self._chance.choices(list(whats), list(whats.values()))[0]
            self._do(action.__name__, action)

    def _append(self, deed: Deed) -> None:
        records = []
        for _ in range(self._chance.choice([1, 5, 40, 40, 120])):
            self._mark += 1
            records.append(record(self._chance, self._mark))
        number = self._spool.counts().made
        for kept in (True, False):  # the first numbers are those of events and summaries
            for one in records:
                if (one.measurement in KEPT_LONGEST) == kept:
                    number += 1
                    deed.marks[number] = one.monotonic_ns
        self._spool.append(records)

    def _send(self, deed: Deed) -> None:
        """As the exporter does: what the gateway confirmed is acknowledged, some of it was rejected."""
        batch = self._spool.take(self._chance.choice([20, 200, 1000]))
        if batch is None:
            return
        if self._chance.random() < 0.2:
            self._batches.append(batch)
            return
        for item in batch.items:
            if self._chance.random() < 0.01:
                self._spool.reject(batch, item.seq, "no")
                deed.rejected.append(item.seq)
            else:
                deed.sent.append(item.seq)
        self._spool.acknowledge(batch)

    def _release(self, _deed: Deed) -> None:
        for batch in self._batches:
            self._spool.release(batch)
        self._batches.clear()

    def _flush(self, _deed: Deed) -> None:
        self._spool.flush()

    def _reopen(self, deed: Deed) -> None:
        self._release(deed)
        self._spool.close()
        self._open(deed)

    def _write_back(self, _deed: Deed) -> None:
        """What the kernel does some seconds later: dirty pages go to the disk, without a flush, in no order that we chose."""
        files = [p for p in self._folder.rglob("*") if p.is_file() and self._chance.random() < 0.5]
        for path in files:
            fd = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)  # begins to write what is dirty, does not wait
            finally:
                os.close(fd)

    def _rewrite(self, deed: Deed) -> None:
        """account.json of the paths' bytes, boots.json: their programs write them so."""
        self._version += 1
        name = self._chance.choice(["account.json", "boots.json"])
        deed.versions[name] = json.dumps({"version": self._version, "filler": "x" * self._chance.randrange(9000)})
        write_durably(self._folder / name, deed.versions[name].encode())

    def _manifest(self, deed: Deed) -> None:
        """A run has ended: its manifest, and that the server must get it."""
        self._version += 1
        run = f"run-{self._version}"
        content = {"id": run, "filler": "y" * self._chance.randrange(9000)}
        deed.versions[f"runs/{run}.json"] = json.dumps(content, indent=1) + "\n"
        write_json(self._folder / "runs" / f"{run}.json", content)
        self._pending.add(run)
        deed.versions[f"pending-runs/{run}"] = ""

    def _manifest_sent(self, deed: Deed) -> None:
        """Forgotten without a sync: what comes back is sent again. Nothing is owed of it any more."""
        for run in self._pending.waiting()[:1]:
            self._pending.done(run)
            deed.versions[f"pending-runs/{run}"] = "-"

    def _capture(self, deed: Deed) -> None:
        """A capture of a run, as tcpdump's stream is taken."""
        self._version += 1
        name = f"captures/{self._version}.pcap"
        header = bytes.fromhex("d4c3b2a1020004000000000000000000ffff000001000000")
        file = CaptureFile(self._folder / name, Budget(1 << 20))
        content = header
        for _ in range(self._chance.randrange(40)):
            size = self._chance.randrange(40, 400)
            content += bytes(8) + size.to_bytes(4, "little") * 2 + self._chance.randbytes(size)
        deed.versions[name] = content.hex()
        file.write(content)
        file.close()

    @property
    def left(self) -> int:
        """The last mark, for what comes after."""
        return max(self._mark, self._version)

    def close(self) -> None:
        """After the last cut: so that the disk can be taken away."""
        self._spool.close()
