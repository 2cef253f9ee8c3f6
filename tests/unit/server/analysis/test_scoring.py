import itertools
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.analysis.scores import (
    CellPoll,
    FoundEvent,
    at_polls,
    by_size,
    lives,
    merge,
    score_drops,
    score_handovers,
    score_mobility,
    spans,
    state_at,
)
from tandem_server.analysis.truth import Level, TrueDrop, TrueHandover, read


def test_events_find_drops_and_edges_of_sizes():
    for case, drops, events, seen in (
        ("on either side of the moment", [(10.0, -7.0), (30.0, -9.0)], [(8.5, "A"), (31.5, "A")], (2, 0, 0)),
        ("further away it misses it and is false", [(10.0, -7.0)], [(12.5, "A")], (0, 1, 1)),
        ("two of one long fall are not false", [(10.0, -14.0)], [(9.6, "A"), (10.6, "A")], (1, 0, 0)),
        ("operators are told apart", [(10.0, -7.0)], [(10.0, "B")], (0, 1, 1)),
    ):
        found = score_drops([TrueDrop(t, "A", db) for t, db in drops], [FoundEvent(*event) for event in events])
        assert (len(found.found), len(found.missed), len(found.false_events)) == seen, case
    edges = {-5.9: [], -6.0: ["6-8"], -7.99: ["6-8"], -8.0: ["8-12"], -11.9: ["8-12"], -12.0: ["12+"], -60.0: ["12+"]}
    assert {change: [name for name, n in by_size([change]).items() if n] for change in edges} == edges


def level(*steps: tuple[float, float]) -> Level:
    """RSRP ten times a second for 20 s: ``steps`` are (from second, dBm)."""
    t = np.arange(0, 20, 0.1)
    values = np.full(len(t), steps[0][1])
    for start, value in steps[1:]:
        values[t >= start - 1e-9] = value
    return Level(t, values)


POLLS = np.arange(0.2, 19, 1.0)


def test_falls_between_during_and_beside_polls():
    assert at_polls("A", level((0, -80.0), (5.5, -90.0)), POLLS, POLLS) == [TrueDrop(6.2, "A", -10.0)]
    gap = np.array([0.2, 1.2, 2.2, 6.2, 7.2])
    for seen, polls in (
        (level((0, -80.0), (5.3, -95.0), (5.9, -80.0)), POLLS),  # a dip between two polls
        (level((0, -80.0), (4.0, -95.0)), gap),  # polls with a gap between them are not successive
        (level((0, -80.0), (4.0, float("nan")), (8.0, -95.0)), POLLS),  # the radio was absent
    ):
        assert at_polls("A", seen, polls, polls) == []
    event = FoundEvent(6.2, "A")
    nearly = at_polls("A", level((0, -80.1), (5.5, -85.9)), POLLS, POLLS, least_db=5.0)
    assert score_drops([], [event], nearly).false_events == []
    assert score_drops([], [event]).false_events == [event]
    steep = level((0, -80.0), (6.2, -90.0))
    begun, ended = POLLS - 0.05, POLLS + 0.05
    assert at_polls("A", steep, begun, ended) == []
    assert [d.change_db for d in at_polls("A", steep, begun, ended, surely=False)] == [-10.0, -10.0]


def polls(*cells: tuple[float, int]) -> dict[str, list[CellPoll]]:
    return {"A": list(cells)}


def every_second(eci_at: dict[float, int], until: int = 10) -> dict[str, list[CellPoll]]:
    """A poll each second; ``eci_at`` names from when a cell is recorded."""
    return polls(*((float(t), [e for at, e in sorted(eci_at.items()) if at <= t][-1]) for t in range(until)))


def true(*changes: tuple[float, int, int]) -> list[TrueHandover]:
    return [TrueHandover(t, "A", before, after) for t, before, after in changes]


STAYS, LATE = every_second({0: 1}), polls((3.0, 1), (4.0, 1), (7.5, 2), (8.5, 2))
ONE = true((4.2, 1, 2))


