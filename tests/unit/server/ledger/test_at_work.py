"""What a probe is at: the run that has begun and whose end nothing tells, and the campaign."""

import time

import pytest

from support.probe_runs import Probe, S
from tandem_server.derived.own_series import ExpectedSeries
from tandem_server.ledger.states import Tolerances
from tandem_server.ledger.watching import AtWork, at_work

RUN = {"run": "run-1", "kind": "mptcp", "path": "a", "pair": "pair-1", "pairing": "single", "experiment": "download"}


@pytest.fixture
def probe():
    """It has told of itself and begun a run of a campaign, two minutes ago."""
    probe = Probe(now_ns=time.time_ns() - 120 * S)
    probe.tell()
    probe.record("run_begun", {**RUN, "campaign": "chen"}, {"of": 1})
    return probe


def now_at(registry, store, probe):
    probe.send(store)
    return at_work(registry, store, {"probe-1"}, time.time_ns()).get("probe-1")


def test_a_run_that_has_begun_is_what_it_is_at(registry, store, probe):
    probe.record("campaign", {"campaign": "other"}, {"state": "waiting"})
    assert now_at(registry, store, probe) == AtWork("run-1", "download", "chen")
    probe.polls(1)
    probe.tell_all(store)
    ExpectedSeries(registry, store, Tolerances()).once(time.time_ns())
    (series,) = store.query('SELECT last("run"), "experiment", "campaign", "state" FROM "probe_state" GROUP BY "probe"')
    assert series.rows[0][1:4] == ["run-1", "download", "chen"]


def test_its_record_ends_it_and_of_two_runs_it_is_at_the_one_begun_last(registry, store, probe):
    probe.record("run", RUN, {"ok": True})
    probe.record("run_begun", {**RUN, "run": "run-2"}, {"of": 2})
    assert now_at(registry, store, probe) == AtWork("run-2", "download", None)
    probe.record("run", {**RUN, "run": "run-2"}, {"ok": False, "failure": "no network"})
    probe.record("campaign", {"campaign": "chen"}, {"state": "waiting"})
    assert now_at(registry, store, probe) == AtWork(campaign="chen")
    probe.record("campaign", {"campaign": "chen"}, {"state": "done"})
    assert now_at(registry, store, probe) is None


@pytest.mark.parametrize("end", ["manifest", "collector begins anew", "machine boots anew"])
def test_without_its_record_something_else_ends_it(registry, store, probe, end):
    if end == "manifest":
        registry.runs.put("run-1", "probe-1", probe.run("run-1"))
        probe.lines = probe.lines[:2]
    elif end == "collector begins anew":
        probe.record("event", {"kind": "collector_start"}, {"detail": "0.1"})
    else:
        probe.boot = "b2"
        probe.tell()
    assert now_at(registry, store, probe) is None


def test_a_run_of_last_week_is_none(registry, store):
    probe = Probe(now_ns=time.time_ns() - 7 * 86_400 * S)
    probe.record("run_begun", RUN, {"of": 1})
    assert now_at(registry, store, probe) is None


def test_of_a_silent_probe_nobody_knows(registry, store, probe):
    probe.send(store)
    ExpectedSeries(registry, store, Tolerances()).once(time.time_ns() + 3600 * S)
    (series,) = store.query(
        'SELECT last("state"), "run" FROM "probe_state" WHERE "probe" = \'probe-1\' GROUP BY "probe"'
    )
    assert series.rows[0][1:] == ["silent", None]
