"""What the server says of a trace, whatever it says; and what a manifest promises, whatever lies there."""

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.export import Later, TraceQueue
from tandem.export.gateway import Answer
from tandem.export.receipts import Receipts
from tandem.export.tcp_counts import read_counts
from tandem.export.trace_answers import Receiving, RefusedError, UnknownError, read_state
from tandem.export.wanted import wanted_of
from tandem.schema.trace import Chunk, Offer, Receipt, is_name

SHA = "a" * 64
OFFER = Offer("captures/a.pcap", "run-1", 5000, SHA, "identity", 4096, (Chunk(4096, SHA), Chunk(904, SHA)))
RECEIPT = Receipt("probe-1", OFFER.name, "run-1", 5000, SHA, 7).as_json()

values = st.none() | st.booleans() | st.integers(-1, 6000) | st.text(max_size=5) | st.just(SHA)
receipts = st.fixed_dictionaries(
    {}, optional={key: st.just(value) | values for key, value in RECEIPT.items()} | {"more": values}
)
states = st.fixed_dictionaries(
    {},
    optional={
        "state": st.sampled_from(["receiving", "received"]) | values,
        "offset": values,
        "receipt": receipts | st.just(RECEIPT) | values,
        "error": values,
    },
)
contents = states | st.recursive(values, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner))


@given(st.sampled_from([200, 400, 401, 404, 408, 409, 413, 422, 429, 500, 503, 507, 302]), contents)
def test_only_an_offset_of_the_stream_or_the_receipt_of_this_file_settles_anything(status: int, content: Any) -> None:
    try:
        state = read_state(Answer(status, content, None), OFFER, "probe-1")
    except (Later, UnknownError, RefusedError):
        return
    if isinstance(state, Receiving):
        assert 0 <= state.offset <= OFFER.stream_bytes
        assert (state.fault is None) == (status == 200)
    else:
        assert status == 200
        assert state.as_json() == {**RECEIPT, "run": state.run, "received_utc_ns": state.received_utc_ns}


def test_what_each_status_means() -> None:
    assert read_state(Answer(200, {"state": "receiving", "offset": 17}, None), OFFER, "probe-1") == Receiving(17)
    fault = read_state(Answer(422, {"state": "receiving", "offset": 0, "error": "chunk 1"}, None), OFFER, "probe-1")
    assert fault == Receiving(0, "HTTP 422: chunk 1")
    received = read_state(Answer(200, {"state": "received", "receipt": RECEIPT}, None), OFFER, "probe-1")
    assert isinstance(received, Receipt)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from([SHA, "captures/a.pcap"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
)
rows = st.fixed_dictionaries(
    {"name": st.sampled_from(["captures/a.pcap", "../x", "/etc/passwd", "plain", "damaged/a"]) | json_values},
    optional={"bytes": st.integers() | json_values, "sha256": st.just(SHA) | json_values},
)
manifests = json_values | st.fixed_dictionaries(
    {"id": st.just("run-1") | json_values, "files": st.lists(rows | json_values) | json_values}
)


@given(manifests)
def test_a_manifest_of_any_form_promises_files_that_can_be_sent_or_none(manifest: Any) -> None:
    for wanted in wanted_of(manifest):
        assert is_name(wanted.name)
        assert "/" in wanted.name
        assert not wanted.name.startswith("damaged/")
        assert wanted.bytes >= 0


@given(st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()))
def test_a_receipt_that_is_none_deletes_nothing(tmp_path_factory: Any, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("probe")
    (folder / "receipts/captures").mkdir(parents=True)
    (folder / "captures").mkdir()
    (folder / "captures/a.pcap").write_bytes(b"x")
    (folder / "receipts/captures/a.pcap.json").write_bytes(content)
    queue = TraceQueue(folder)
    queue.scan()
    assert queue.kept() == []


def test_a_receipt_of_another_file_or_of_other_bytes_deletes_nothing(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures/a.pcap").write_bytes(b"xy")
    receipts = Receipts(tmp_path)
    receipts.keep(Receipt("probe-1", "captures/a.pcap", None, 1, SHA, 7))
    assert receipts.of("captures/a.pcap") is not None
    queue = TraceQueue(tmp_path)
    queue.scan()
    assert queue.kept() == []
    (tmp_path / "receipts/captures/b.pcap.json").write_bytes((tmp_path / "receipts/captures/a.pcap.json").read_bytes())
    assert receipts.of("captures/b.pcap") is None


@given(st.binary(min_size=144, max_size=300))
def test_what_networks_carried_is_never_less_than_the_payload_that_was_sent(told: bytes) -> None:
    counts = read_counts(told)
    assert counts.carried_bytes >= counts.sent_bytes
