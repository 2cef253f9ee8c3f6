"""Traces in the registry: once under each name, one content a name, for ever; offers until they are finished or given up."""

import io
from dataclasses import replace

from tandem.schema.trace import offer_of
from tandem_server.registry import TraceRow, Unfinished


def offer(content=b"packets" * 5000, name="captures/run-1-a.pcap", run="run-1"):
    return offer_of(io.BytesIO(content), name, run, "identity", 4096)


def finished(registry, probe, told):
    registry.trace_offers.offer(probe, told, 10)
    return registry.trace_offers.finish(probe, told, f"{probe}/{told.name}", "identity", told.bytes)


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


def test_one_that_was_touched_since_it_was_looked_at_is_not_given_up(registry):
    told = offer()
    one = registry.trace_offers.offer("probe-1", told, 10)
    assert registry.trace_offers.checked("probe-1", told.sha256, 4096, 4796) == 4796
    assert registry.trace_offers.today_bytes("probe-1") == 4796
    assert not registry.trace_offers.expire(one, 4096)
    (touched,) = registry.trace_offers.unfinished()
    assert registry.trace_offers.expire(touched, 4096)
    assert registry.trace_offers.unfinished() == []
