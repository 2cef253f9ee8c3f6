"""Each named state, each way into it, and what holds whatever is seen."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tandem_server.ledger.states import Observed, SpoolReport, State, Tolerances, state_of
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


@given(SEEN, st.integers(1, 10**6))
def test_silence_lasts_until_a_request(seen, seconds) -> None:
    found = state_of(seen, NOW, OK)
    later = state_of(seen, NOW + seconds * S, OK, (found.state, found.since_utc_ns))
    if found.state in ("silent", "never_seen", "revoked"):
        assert (later.state, later.since_utc_ns) == (found.state, found.since_utc_ns)
