"""What goes up of a file is deflated and hashed once, rests while something is measured, and is made anew when the file is another."""

import errno
import hashlib
import io
import random
import threading
from pathlib import Path

import pytest

from support.offers import offer_of
from tandem.export.gateway import Interrupted, Later
from tandem.export.streams import Streams, UnreadableError
from tandem.export.trace_queue import Wanted
from tandem.schema.trace import CHUNK_BYTES, Encoding

CONTENT = random.Random(1).randbytes(CHUNK_BYTES) + b"the same again " * 100_000
NAME = "captures/a.pcap"
WANTED = Wanted(NAME, "run-1", len(CONTENT), hashlib.sha256(CONTENT).hexdigest(), 1)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "captures").mkdir()
    (tmp_path / NAME).write_bytes(CONTENT)
    return tmp_path


def streams(folder: Path, encoding: Encoding = "gzip") -> Streams:
    return Streams(folder, folder / "traces/offers", encoding, lambda: False, lambda: False)


@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_offer_and_stream_are_those_of_the_schema_and_are_kept(folder, encoding, monkeypatch):
    offer = streams(folder, encoding).of(WANTED)
    assert offer == offer_of(io.BytesIO(CONTENT), NAME, "run-1", encoding)

    def refuse(*_: object) -> None:
        raise AssertionError("deflated twice")

    monkeypatch.setattr("tandem.export.streams.encoded", refuse)
    again = streams(folder, encoding)
    assert again.of(WANTED) == offer
    offset = 0
    for chunk in offer.chunks:
        part = again.part(WANTED, offer, offset, chunk.bytes)
        assert hashlib.sha256(part).hexdigest() == chunk.sha256
        offset += chunk.bytes
    again.forget(WANTED)
    assert list((folder / "traces/offers").iterdir()) == []


def test_a_file_that_is_gone_is_told_from_one_that_is_none(folder):
    for name, gone in (("captures/nowhere", True), ("captures", False)):
        with pytest.raises(UnreadableError) as refused:
            streams(folder).of(Wanted(name, None, 1, None, 1))
        assert refused.value.gone == gone


def test_another_file_is_another_stream_and_one_cut_short_is_made_anew(folder):
    made = streams(folder)
    first = made.of(WANTED)
    (stream,) = (folder / "traces/offers").glob("*.stream")
    stream.write_bytes(stream.read_bytes()[:-1])
    with pytest.raises(Later, match="not read as it was"):
        made.part(WANTED, first, 0, first.stream_bytes)
    assert made.of(WANTED) == first
    assert len(made.part(WANTED, first, 0, first.stream_bytes)) == first.stream_bytes
    (folder / NAME).write_bytes(CONTENT[:-1])
    assert made.of(Wanted(NAME, "run-1", 1, None, 1)).bytes == len(CONTENT) - 1
    made.keep_only([])
    assert list((folder / "traces/offers").iterdir()) == []


def test_nothing_is_deflated_while_something_is_measured(folder, monkeypatch):
    measured, asked, began = threading.Event(), threading.Semaphore(0), threading.Event()

    def held() -> bool:
        asked.release()
        began.set()
        return measured.is_set()

    monkeypatch.setattr("tandem.export.streams._LOOK_S", 0.01)
    made, ended = Streams(folder, folder / "traces/offers", "gzip", held, lambda: False), threading.Event()
    measured.set()
    offers = []
    thread = threading.Thread(target=lambda: (offers.append(made.of(WANTED)), ended.set()))
    thread.start()
    assert began.wait(60)
    for _ in range(5):  # it asks again and again, and does nothing else
        assert asked.acquire(timeout=60)
    assert not ended.is_set()
    measured.clear()
    thread.join(60)
    assert [offer.sha256 for offer in offers] == [WANTED.sha256]


def test_when_all_ends_it_ends_too(folder):
    made = Streams(folder, folder / "traces/offers", "gzip", lambda: True, lambda: True)
    with pytest.raises(Interrupted):
        made.of(WANTED)
    assert streams(folder).of(WANTED).sha256 == WANTED.sha256


def test_a_full_disk_is_emptied_all_the_same(folder, monkeypatch):
    def refuse(_fd: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("tandem.export.streams.os.fsync", refuse)
    offer = streams(folder).of(WANTED)
    assert (offer.encoding, offer.sha256) == ("identity", WANTED.sha256)
    assert streams(folder).of(WANTED) == offer, "as long as it waits"
    assert not list((folder / "traces/offers").glob("*.stream"))
