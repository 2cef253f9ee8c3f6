"""Traces in the registry: once under each name, one content a name, for ever; offers until they are finished or given up."""

import io

from tandem.schema.trace import offer_of


def offer(content=b"packets" * 5000, name="captures/run-1-a.pcap", run="run-1"):
    return offer_of(io.BytesIO(content), name, run, "identity", 4096)


def test_one_that_was_touched_since_it_was_looked_at_is_not_given_up(registry):
    told = offer()
    one = registry.trace_offers.offer("probe-1", told, 10)
    assert registry.trace_offers.checked("probe-1", told.sha256, 4096, 4796) == 4796
    assert registry.trace_offers.today_bytes("probe-1") == 4796
    assert not registry.trace_offers.expire(one, 4096)
    (touched,) = registry.trace_offers.unfinished()
    assert registry.trace_offers.expire(touched, 4096)
    assert registry.trace_offers.unfinished() == []