def test_what_is_detected_missed_false_and_hidden():
    soon, several, back = every_second({0: 1, 5: 2}), true((4.2, 1, 2), (4.6, 2, 3)), true((4.2, 1, 2), (4.6, 2, 1))
    last = true((9.4, 1, 2))  # the modem says a new cell unasked; the collector ends before it polls again
    for case, handovers, cells, events, seen in (
        ("recorded within two seconds", ONE, soon, [5.0], (1, 1, 0, 0)),
        ("recorded later: its event is false", ONE, every_second({0: 1, 7: 2}), [7.0], (1, 0, 1, 0)),
        ("what was not polled cannot be seen sooner", ONE, LATE, [7.5], (1, 1, 0, 0)),
        ("an event a poll later tells of nothing", ONE, LATE, [8.5], (1, 1, 1, 0)),
        ("another operator's poll", ONE, STAYS | {"B": soon["A"]}, [], (1, 0, 0, 0)),
        ("several are one to the last cell", several, every_second({0: 1, 5: 3}), [5.0], (1, 1, 0, 0)),
        ("there and back is hidden", back, STAYS, [], (0, 0, 0, 1)),
        ("an event without a handover", [], soon, [5.0], (0, 0, 1, 0)),
        ("an operator that was never polled", ONE, {}, [], (1, 0, 0, 0)),
        ("an event after the last poll and the handover", last, STAYS, [9.6], (0, 0, 0, 0)),
        ("an event after the last poll, before the handover", last, STAYS, [9.2], (0, 0, 1, 0)),
        ("after the last poll it is nobody's to find", true((50.0, 1, 2)), STAYS, [], (0, 0, 0, 0)),
    ):
        found = score_handovers(handovers, cells, [FoundEvent(t, "A") for t in events])
        assert (found.true, found.detected, found.false, found.hidden) == seen, case
        assert len(found.missed) == found.true - found.detected, case


def test_the_delay_is_that_of_the_poll_and_a_handover_while_the_collector_was_off_is_left_out():
    assert score_handovers(ONE, every_second({0: 1, 5: 2}), []).delay_s == [5.0 - 4.2]
    assert score_handovers(ONE, LATE, []).delay_s == [7.5 - 4.2]
    assert score_handovers(ONE, every_second({0: 1, 7: 2}), []).missed[0].to_eci == 2
    cells = {"A": [(float(t), 1 if t < 12 else 2) for t in (*range(10), *range(20, 30))]}
    off = true((12.0, 1, 2))
    assert (score_handovers(off, cells, []).true, score_handovers(off, cells, [], starts=[19.5]).true) == (1, 0)
    assert lives([1.0, 2.0, 5.0], [4.0, 9.0]) == [(1.0, 2.0), (5.0, 5.0)]


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(1, 5)), max_size=30))
def test_merging_never_makes_more_and_ends_in_the_last_cell(changes):
    at, handovers = 1, []
    for t, to in sorted(changes):
        handovers.append(TrueHandover(t, "A", at, to))
        at = to
    merged, hidden = merge(handovers, [float(t) for t in range(101)])
    assert len(merged) + hidden <= len(handovers)
    assert all(m.to_eci in {h.to_eci for h in handovers if h.t_s == m.t_s} for m in merged)


TRUE = [(0.0, False), (40.0, True), (80.0, False)]


def test_accuracy_is_the_share_of_the_time_and_starts_are_false_or_missed():
    for told, span, expected in (
        ([(50.0, True), (90.0, False)], (0.0, 100.0), (0.8, 0, 0, [10.0])),  # late start and late stop cost their time
        ([(10.0, True), (20.0, False), (40.0, True), (80.0, False)], (0.0, 100.0), (0.9, 1, 0, [0.0])),
        ([], (0.0, 100.0), (0.6, 0, 1, [])),
        # Only the time between first and last poll counts.
        ([], (0.0, 40.0), (1.0, 0, 0, [])),
        ([], (40.0, 80.0), (0.0, 0, 1, [])),
    ):
        found = score_mobility(TRUE, told, [span])
        assert (found.false_starts, found.missed_starts, found.lag_s) == expected[1:], (told, span)
        assert found.accuracy == pytest.approx(expected[0])
    assert score_mobility(TRUE, [], [(5.0, 5.0)]).accuracy is None


changes = st.lists(st.tuples(st.floats(-10, 110), st.booleans()), max_size=20).map(
    lambda c: sorted(c, key=lambda x: x[0])
)


@given(changes)
def test_spans_cover_the_time_once_and_say_the_state_and_a_perfect_detector_scores_one(told):
    parts = spans(told, 0.0, 100.0)
    assert (parts[0][0], parts[-1][1]) == (0.0, 100.0)
    for (_, end, state), (start, _, following) in itertools.pairwise(parts):
        assert (end, not state) == (start, following)
    if len({t for t, _ in told}) == len(told):
        assert all(state_at(told, (start + end) / 2) == state for start, end, state in parts)
    told = [change for change in told if change[0] >= 0]  # what was before nobody knows
    found = score_mobility(told, told, [(0.0, 100.0)])
    assert found.accuracy == pytest.approx(1.0)
    assert (found.false_starts, found.missed_starts) == (0, 0)


