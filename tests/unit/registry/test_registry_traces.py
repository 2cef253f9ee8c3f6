"""Traces in the registry: once under each name, one content a name, for ever; offers until they are finished or given up."""

import hashlib
import io
import sqlite3
from dataclasses import replace

import pytest
from old_registry import to_version

from tandem.schema.trace import Receipt, offer_of
from tandem_server.registry import NameTaken, Registry, TooManyUnfinished, TraceRow, Unfinished


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        opened.probes.add("probe-1")
        opened.probes.add("probe-2")
        yield opened


def offer(content=b"packets" * 5000, name="captures/run-1-a.pcap", run="run-1"):
    return offer_of(io.BytesIO(content), name, run, "identity", 4096)


def finished(registry, probe, told):
    registry.trace_offers.offer(probe, told, 10)
    return registry.trace_offers.finish(probe, told, f"{probe}/{told.name}", "identity", told.bytes)


def test_what_was_received_is_listed_by_probe_and_run(registry):
    first = finished(registry, "probe-1", offer())
    other = finished(registry, "probe-2", offer(b"other", "x.log", None))
    second = finished(registry, "probe-1", offer(b"b", "captures/run-2-a.pcap", "run-2"))
    assert registry.traces.received() == [first, other, second]
    assert registry.traces.received("probe-1") == [first, second]
    assert registry.traces.received(run="run-2") == [second]
    assert registry.traces.received("probe-2", "run-2") == []
    digest = hashlib.sha256(b"packets" * 5000).hexdigest()
    assert first.receipt == Receipt("probe-1", first.name, "run-1", 35000, digest, first.received_utc_ns)
    assert registry.trace_offers.unfinished() == []


def test_another_content_under_a_received_name_is_refused_before_and_at_the_end(registry):
    one, other = offer(), offer(b"changed")
    finished(registry, "probe-1", one)
    with pytest.raises(NameTaken):
        registry.trace_offers.offer("probe-1", other, 10)
    registry.trace_offers.offer("probe-2", other, 10)
    finished(registry, "probe-2", replace(one, name="else"))
    with pytest.raises(NameTaken):
        registry.trace_offers.finish("probe-2", replace(other, name="else"), "p", "identity", 7)
    assert [row.name for row in registry.traces.received("probe-2")] == ["else"]


def test_the_same_content_under_another_name_is_received_at_once_but_not_for_another_probe(registry):
    first = finished(registry, "probe-1", offer())
    again = registry.trace_offers.offer("probe-1", offer(name="copy.pcap", run=None), 10)
    assert isinstance(again, TraceRow)
    assert (again.name, again.place, again.run) == ("copy.pcap", first.place, None)
    assert registry.trace_offers.offer("probe-1", offer(), 10) == first
    assert isinstance(registry.trace_offers.offer("probe-2", offer(), 10), Unfinished)


def test_an_offer_goes_on_with_the_same_chunks_and_begins_anew_with_others(registry):
    told = offer()
    registry.trace_offers.offer("probe-1", told, 10)
    registry.trace_offers.checked("probe-1", told.sha256, 8192, 9000)
    registry.trace_offers.failed("probe-1", told.sha256)
    registry.trace_offers.checked("probe-1", told.sha256, 4096, 1)
    kept = registry.trace_offers.offer("probe-1", replace(told, name="renamed"), 10)
    assert (kept.checked_bytes, kept.failed, kept.name) == (4096, 1, "renamed")
    found = registry.trace_offers.offered("probe-1", told.sha256)
    assert found is not None
    assert found[1] == replace(told, name="renamed")
    assert registry.trace_offers.offered("probe-2", told.sha256) is None
    packed = offer_of(io.BytesIO(b"packets" * 5000), told.name, told.run, "gzip", 4096)
    anew = registry.trace_offers.offer("probe-1", packed, 10)
    assert (anew.checked_bytes, anew.failed) == (0, 0)


def test_bounds_on_unfinished_ones_and_a_changed_file_of_the_same_name(registry):
    first = registry.trace_offers.offer("probe-1", offer(b"1", "a"), 2)
    registry.trace_offers.offer("probe-1", offer(b"2", "b"), 2)
    with pytest.raises(TooManyUnfinished):
        registry.trace_offers.offer("probe-1", offer(b"3", "c"), 2)
    registry.trace_offers.offer("probe-2", offer(b"3", "c"), 2)
    grown = registry.trace_offers.offer("probe-1", offer(b"1 and more", "a"), 2)
    assert registry.trace_offers.offered("probe-1", first.sha256) is None
    assert grown in registry.trace_offers.unfinished("probe-1")


def test_days_are_counted_and_what_is_given_up_too(registry):
    told = offer()
    one = registry.trace_offers.offer("probe-1", told, 10)
    assert registry.trace_offers.checked("probe-1", told.sha256, 0, 700) == 700
    assert registry.trace_offers.checked("probe-1", told.sha256, 4096, 4096) == 4796
    assert registry.trace_offers.today_bytes("probe-1") == 4796
    assert registry.trace_offers.today_bytes("probe-2") == 0
    assert not registry.trace_offers.expire(one, 4096)  # it was touched since
    (touched,) = registry.trace_offers.unfinished()
    assert registry.trace_offers.expire(touched, 4096)
    assert registry.trace_offers.unfinished() == []
    (day,) = registry.trace_offers.days("probe-1")
    assert (day.bytes, day.expired, day.expired_bytes) == (4796, 1, 4096)


def test_a_registry_of_the_second_version_gets_the_tables(tmp_path):
    file = tmp_path / "old.sqlite"
    with Registry(file) as made:
        token = made.probes.add("probe-1")
    with sqlite3.connect(file) as old:
        to_version(old, 2)
    with Registry(file) as opened:
        assert opened.probes.of_token(token) == "probe-1"
        assert finished(opened, "probe-1", offer()) in opened.traces.received()
