"""The process that deflates and hashes: it rests while something is measured, and leaves with whoever asked."""

import hashlib
import io
import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import tandem.export.encoder
from tandem.export import Later
from tandem.export.encoding import Encoder, UnreadableError
from tandem.export.outgoing import Interrupted
from tandem.schema.trace import CHUNK_BYTES, offer_of

CONTENT = random.Random(1).randbytes(CHUNK_BYTES) + b"the same again " * 100_000


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "a.pcap"
    made.write_bytes(CONTENT)
    return made


def state(pid: int) -> str | None:
    """As the kernel says: T stopped; None: gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return None


def until(what: bool | object, condition: object) -> None:
    end_s = time.monotonic() + 60
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end_s, what
        time.sleep(0.02)


def test_offer_and_chunks_are_those_of_the_schema_and_a_file_that_is_gone_is_told_from_one_that_is_none(
    file: Path,
) -> None:
    encoder = Encoder(lambda: False, lambda: False)
    try:
        offer = encoder.offer(file, "captures/a.pcap", "run-1", "gzip")
        assert offer == offer_of(io.BytesIO(CONTENT), "captures/a.pcap", "run-1", "gzip")
        for number, chunk in enumerate(offer.chunks):
            part = encoder.chunk(file, offer, number)
            assert (len(part), hashlib.sha256(part).hexdigest()) == (chunk.bytes, chunk.sha256)
        for name, gone in (("nowhere", True), (".", False)):
            with pytest.raises(UnreadableError) as told:
                encoder.offer(file.parent / name, "captures/a.pcap", None, "gzip")
            assert told.value.gone == gone
    finally:
        encoder.close()


def test_it_runs_when_nobody_else_wants_the_processor() -> None:
    # Another one than the fixture's, and not asked: that might take for ever.
    argv = [sys.executable, "-P", tandem.export.encoder.__file__, str(os.getpid())]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        until("it stands back", lambda: os.sched_getscheduler(process.pid) == os.SCHED_IDLE)
        process.kill()


def test_it_is_stopped_while_something_is_measured_and_goes_on_afterwards(file: Path) -> None:
    measured = threading.Event()
    measured.set()
    encoder, looked = Encoder(measured.is_set, lambda: False), list[int]()

    def look() -> None:
        until("it began", lambda: encoder._child is not None)
        pid = encoder._child.process.pid  # type: ignore[union-attr]
        until("it rests", lambda: state(pid) == "T")
        looked.append(pid)
        measured.clear()

    # Whoever asks is one thread that stays, as the exporter's: the process leaves with the thread that began it.
    other = threading.Thread(target=look)
    other.start()
    offer = encoder.offer(file, "captures/a.pcap", None, "gzip")
    other.join(60)
    assert len(looked) == 1, "it was answered without having rested"
    measured.set()
    with pytest.raises(Interrupted):
        encoder.chunk(file, offer, 0)
    assert state(looked[0]) is None, "a connection does not wait for it"


def test_killed_it_is_begun_again(file: Path) -> None:
    encoder = Encoder(lambda: False, lambda: False)
    try:
        offer = encoder.offer(file, "captures/a.pcap", None, "gzip")
        os.kill(encoder._child.process.pid, signal.SIGKILL)  # type: ignore[union-attr]
        with pytest.raises(Later, match="the encoder ended"):
            encoder.chunk(file, offer, 0)
        assert len(encoder.chunk(file, offer, 0)) == offer.chunks[0].bytes
    finally:
        encoder.close()


ASKING = """
import sys
from pathlib import Path
from tandem.export.encoding import Encoder
encoder = Encoder(lambda: encoder._child is not None and bool(print(encoder._child.process.pid, flush=True)) or True, lambda: False)
encoder.offer(Path(sys.argv[1]), "captures/a.pcap", None, "gzip")
"""


def test_stopped_it_does_not_outlive_who_asked(file: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ASKING, str(file)], stdout=subprocess.PIPE, text=True) as asking:
        pid = int(asking.stdout.readline())
        until("it rests", lambda: state(pid) == "T")
        asking.kill()
    until("it is gone", lambda: state(pid) in (None, "Z"))
