"""What the service does with bad bytes, lost tails, second writers, full disks, bounds and leftovers."""

import contextlib
import dataclasses
import functools
import gzip
import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from support.upload_service_here import CHUNK, PLENTY, Place, offered
from tandem.schema.trace import Chunk
from tandem_server.http.body import Busy
from tandem_server.registry import NameTaken, TooManyUnfinished
from tandem_server.uploads.service import BadBytes, NoOffer, Refused, Streams, TooLong, WrongOffset
from tandem_server.uploads.store import TraceStoreDown

CONTENT = bytes(range(256)) * 64  # four chunks


@pytest.fixture
def bounded(tmp_path):
    """Makes places with bounds, or a store, of their own."""
    made = []

    def one(store=None, **limits):
        made.append(Place(tmp_path / str(len(made)), dataclasses.replace(PLENTY, **limits), store))
        return made[-1]

    yield one
    for each in made:
        each.registry.close()


@pytest.fixture
def place(bounded):
    return bounded()


def begun(place, content=CONTENT, name="captures/run-1-a.pcap", encoding="identity"):
    offer, stream = offered(content, name, encoding)
    place.desk.offer("probe-1", offer)
    return offer, stream


def append(place, offer, piece, offset=None):
    at = place.desk.state("probe-1", offer.sha256).offset if offset is None else offset
    with contextlib.closing(place.desk.begin("probe-1", offer.sha256, at)) as writer:
        writer.append(piece)
        place.desk.checkpoint(writer)
        return writer.offset


def test_a_file_shorter_than_what_was_on_disk_is_not_believed(place):
    offer, stream = begun(place)
    append(place, offer, stream[: 3 * CHUNK])
    file = place.stream("probe-1", offer)
    file.write_bytes(stream[:CHUNK] + bytes(CHUNK))
    assert place.desk.state("probe-1", offer.sha256).offset == CHUNK
    assert place.registry.pending_uploads.offered("probe-1", offer.sha256)[0].checked_bytes == CHUNK


def test_two_at_once_from_the_same_offset_leave_one_stream(place):
    offer, stream = begun(place)
    together = threading.Barrier(4)

    def send(_):
        together.wait()
        with contextlib.suppress(WrongOffset):
            append(place, offer, stream, 0)

    with ThreadPoolExecutor(4) as senders:
        assert len(list(senders.map(send, range(4)))) == 4
    offset = place.desk.state("probe-1", offer.sha256).offset
    with pytest.raises(TooLong):  # more than the stream is refused and the stream kept
        append(place, offer, stream[offset:] + b"x")
    assert place.desk.settle("probe-1", offer.sha256).receipt is not None


def test_chunks_that_are_not_the_file_are_refused_in_the_end_and_at_last_for_good(place):
    offer, stream = offered(CONTENT)
    false = replace(offer, sha256=offered(b"something else")[0].sha256)
    for _ in range(3):
        place.send("probe-1", false, stream)
        with pytest.raises(BadBytes, match="another hash") as refused:
            place.desk.settle("probe-1", false.sha256)
        assert refused.value.offset == 0
    with pytest.raises(Refused):
        place.desk.offer("probe-1", false)
    with pytest.raises(NoOffer):
        place.desk.begin("probe-1", false.sha256, 0)
    right, whole = offered(b"something else")
    assert place.received("probe-1", right, whole).sha256 == false.sha256  # the same name and hash, other chunks


def test_a_chunk_that_matches_its_hash_but_not_the_file_is_found_in_the_end(bounded):
    for made, why in [
        (b"no gzip at all", "no gzip"),
        (gzip.compress(CONTENT[:9]) + gzip.compress(CONTENT[9:4096]), "one member"),
        (gzip.compress(CONTENT[:4095]), "holds"),
        (gzip.compress(bytes(1 << 24), 9)[:4000], "more than"),
        (gzip.compress(CONTENT[:4096])[:-3], "one member"),
    ]:
        place = bounded()
        offer, _ = offered(CONTENT[:4096])
        false = replace(offer, chunks=(Chunk(len(made), hashlib.sha256(made).hexdigest()),))
        place.send("probe-1", false, made)
        with pytest.raises(BadBytes, match=why):
            place.desk.settle("probe-1", false.sha256)
        assert place.registry.traces.received() == []


