"""What is to go up, made anew from the disk at every start."""

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from support.recorded_files import record
from tandem.export import TraceQueue
from tandem.export.gateway import Answer, Later, read_counts
from tandem.export.trace_queue import wanted_of
from tandem.export.traces import Receiving, RefusedError, UnknownError, read_state
from tandem.schema.trace import Chunk, Offer, Receipt, is_name


def manifest(folder: Path, run: str, ended_utc_ns: int, *names: str) -> None:
    record(folder, {name: name.encode() for name in names}, run, ended_utc_ns)


def receive(queue: TraceQueue, at_ns: int = 1) -> str:
    wanted = queue.next()
    queue.received(wanted, Receipt("probe-1", wanted.name, wanted.run, wanted.bytes, wanted.sha256, at_ns))
    return wanted.name


def test_results_go_before_captures_and_what_is_oldest_first(tmp_path):
    manifest(tmp_path, "run-new", 20, "captures/new.pcap", "results/new.jsonl")
    manifest(tmp_path, "run-old", 10, "captures/old.pcap")
    manifest(tmp_path, "run-beside", 30, "captures/new.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    queue.ask_for(["captures/new.pcap"])
    assert queue.next().run is None, "a capture of two runs is of none"
    assert queue.counts()["waiting"] == 3
    assert [receive(queue) for _ in range(3)] == ["captures/new.pcap", "results/new.jsonl", "captures/old.pcap"]
    assert queue.next() is None


def test_after_a_power_cut_it_is_as_it_was(tmp_path):
    manifest(tmp_path, "run-1", 1, "captures/a.pcap", "captures/b.pcap")
    manifest(tmp_path, "run-2", 2, "captures/c.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    assert receive(queue) == "captures/a.pcap"
    again = TraceQueue(tmp_path)
    again.scan()
    assert [receive(again), receive(again)] == ["captures/b.pcap", "captures/c.pcap"]
    third = TraceQueue(tmp_path)
    third.scan()
    assert third.next() is None
    assert [kept.name for kept in third.kept()] == ["captures/a.pcap", "captures/b.pcap", "captures/c.pcap"]


def test_another_content_under_a_received_name_waits(tmp_path):
    manifest(tmp_path, "run-1", 1, "captures/a.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    wanted = queue.next()
    queue.receipts.keep(Receipt("probe-1", wanted.name, "run-1", wanted.bytes, "b" * 64, 1))
    again = TraceQueue(tmp_path)
    again.scan()
    assert again.next() == wanted


def test_only_what_has_a_receipt_of_its_name_and_bytes_is_deleted(tmp_path):
    manifest(tmp_path, "run-1", 1, "captures/a.pcap", "captures/b.pcap")
    queue = TraceQueue(tmp_path)
    queue.scan()
    receive(queue)
    copied = (tmp_path / "receipts/captures/a.pcap.json").read_bytes()
    (tmp_path / "receipts/captures/b.pcap.json").write_bytes(copied)
    assert queue.receipts.of("captures/b.pcap") is None, "of another file"
    (kept,) = queue.kept()
    assert queue.delete(kept)
    assert not (tmp_path / "captures/a.pcap").exists()
    assert (tmp_path / "captures/b.pcap").exists()
    assert queue.receipts.of("captures/a.pcap") is not None
    assert queue.kept() == []
    rows = {row["name"]: (row["state"], row["kept"]) for row in queue.rows()}
    assert rows == {"captures/a.pcap": ("received", False), "captures/b.pcap": ("waiting", True)}
    (tmp_path / "captures/c.pcap").write_bytes(b"xy")
    queue.receipts.keep(Receipt("probe-1", "captures/c.pcap", None, 1, SHA, 7))  # of other bytes
    again = TraceQueue(tmp_path)
    again.scan()
    assert again.kept() == []


def test_looking_writes_nothing(tmp_path):
    for names in ((), ("captures/a.pcap", "results/a.jsonl")):
        manifest(tmp_path, "run-1", 1, *names)
        before = sorted(tmp_path.rglob("*"))
        TraceQueue(tmp_path).scan()
        assert sorted(tmp_path.rglob("*")) == before


def test_a_capture_whose_run_was_killed_goes_up_as_it_is(tmp_path):
    manifest(tmp_path, "run-1", 1, "captures/run-1-a.pcap")
    for name in ("run-0123456789ab-a.pcap", "pair-0123456789ab-b.pcap", "run-0123456789ab-b.pcap.tmp"):
        (tmp_path / "captures" / name).write_bytes(b"left behind")
    queue = TraceQueue(tmp_path)
    queue.scan()
    rows = {row["name"]: (row["run"], row["sha256"]) for row in queue.rows() if row["name"] != "captures/run-1-a.pcap"}
    assert rows == {
        "captures/run-0123456789ab-a.pcap": ("run-0123456789ab", None),
        "captures/pair-0123456789ab-b.pcap": (None, None),
    }
    wanted = next(one for one in [queue.next()] if one is not None)
    assert wanted.name == "captures/run-1-a.pcap", "what is oldest goes first"


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
def test_only_an_offset_of_the_stream_or_the_receipt_of_this_file_settles_anything(status, content):
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


json_values = any_json() | st.sampled_from([SHA, "captures/a.pcap"])
rows = st.fixed_dictionaries(
    {"name": st.sampled_from(["captures/a.pcap", "../x", "/etc/passwd", "plain", "damaged/a"]) | json_values},
    optional={"bytes": st.integers() | json_values, "sha256": st.just(SHA) | json_values},
)
manifests = json_values | st.fixed_dictionaries(
    {"id": st.just("run-1") | json_values, "files": st.lists(rows | json_values) | json_values}
)


@given(manifests)
def test_a_manifest_of_any_form_promises_files_that_can_be_sent_or_none(manifest):
    for wanted in wanted_of(manifest):
        assert is_name(wanted.name)
        assert "/" in wanted.name
        assert not wanted.name.startswith("damaged/")
        assert wanted.bytes >= 0


@given(st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()))
def test_a_receipt_that_is_none_deletes_nothing(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("probe")
    (folder / "receipts/captures").mkdir(parents=True)
    (folder / "captures").mkdir()
    (folder / "captures/a.pcap").write_bytes(b"x")
    (folder / "receipts/captures/a.pcap.json").write_bytes(content)
    queue = TraceQueue(folder)
    queue.scan()
    assert queue.kept() == []


@given(st.binary(min_size=144, max_size=300))
def test_what_networks_carried_is_never_less_than_the_payload_that_was_sent(told):
    counts = read_counts(told)
    assert counts.carried_bytes >= counts.sent_bytes
