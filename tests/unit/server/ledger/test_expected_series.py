"""The series that a silent probe is missed by: one point a minute for each, for ever."""

import time

import pytest

from support.probe_runs import Probe, S
from tandem_server.derived.own_series import ExpectedSeries
from tandem_server.ingest.meter import LastSeen
from tandem_server.ledger.records import RecordCounts
from tandem_server.ledger.states import Tolerances
from tandem_server.ledger.watching import probes_now
from tandem_server.periodic import OwnSeries
from tandem_server.registry import Registry
from tandem_server.store import QueryError


@pytest.fixture
def registry(tmp_path):
    with Registry(tmp_path / "registry.sqlite") as opened:
        for name in ("probe-1", "probe-2", "probe-3", "probe-4"):
            opened.probes.add(name)
        opened.probes.revoke("probe-4")
        yield opened


def test_a_query_by_probe_finds_the_silent_one(registry, store):
    now = time.time_ns() // (60 * S) * 60 * S
    registry.seen.note({"probe-1": now - 9 * S, "probe-2": now - 86_400 * S, "probe-4": now})
    series = ExpectedSeries(registry, store, Tolerances())
    probe = Probe(now_ns=now - 10 * S)
    probe.polls(1)
    probe.tell(waiting=1)
    probe.send(store)
    for minute in range(3):
        at = now - (2 - minute) * 60 * S
        series.once(at)
        series.once(at + 30 * S)  # the same minute again is the same point
    found = store.query(
        f'SELECT count("seen") AS points, max("seen") AS seen FROM "expected" WHERE time > {now - 150 * S} GROUP BY "probe"'  # noqa: S608
    )
    assert {s.tags["probe"]: s.rows[0][1:] for s in found} == {"probe-1": [3, 1], "probe-2": [3, 0], "probe-3": [3, 0]}
    states = store.query('SELECT last("state"), "since_s", "last_seen_s" FROM "probe_state" GROUP BY "probe"')
    told = {s.tags["probe"]: s.rows[0][1:] for s in states}
    assert (told["probe-1"][0], told["probe-2"][0], told["probe-3"][0]) == ("idle", "silent", "never_seen")
    assert told["probe-2"][1] == pytest.approx(86_400 + 30)
    assert told["probe-2"][2] == pytest.approx(86_400 + 30)
    assert told["probe-3"][2] is None
    waiting = store.query('SELECT last("unsent_records") FROM "probe_state" GROUP BY "probe"')
    assert [(s.tags["probe"], s.rows[0][1]) for s in waiting] == [("probe-1", 1)]


def test_requests_are_noted_together_and_never_go_back(registry):
    with LastSeen(registry, period_s=0.01) as last_seen:
        last_seen.note("probe-1")
        last_seen.note("no-such-probe")
        while "probe-1" not in registry.seen.all():
            time.sleep(0.001)
        first = registry.seen.all()["probe-1"]
        last_seen.note("probe-1")
    last = registry.seen.all()["probe-1"]
    assert (last.first_utc_ns, last.last_utc_ns > first.last_utc_ns) == (first.first_utc_ns, True)
    assert set(registry.seen.all()) == {"probe-1"}
    registry.seen.note({"probe-1": 5})
    assert registry.seen.all()["probe-1"] == last


def test_a_store_without_queries_still_has_who_was_seen(registry, store, monkeypatch):
    now = time.time_ns()
    registry.seen.note({"probe-1": now - S})

    def refuse(*_):
        raise QueryError("it has no such queries")

    asked = store.query
    monkeypatch.setattr(store, "query", refuse)
    ExpectedSeries(registry, store, Tolerances()).once(now)
    found = asked('SELECT last("seen") FROM "expected" GROUP BY "probe"')
    assert {s.tags["probe"]: s.rows[0][1] for s in found} == {"probe-1": 1, "probe-2": 0, "probe-3": 0}
    assert asked('SELECT * FROM "probe_state"') == []


def test_a_manifest_that_comes_late_makes_no_run_of_now(registry, store):
    now = time.time_ns()
    registry.seen.note({"probe-1": now - S, "probe-2": now - S})
    late = Probe(now_ns=now - 7200 * S)
    registry.runs.put("run-1", "probe-1", late.run("run-1"))
    late.now_ns = now - 20 * S
    late.polls(1)
    fresh = Probe("probe-2", now_ns=now - 20 * S)
    registry.runs.put("run-2", "probe-2", fresh.run("run-2"))
    fresh.polls(1)
    for probe in (late, fresh):
        probe.tell()
        probe.send(store)
    found = {one.probe.name: one.state.state for one in probes_now(registry, RecordCounts(store), Tolerances(), now)}
    assert (found["probe-1"], found["probe-2"]) == ("idle", "measuring")


def test_an_age_that_no_record_can_have_costs_nobody_the_series(registry, store):
    now = time.time_ns()
    registry.seen.note({"probe-1": now - 900 * S})
    registry.seen.note({"probe-1": now - S})
    probe = Probe(now_ns=now - 20 * S)
    probe.polls(1)
    probe.tell(waiting=1, oldest_s=1e15)
    probe.send(store)
    ExpectedSeries(registry, store, Tolerances()).once(now)
    assert registry.seen.states()["probe-1"].state == "not_uploading"
    found = store.query('SELECT last("seen") FROM "expected" GROUP BY "probe"')
    assert {s.tags["probe"]: s.rows[0][1] for s in found} == {"probe-1": 1, "probe-2": 0, "probe-3": 0}


def test_a_fault_costs_a_series_its_minute_and_not_its_thread(caplog):
    times = []

    class Faulty(OwnSeries):
        def once(self, now_utc_ns):
            times.append(now_utc_ns)
            if len(times) == 1:
                raise OverflowError("a fault")

    with Faulty("faulty", 1):
        deadline = time.monotonic() + 60
        while len(times) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
    assert "a fault" in caplog.text
