"""Whatever is appended, taken, acknowledged and crashed in whatever order: nothing is lost, every count is exact."""

import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tandem.schema.record import Record
from tandem.spool import Batch, Spool

BOOT = "b1c0ffee-0000-4000-8000-000000000001"


def record(kind: str, n: int) -> Record:
    if kind == "event":
        return Record.make("event", {"kind": "path_up"}, {"detail": str(n)}, n)
    return Record.make("radio", {"path": "a"}, {"eci": n}, n)


class SpoolMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="spool-test-"))
        self.lives = 0
        self.marks = 0
        self.appended: list[int] = []  # marks in the order of appending
        self.settled: set[int] = set()  # acknowledged or rejected in this life, perhaps not yet durable
        self.durable: set[int] = set()  # and made durable
        self.rejected: set[int] = set()
        self.batches: list[Batch] = []
        self.spool = self.opened()

    def opened(self) -> Spool:
        return Spool(self.root / f"life-{self.lives}", BOOT)

    def mark(self, item_record: Record) -> int:
        return item_record.monotonic_ns

    @rule(kinds=st.lists(st.sampled_from(["event", "radio"]), min_size=1, max_size=6))
    def append(self, kinds: list[str]) -> None:
        records = []
        for kind in kinds:
            self.marks += 1
            records.append(record(kind, self.marks))
            self.appended.append(self.marks)
        self.spool.append(records)
        self.durable |= self.settled

    @rule(limit=st.integers(1, 8))
    def take(self, limit: int) -> None:
        batch = self.spool.take(limit)
        if batch is not None:
            self.batches.append(batch)

    @precondition(lambda self: self.batches)
    @rule(bad=st.booleans())
    def acknowledge(self, bad: bool) -> None:
        batch = self.batches.pop(0)
        if bad:
            self.spool.reject(batch, batch.items[0].seq, "no")
            self.rejected.add(self.mark(batch.items[0].record))
        self.spool.acknowledge(batch)
        self.settled |= {self.mark(i.record) for i in batch.items}

    @precondition(lambda self: self.batches)
    @rule()
    def release(self) -> None:
        self.spool.release(self.batches.pop())

    @rule()
    def flush(self) -> None:
        self.spool.flush()
        self.durable |= self.settled

    @rule()
    def crash(self) -> None:
        """What kill -9 leaves: the files as they are, nothing closed."""
        old = self.root / f"life-{self.lives}"
        self.lives += 1
        shutil.copytree(old, self.root / f"life-{self.lives}")
        self.spool.close()
        self.spool = self.opened()
        self.batches = []
        self.settled = set(self.durable)

    @rule()
    def restart(self) -> None:
        self.spool.close()
        self.durable |= self.settled
        self.spool = self.opened()
        self.batches = []

    @invariant()
    def counts_are_exact(self) -> None:
        counts = self.spool.counts()
        assert counts.made == len(self.appended)
        assert counts.sent + counts.rejected == len(self.settled)
        assert counts.pending == len(self.appended) - len(self.settled)
        assert counts.dropped == 0
        assert sum(counts.by_measurement.values()) == counts.made

    def teardown(self) -> None:
        for batch in self.batches:
            self.spool.release(batch)
        left: list[int] = []
        seqs: set[int] = set()
        while (batch := self.spool.take(1000)) is not None:
            left += [self.mark(i.record) for i in batch.items]
            seqs |= {i.seq for i in batch.items}
            self.spool.acknowledge(batch)
        assert sorted(left) == sorted(set(self.appended) - self.settled)
        assert len(seqs) == len(left)
        self.spool.flush()
        assert self.spool.counts().pending == 0
        self.spool.close()
        shutil.rmtree(self.root)


TestSpoolMachine = SpoolMachine.TestCase
TestSpoolMachine.settings = settings(stateful_step_count=30)

WRITER = """
import sys
from pathlib import Path
from tandem.schema.record import Record
from tandem.spool import Spool
spool = Spool(Path(sys.argv[1]), "boot")
n = 0
while True:
    n += 1
    up = Record.make("event", {"kind": "path_up"}, {"detail": "x"}, n)
    spool.append([Record.make("radio", {"path": "a"}, {"eci": n}, n), up])
    print(n, flush=True)
"""


def test_what_append_confirmed_is_there_after_kill_9(tmp_path):
    for life in range(3):
        command = [sys.executable, "-c", WRITER, str(tmp_path / "spool")]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        confirmed = 0
        for line in writer.stdout:
            confirmed = int(line)
            if confirmed >= 20 + life:
                writer.send_signal(signal.SIGKILL)
                break
        confirmed = max([confirmed, *(int(line) for line in writer.stdout if line.endswith("\n"))])
        writer.wait()
        writer.stdout.close()
        spool = Spool(tmp_path / "spool", "boot")
        counts = spool.counts()
        assert counts.made - counts.sent >= 2 * confirmed
        assert counts.made - counts.sent <= 2 * (confirmed + 1)  # at most the one append that was not yet told
        seen = []
        while (batch := spool.take(1000)) is not None:
            seen += [i.seq for i in batch.items]
            spool.acknowledge(batch)
        assert sorted(seen) == list(range(counts.sent + 1, counts.made + 1))
        spool.close()
