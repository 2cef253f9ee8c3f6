"""Records and results of runs: what an experiment's process says itself, of which nothing is trusted; results too long for a manifest."""

import hashlib
import json
import sys
import threading
from dataclasses import replace
from typing import Any, cast

import pytest
from good_config import good
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import any_json
from tandem.app.runs.manifest import VALUE_BYTES, Manifests, begun_record, experiment_record, relieved
from tandem.app.runs.process import ExperimentProcess
from tandem.app.runs.request import configured_request, plan
from tandem.export import PendingManifests
from tandem.schema.manifest import FORMAT, Manifest
from tandem.schema.metrics import EXPERIMENT_MEASUREMENTS, MEASUREMENTS
from tandem.schema.record import Record, RecordError
from tandem_server.ingest.documents import read_manifest

CONFIG = good()
OF_A_CAMPAIGN = {
    "name": "commute", "step": "both", "number": 4, "repetition": 2, "arm": 1, "attempt": 1, "label": None, "roles": {}
}  # fmt: skip
PLAN = plan(CONFIG, replace(configured_request(CONFIG, "sequential", "campaign"), campaign=OF_A_CAMPAIGN), 0)
RUN = next(run for run in PLAN.runs if run.kind == "mptcp")
OPERATORS = {"a": "Alpha", "b": "Beta"}


def said(**changes: Any) -> dict[str, Any]:
    told = {
        "type": "record",
        "measurement": "verdict",
        "tags": {"path": RUN.path, "role": "join", "verdict": "native"},
        "fields": {"verdict_code": 0, "detail": "joined", "over": None},
        "monotonic_ns": 7,
    }
    return {**told, **changes}


def test_a_run_that_begins_says_what_it_will_be_and_of_which_campaign():
    record = begun_record(PLAN, RUN, 5)
    assert record.tags == {
        "run": RUN.id, "kind": "mptcp", "path": RUN.path, "pair": PLAN.pair, "pairing": "sequential", "experiment": "download",
        "campaign": "commute",
    }  # fmt: skip
    fields = dict(record.fields)
    assert fields["number"] == PLAN.runs.index(RUN) + 1
    assert (fields["of"], fields["trigger"], fields["paths"]) == (3, "campaign", ",".join(RUN.paths))
    assert (fields["step"], fields["step_number"], fields["repetition"]) == ("both", 4, 2)
    assert "label" not in fields
    assert record.monotonic_ns == 5


def test_an_experiments_record_says_whose_it_is_and_a_long_text_is_cut():
    record = experiment_record(PLAN, RUN, said(), OPERATORS)
    assert record.tags == {
        "run": RUN.id, "campaign": "commute", "operator": OPERATORS[RUN.path], "path": RUN.path, "role": "join", "verdict": "native",
    }  # fmt: skip
    assert record.fields == {"verdict_code": 0, "detail": "joined"}
    assert record.monotonic_ns == 7
    record = experiment_record(PLAN, RUN, said(fields={"detail": "x" * 5000}), OPERATORS)
    assert record.fields == {"detail": "x" * 500}


def test_what_an_experiment_may_not_say_is_refused():
    for changes, reason in (
        ({"measurement": "radio"}, "no measurement of an experiment's own"),
        ({"measurement": ["verdict"]}, "no measurement of an experiment's own"),
        ({"monotonic_ns": True}, "no time"),
        ({"tags": None}, "tags and fields are objects"),
        ({"tags": {"run": "run-of-another"}}, "'run' is not an experiment's"),
        ({"tags": {"path": "nowhere"}}, "is no path of"),
        ({"tags": {"role": "x" * 65}}, "no short text"),
        ({"tags": {"role": "two\nlines"}}, "no short text"),
        ({"fields": {}}, "no field"),
        ({"fields": {"verdict_code": 99}}, "above 6"),
        ({"fields": {"seq": 1}}, "a field that it has not"),
    ):
        with pytest.raises(RecordError, match=reason):
            experiment_record(PLAN, RUN, said(**changes), OPERATORS)


