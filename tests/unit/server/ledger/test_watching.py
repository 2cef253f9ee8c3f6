"""What a probe is at: each named state, each way into it, and what holds whatever is seen; the run that has begun and whose end nothing
tells, and the campaign."""

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.probe_runs import Probe
from tandem_server.derived.own_series import ExpectedSeries
from tandem_server.ledger.states import Observed, SpoolReport, State, Tolerances, state_of
from tandem_server.ledger.watching import AtWork, at_work
from tandem_server.schema.measurements import PROBE_STATES

S = 10**9
NOW = 1_800_000_000 * S
OK = Tolerances()


def ago(seconds: float) -> int:
    return NOW - int(seconds * S)


def report(told_s: float, waiting: int = 0, oldest_s: float | None = None) -> SpoolReport:
    return SpoolReport(
        "probe-1", "b", ago(told_s), "0123456789ab", 1, 1000, 1000 - waiting, 0, 0, 1000 - waiting, oldest_s, 0
    )


WELL = Observed(
    created_utc_ns=ago(1e6),
    first_seen_utc_ns=ago(9e5),
    last_seen_utc_ns=ago(1),
    last_radio_utc_ns=ago(2),
    report=report(5),
)
PLANNED = replace(WELL, planned_utc_ns=ago(9e5))
CASES: list[tuple[str, Observed, State, float]] = [
    ("parked", WELL, "idle", 9e5),
    ("parked after a run", replace(WELL, last_run_utc_ns=ago(5000)), "idle", 5000),
    ("a run ended", replace(WELL, last_run_utc_ns=ago(800)), "measuring", 800),
    ("a run is under way", replace(WELL, run_open_utc_ns=ago(30)), "measuring", 30),
    ("its first run in a long time", replace(WELL, run_open_utc_ns=ago(30), last_run_utc_ns=ago(90)), "measuring", 90),
    ("no polls", replace(WELL, last_radio_utc_ns=ago(121)), "online_not_measuring", 121),
    ("polls on the edge", replace(WELL, last_radio_utc_ns=ago(119)), "idle", 9e5),
    ("never a poll", replace(WELL, last_radio_utc_ns=None, first_seen_utc_ns=ago(200)), "online_not_measuring", 200),
    ("just registered, no poll yet", replace(WELL, last_radio_utc_ns=None, first_seen_utc_ns=ago(20)), "idle", 20),
    ("a campaign and no run", replace(WELL, planned_utc_ns=ago(260_000)), "online_not_measuring", 260_000),
    ("a campaign over the weekend", replace(WELL, planned_utc_ns=ago(200_000)), "idle", 9e5),
    ("a campaign whose runs ended", replace(PLANNED, last_run_utc_ns=ago(270_000)), "online_not_measuring", 270_000),
    ("a campaign at its run", replace(PLANNED, run_open_utc_ns=ago(9)), "measuring", 9),
    ("a backlog", replace(WELL, report=report(5, 900, 700)), "not_uploading", 705),
    ("a backlog that drains", replace(WELL, report=report(5, 900, 700), waiting_before=2000), "idle", 9e5),
    ("a backlog that grows", replace(WELL, report=report(5, 900, 700), waiting_before=800), "not_uploading", 705),
    ("a second's records", replace(WELL, report=report(5, 40, 2)), "idle", 9e5),
    ("requests without records", replace(WELL, last_radio_utc_ns=ago(900), report=report(700)), "not_uploading", 700),
    ("requests, never a record", replace(WELL, last_radio_utc_ns=None, report=None), "not_uploading", 9e5),
    ("a trace that does not come", replace(WELL, trace_offered_utc_ns=ago(130_000)), "not_uploading", 130_000),
    ("a trace for tonight", replace(WELL, trace_offered_utc_ns=ago(100_000)), "idle", 9e5),
    ("silent", replace(WELL, last_seen_utc_ns=ago(301), run_open_utc_ns=ago(400)), "silent", 301),
    ("silent on the edge", replace(WELL, last_seen_utc_ns=ago(299)), "idle", 9e5),
    ("never seen", Observed(created_utc_ns=ago(50)), "never_seen", 50),
    ("revoked", replace(WELL, revoked_utc_ns=ago(3)), "revoked", 3),
    ("revoked before it was seen", Observed(ago(50), revoked_utc_ns=ago(4)), "revoked", 4),
]


def test_each_state_and_each_transition() -> None:
    assert {case[2] for case in CASES} == set(PROBE_STATES)
    was, wrong = ago(60), []
    for case, seen, state, since_s in CASES:
        found = state_of(seen, NOW, OK)
        if (found.state, round((NOW - found.since_utc_ns) / S), "\n" in found.why) != (state, round(since_s), False):
            wrong.append((case, found))
        for before in PROBE_STATES:  # what it was decides nothing but since when
            after = state_of(seen, NOW, OK, (before, was))
            if (after.state, after.since_utc_ns) != (state, was if before == state else max(was, found.since_utc_ns)):
                wrong.append((case, before, after))
    assert wrong == []


TIMES = st.one_of(st.none(), st.integers(NOW - 10**16, NOW + 10**12))
SEEN = st.builds(
    Observed,
    st.integers(NOW - 10**17, NOW),
    *([TIMES] * 7),
    st.one_of(
        st.none(),
        st.builds(report, st.floats(-100, 1e6), st.integers(0, 1000), st.one_of(st.none(), st.floats(0, 1e9))),
    ),
    st.one_of(st.none(), st.integers(0, 10**6)),
    TIMES,
)


@given(SEEN, st.one_of(st.none(), st.tuples(st.sampled_from(PROBE_STATES), st.integers(NOW - 10**16, NOW + 10**10))))
def test_whatever_is_seen_there_is_one_state_since_some_time_past(seen, before) -> None:
    found = state_of(seen, NOW, OK, before)
    assert found.state in PROBE_STATES
    assert found.since_utc_ns <= NOW
    again = state_of(seen, NOW, OK, (found.state, found.since_utc_ns))
    assert (again.state, again.since_utc_ns) == (found.state, found.since_utc_ns)


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


@pytest.mark.parametrize("end", ["manifest", "collector begins anew", "machine boots anew", "a week"])
def test_without_its_record_something_else_ends_it(registry, store, probe, end):
    if end == "manifest":
        registry.runs.put("run-1", "probe-1", probe.run("run-1"))
        probe.lines = probe.lines[:2]
    elif end == "collector begins anew":
        probe.record("event", {"kind": "collector_start"}, {"detail": "0.1"})
    elif end == "a week":
        probe = Probe(now_ns=time.time_ns() - 7 * 86_400 * S)
        probe.record("run_begun", RUN, {"of": 1})
    else:
        probe.boot = "b2"
        probe.tell()
    assert now_at(registry, store, probe) is None


def test_of_a_silent_probe_nobody_knows(registry, store, probe):
    probe.send(store)
    ExpectedSeries(registry, store, Tolerances()).once(time.time_ns() + 3600 * S)
    (series,) = store.query(
        'SELECT last("state"), "run" FROM "probe_state" WHERE "probe" = \'probe-1\' GROUP BY "probe"'
    )
    assert series.rows[0][1:] == ["silent", None]