def test_an_offer_made_before_its_name_was_taken_ends_with_409(place):
    other, stream = offered(b"other content", "late")
    place.send("probe-1", other, stream)
    place.received("probe-1", *offered(CONTENT, "a"))
    with place.registry._write() as connection:  # as another process would between the two
        connection.execute("UPDATE traces SET name = 'late'")
    with pytest.raises(NameTaken):
        place.desk.settle("probe-1", other.sha256)
    with pytest.raises(NoOffer):
        place.desk.state("probe-1", other.sha256)


def test_a_crash_between_the_store_and_the_registry_costs_nothing(place):
    offer, stream = offered(CONTENT)
    place.send("probe-1", offer, stream)
    place.store.put(place.stream("probe-1", offer), "probe-1", offer.name, offer.sha256, offer.encoding)
    other = replace(offered(CONTENT, encoding="identity")[0], chunk_bytes=CHUNK)
    assert place.desk.offer("probe-1", other).offset == 0  # begins anew: the file in the store stays whole
    assert (place.folder / "traces/probe-1" / (offer.name + ".gz")).read_bytes() == stream
    assert place.received("probe-1", offer, stream).sha256 == offer.sha256
    assert [row.place for row in place.registry.traces.received()] == [f"probe-1/{offer.name}.gz"]


def test_while_it_is_put_into_the_store_others_are_told_to_wait(bounded, monkeypatch):
    holding, go_on = threading.Event(), threading.Event()

    class Slow:
        def put(self, *_):
            holding.set()
            go_on.wait(60)
            raise TraceStoreDown("away")

    place = bounded(Slow())
    offer, stream = offered(CONTENT)
    place.send("probe-1", offer, stream)
    with ThreadPoolExecutor(1) as beside:
        settling = beside.submit(place.desk.settle, "probe-1", offer.sha256)
        assert holding.wait(60)
        locked = Streams.locked
        monkeypatch.setattr(Streams, "locked", functools.partialmethod(locked, wait_s=0.1))
        with pytest.raises(Busy):
            place.desk.state("probe-1", offer.sha256)
        with pytest.raises(Busy):
            place.desk.offer("probe-1", offered(CONTENT, encoding="identity")[0])
        go_on.set()
    assert isinstance(settling.exception(), TraceStoreDown)
    assert place.desk.complete("probe-1", offer.sha256)  # and the next request tries again


def a_day_passes(place, name):
    with place.registry._write() as connection:
        later = "UPDATE trace_offers SET touched_utc_ns = touched_utc_ns - 90000 * 1000000000 WHERE name = ?"
        connection.execute(later, (name,))


def test_what_nothing_comes_for_is_given_up_and_logged(bounded, caplog):
    place = bounded(unfinished_days=1.0)
    old, stream = begun(place, CONTENT, "old")
    append(place, old, stream[:5000])
    begun(place, CONTENT[:5000], "young")
    a_day_passes(place, "old")
    assert place.desk.sweep() == 1
    assert "gave up old: nothing came for 1.0 days; it had 5000 of" in caplog.text
    assert [one.name for one in place.registry.pending_uploads.unfinished()] == ["young"]
    assert not place.stream("probe-1", old).exists()
    assert place.received("probe-1", old, stream) is not None  # it may come again


def test_one_that_was_left_for_a_day_gives_way_when_a_probe_has_too_many(bounded):
    place = bounded(unfinished_per_probe=1)
    left, stream = begun(place, CONTENT, "left")
    append(place, left, stream[:5000])
    with pytest.raises(TooManyUnfinished):
        place.desk.offer("probe-1", offered(b"new", "new")[0])
    a_day_passes(place, "left")
    assert place.received("probe-1", *offered(b"new", "new")).name == "new"
    assert not place.stream("probe-1", left).exists()


def test_files_of_no_offer_are_cleared_away(place):
    offer, stream = offered(CONTENT)
    place.send("probe-1", offer, stream)
    grown, _ = offered(CONTENT + b"more")
    place.desk.offer("probe-1", grown)  # of the same name: the file has changed
    assert place.stream("probe-1", offer).exists()
    place.desk.sweep()
    assert not place.stream("probe-1", offer).exists()
    assert place.registry.pending_uploads.unfinished()[0].sha256 == grown.sha256