NAMES = sorted({f.name for m in EXPERIMENT_MEASUREMENTS for f in MEASUREMENTS[m].fields})
LINES = st.fixed_dictionaries(
    {},
    optional={
        "measurement": st.sampled_from(sorted(EXPERIMENT_MEASUREMENTS)) | any_json(),
        "tags": st.dictionaries(
            st.sampled_from(["path", "kind", "role", "verdict", "mode", "x"]) | st.text(), any_json(), max_size=4
        )
        | any_json(),
        "fields": st.dictionaries(st.sampled_from(NAMES) | st.text(), any_json(), max_size=4) | any_json(),
        "monotonic_ns": st.integers(0, 2**62) | any_json(),
    },
)


@given(LINES)
def test_any_line_is_a_record_that_keeps_the_schema_or_refused(line):
    try:
        record = experiment_record(PLAN, RUN, json.loads(json.dumps(line)), OPERATORS)
    except RecordError:
        return
    assert record.tags["run"] == RUN.id
    assert Record.make(record.measurement, record.tags, record.fields, record.monotonic_ns) == record


# --- results that are too long for a manifest: files beside it, nothing lost, and the gateway takes what is left


GATEWAY_BYTES = 1 << 20


def manifest(result: dict[str, Any] | None, further: dict[str, Any] | None = None) -> Manifest:
    content = {
        "format": FORMAT, "id": "run-1", "pair": "pair-1", "pairing": "single", "kind": "any", "paths": ["a"], "probe": "p", "boot": "b",
        "trigger": "request", "experiment": {"name": "dash", "version": 1}, "parameters": {}, "seed": None, "started_utc_ns": 1,
        "ended_utc_ns": 2, "started_monotonic_ns": 1, "ended_monotonic_ns": 2, "environment": {"experiment": {}, "further": further or {}},
        "modems": {}, "clock": {}, "records": {}, "result": result, "failure": None,
        "files": [{"name": "captures/run-1-a.pcap", "bytes": 1, "sha256": "0", "packets": None}],
    }  # fmt: skip
    return cast("Manifest", content)


def written(told: Manifest) -> str:
    return json.dumps(told, indent=1)


def restored(told: Any, files: dict[str, bytes]) -> Any:
    """The value with every file put back in its place."""
    if isinstance(told, dict) and isinstance(told.get("file"), str) and told["file"] in files:
        content = files[told["file"]]
        return (
            [json.loads(line) for line in content.splitlines()] if told["file"].endswith("l") else json.loads(content)
        )
    if isinstance(told, dict):
        return {key: restored(value, files) for key, value in told.items()}
    return told


def four_hours_of_dash() -> dict[str, Any]:
    """As ``dash`` tells it: 14,400 segments of a second over two paths."""
    shares = {"isp_a": 0.4567891234, "isp_b": 0.5432108766}
    row = {"representation": "v6", "height": 1080, "bytes": 623_456, "rule": "throughput", "shares": shares} | {
        name: 6139812.345678 + number
        for number, name in enumerate(("goodput_bit_per_s", "requested_s", "media_s", "first_byte_ms", "duration_ms"))
    }
    rows = [{"number": number, **row, "buffer_level_ms": 23456.789, "stall_ms": 0.0} for number in range(14_400)]
    p1203 = {"segments": [[1.0, 5_000_000, number] for number in range(14_400)]}
    counts = {"bytes": 1, "stalls": 0, "bytes_by_path": {"a": {"received": 1, "sent": 1}}}
    return {**counts, "segments": rows, "p1203": p1203}


