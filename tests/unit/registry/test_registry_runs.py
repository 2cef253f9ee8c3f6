"""The ledger and the account of sessions."""

import time

import pytest

from tandem_server.registry import LedgerConflict


def test_a_run_is_entered_once_and_its_last_manifest_holds(registry):
    registry.runs.put("run-1", "probe-1", {"result": None, "failure": {"reason": "no route", "retry": True}})
    first = registry.runs.get("run-1")
    assert first.status == "failed: no route"
    registry.runs.put("run-1", "probe-1", {"result": {"bytes": 5}, "failure": None})
    again = registry.runs.get("run-1")
    assert (again.status, again.manifest["result"]) == ("measured", {"bytes": 5})
    assert again.received_utc_ns == first.received_utc_ns
    assert [run.id for run in registry.runs.all()] == ["run-1"]


def test_a_run_belongs_to_its_probe(registry):
    registry.runs.put("run-1", "probe-1", {"result": {}, "failure": None})
    with pytest.raises(LedgerConflict):
        registry.runs.put("run-1", "probe-2", {"result": {}, "failure": None})
    assert [run.probe for run in registry.runs.all("probe-1")] == ["probe-1"]
    assert registry.runs.all("probe-2") == []
    assert registry.runs.get("run-2") is None


def test_sessions_are_accounted_per_probe_and_end_once(registry):
    before = time.time_ns()
    one = registry.sessions.open("probe-1", "run-1", "mptcp", 1000, 60.0)
    two = registry.sessions.open("probe-1", "run-2", "tcp", 1000, 60.0)
    registry.sessions.open("probe-2", "run-3", "tcp", 1000, 60.0)
    assert len(one) == 32
    assert one != two
    registry.sessions.end(one, 700, "closed")
    registry.sessions.end(one, 9999, "closed")
    registry.sessions.end(two, 30, "expired")
    assert registry.sessions.sent_since("probe-1", before) == 730
    assert registry.sessions.sent_since("probe-1", time.time_ns()) == 0
    assert registry.sessions.end_abandoned() == 1
    assert [row.ended_why for row in registry.sessions.all()] == ["closed", "expired", "endpoint died"]


def test_a_manifest_that_is_no_json_hides_no_other(registry):
    """As an older gateway kept it, and SQLite does not read it."""
    for run, manifest in (
        ("run-1", {"kind": "tcp", "level": float("inf")}),
        ("run-2", {"kind": "mptcp", "level": 5.0}),
    ):
        registry.runs.put(run, "probe-1", manifest)
        registry.counted.keep_runs([(run, {"run": 1}, {}, 4)])
    assert {(one.id, one.kind) for one in registry.counted.complete_runs()} == {("run-1", ""), ("run-2", "mptcp")}