def test_a_restart_forgets_and_its_gap_is_nobodys():
    """Moving from 40 to 80; off from 50 to 60, found again at 65."""
    told = [(42.0, True), (60.0, False), (65.0, True), (81.0, False)]
    found = score_mobility(TRUE, told, [(0.0, 50.0), (60.0, 100.0)])
    assert found.accuracy == pytest.approx(1 - (2 + 5 + 1) / 90)
    assert (found.false_starts, found.missed_starts, found.lag_s) == (0, 0, [2.0])
    # What was said before the restart does not hold after it.
    late = score_mobility(TRUE, [(42.0, True)], [(0.0, 50.0), (60.0, 100.0)])
    assert late.accuracy == pytest.approx(1 - (2 + 20) / 90)
    # Off while all of the movement went on: nobody missed it.
    off = score_mobility(TRUE, [], [(0.0, 39.0), (81.0, 100.0)])
    assert (off.accuracy, off.missed_starts, off.lag_s) == (1.0, 0, [])
    assert score_mobility(TRUE, [], [(0.0, 39.0), (70.0, 100.0)]).missed_starts == 1
    assert score_mobility([], [], []).accuracy is None


def line(t: float, kind: str, **keys: object) -> bytes:
    at = 100 * 10**9 + round(t * 1e9)
    return json.dumps({"t_s": t, "monotonic_ns": at, "utc_ns": at + 10**18, "type": kind, **keys}).encode() + b"\n"


def test_each_type_lands_in_its_place():
    truth = read(
        [
            line(0.0, "phase", name="home", activity="still", speed_m_s=0, until_s=5.0),
            line(0.0, "mobility", moving=False, speed_m_s=0),
            line(0.1, "link", operator="A", down_bit_per_s=2e7, rtt_ms=40, outage=False),
            line(0.2, "link", operator="A", down_bit_per_s=2e7, rtt_ms=40, outage=True),
            line(0.3, "handover", operator="A", from_eci=1, to_eci=2, interruption_ms=50.0),
            line(0.4, "signal_drop", operator="B", change_db=-7.5),
            line(0.5, "link_log", operator="A", direction="down", delay_ms=12.0),
            line(0.6, "fault", operator="B", fault="hang", seconds=3),
            line(0.7, "shape", until_s=2.5, paths={"wifi": {"rtt_ms": 100.0, "down_loss_percent": 0.0}}),
        ]
    )
    assert truth.epoch_monotonic_ns == 100 * 10**9
    assert truth.phases[0].end_s == 5.0
    assert list(truth.links["A"].down_bit_per_s) == [2e7, 0.0]
    assert (truth.handovers[0].to_eci, truth.drops[0].change_db, truth.faults[0].fault) == (2, -7.5, "hang")
    assert [(s.start_s, s.end_s, s.paths["wifi"]["rtt_ms"]) for s in truth.shapes] == [(0.7, 2.5, 100.0)]
    assert (truth.strange_lines, truth.cut) == (0, False)


def test_a_strange_or_broken_line_is_counted_and_a_cut_last_one_told_apart():
    truth = read([line(0.0, "shape", paths={"a": {}}), line(0.0, "shape", until_s=1.0, paths={"a": 5})])
    assert (truth.shapes, truth.strange_lines) == ([], 2)
    whole = line(1.0, "mobility", moving=True)
    assert (lambda t: (t.cut, t.strange_lines, t.mobility))(read([whole, whole[:30]])) == (True, 0, [(1.0, True)])
    inside = read([whole[:30], whole])
    assert (inside.cut, inside.strange_lines) == (False, 1)
    assert read([line(1.0, "weather", rain=True)]).strange_lines == 0


JSON = st.sampled_from(
    [None, True, False, 0, -1, 7, 10**400, 1.5, -1e308, float("nan"), float("inf"), "", "A", [], [1], {}, {"a": 1}]
)
KEYS = [
    "t_s",
    "type",
    "operator",
    "moving",
    "down_bit_per_s",
    "rtt_ms",
    "outage",
    "from_eci",
    "to_eci",
    "change_db",
    "until_s",
]
KINDS = st.sampled_from(
    ["phase", "mobility", "radio", "link", "handover", "signal_drop", "outage", "fault", "link_log"]
)


@given(
    st.lists(st.dictionaries(st.sampled_from([*KEYS, "monotonic_ns", "utc_ns", "delay_ms"]), JSON), max_size=5),
    KINDS,
    st.lists(st.binary(max_size=60), max_size=5),
)
def test_any_bytes_and_any_values_under_the_known_keys_are_survived(entries, kind, lines):
    truth = read(lines)
    assert truth.strange_lines + truth.cut <= len(lines)
    read([json.dumps({**entry, "type": kind}).encode() for entry in entries])
    read([json.dumps({"t_s": 1.0, "operator": "A", **entry, "type": kind}).encode() for entry in entries])