def test_hours_of_segments_of_a_second_leave_a_manifest_that_the_gateway_takes(tmp_path):
    result = four_hours_of_dash()
    long = manifest(result)
    assert len(written(long)) > 4 * GATEWAY_BYTES
    pending = PendingManifests(tmp_path / "pending", tmp_path / "runs")
    manifests = Manifests(tmp_path / "runs", pending)
    manifests.save(long)
    content = (tmp_path / "runs" / "run-1.json").read_text()
    assert pending.waiting() == ["run-1"]
    assert len(content) < 8192
    told = read_manifest(content, "run-1", "p")
    assert told["result"]["stalls"] == 0
    assert told["result"]["segments"] == {"file": "results/run-1-segments.jsonl", "rows": 14_400}
    names = [f["name"] for f in told["files"]]
    assert names == ["captures/run-1-a.pcap", "results/run-1-segments.jsonl", "results/run-1-p1203.json"]
    for entry in told["files"][1:]:
        raw = (tmp_path / entry["name"]).read_bytes()
        assert len(raw) == entry["bytes"]
        assert hashlib.sha256(raw).hexdigest() == entry["sha256"]
    rows = [json.loads(line) for line in (tmp_path / "results/run-1-segments.jsonl").read_text().splitlines()]
    assert rows == result["segments"]
    assert json.loads((tmp_path / "results/run-1-p1203.json").read_text()) == result["p1203"]


def test_a_disk_that_takes_nothing_keeps_files_and_manifest_for_later(tmp_path):
    (tmp_path / "results").write_text("in the way")
    pending = PendingManifests(tmp_path / "pending", tmp_path / "runs")
    manifests = Manifests(tmp_path / "runs", pending)
    manifests.save(manifest({"rows": [[0] * 100] * 1000}))
    assert manifests.retry() == 1
    assert pending.waiting() == []  # no manifest that names files which are not there
    (tmp_path / "results").unlink()
    assert manifests.retry() == 0
    assert json.loads((tmp_path / "runs/run-1.json").read_text())["result"]["rows"]["rows"] == 1000
    assert len((tmp_path / "results/run-1-rows.jsonl").read_text().splitlines()) == 1000


def test_what_is_short_stays_as_it_is():
    for result in (None, {}, {"bytes": 1, "rows": [1, 2]}, {"text": "x" * (VALUE_BYTES - 100)}):
        assert relieved(manifest(result)) == (manifest(result), {})


def test_many_values_of_middling_length_and_what_was_told_beside_the_result_go_too():
    result = {f"k{n}": list(range(11_000)) for n in range(12)} | {"bytes": 5}
    further = {"public addresses": "y" * 700_000, "b/../../c": ["z" * 100] * 900}
    before = written(manifest(result, further))
    told, files = relieved(manifest(result, further))
    assert len(written(told)) < GATEWAY_BYTES
    assert told["result"] is not None
    assert told["result"]["bytes"] == 5
    assert all(name.startswith("results/run-1-") and ".." not in name and name.count("/") == 1 for name in files)
    assert restored(told["result"], files) == result
    assert restored(told["environment"]["further"], files) == further
    assert written(manifest(result, further)) == before  # what was given is not written to


JSON = any_json()


@given(st.dictionaries(st.text(max_size=12), st.tuples(JSON, st.sampled_from((1, 1, 8_000))), max_size=6))
def test_whatever_the_result_is_nothing_is_lost(given_values):
    result = {key: [value] * times if times > 1 else value for key, (value, times) in given_values.items()}
    told, files = relieved(manifest(result))
    assert len(written(told)) < GATEWAY_BYTES
    assert restored(told["result"], files) == result
    assert len(told["files"]) == 1 + len(files)


def test_a_line_without_end_is_a_failure_in_words():
    code = "import sys\nfor _ in range(66): sys.stdout.write('x' * (1 << 20))\nprint('\\n{\"type\": \"started\"}')"
    lines: list[dict[str, Any]] = []
    ending = ExperimentProcess([sys.executable, "-c", code], {}, lines.append, "x").wait(60, threading.Event())
    reason = "the experiment ended with status 0: a line of more than 64 MiB, which is not taken"
    assert (ending.result, ending.failure["reason"]) == (None, reason)
    assert lines == [{"type": "started"}]
