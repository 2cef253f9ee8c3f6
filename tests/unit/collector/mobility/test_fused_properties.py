"""What holds for the fused detector whatever the polls are."""

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tandem.mobility.detectors import FusedDetector
from tandem.mobility.settings import FusedSettings
from tandem.schema.record import Record

SECOND = 10**9
SETTINGS = FusedSettings(
    windows_s=(5.0, 20.0), weights=(1.0, 0.5, 1.0), bias=-1.0, full_odds=1.0, start_s=4.0, most_s=8.0, silent_per_s=0.5, least_s=3.0
)  # fmt: skip

LEVELS = st.one_of(st.none(), st.integers(-140, -50).map(float), st.sampled_from([-90.0, -91.0]))
CELLS = st.one_of(st.none(), st.integers(0, 2))
RATS = st.sampled_from(["LTE", "LTE", "LTE", "NR-NSA", "WCDMA", None])
POLL = st.tuples(st.integers(1, 4), LEVELS, CELLS, RATS, st.sampled_from([False, False, False, True]))
POLLS = st.lists(POLL, max_size=60)


def series(path: str, polls: list[tuple[int, float | None, int | None, str | None, bool]]) -> list[Record]:
    """Polls with the seconds before each."""
    out, at_s = [], 0
    for after_s, level, cell, rat, stale in polls:
        at_s += after_s
        name = ("rscp_dbm", "ci") if rat == "WCDMA" else ("rsrp_dbm", "eci")
        fields: dict[str, Any] = {"state": "unknown", "stale": stale, name[0]: level, name[1]: cell}
        out.append(Record.make("radio", {"path": path, "rat": rat}, fields, at_s * SECOND))
    return out


def radio(path: str, s: int, level: float, cell: int = 1, rat: str | None = None, name: str = "rsrp_dbm") -> Record:
    fields = {"state": "idle", name: level, "eci" if name == "rsrp_dbm" else "ci": cell}
    return Record.make("radio", {"path": path, "rat": rat}, fields, s * SECOND)


def lively(path: str, seconds: range) -> list[Record]:
    """A level that goes up and down by 20 dB."""
    return [radio(path, s, -70.0 - 20 * (s // 2 % 2)) for s in seconds]


def quiet(path: str, seconds: range, cell: int = 1) -> list[Record]:
    return [radio(path, s, -90.0, cell) for s in seconds]


def fixes(seconds: range, speed_km_h: float, **other: Any) -> list[Record]:
    fields = {"fix": "3d", "fix_age_ms": 100.0, "speed_m_per_s": speed_km_h / 3.6, **other}
    return [Record.make("position", {"mode": "full"}, fields, s * SECOND) for s in seconds]


def run(records: list[Record], settings: FusedSettings = SETTINGS) -> tuple[FusedDetector, list[tuple[int, str]]]:
    detector = FusedDetector(settings)
    events = [e for r in sorted(records, key=lambda r: r.monotonic_ns) for e in detector.feed(r)]
    return detector, [(e.monotonic_ns, e.tags["kind"]) for e in events]


@given(POLLS, POLLS)
def test_states_alternate_last_their_least_and_follow_the_events(a, b):
    detector, events = FusedDetector(SETTINGS), []
    for record in sorted(series("a", a) + series("b", b), key=lambda r: r.monotonic_ns):
        events += detector.feed(record)
        assert detector.mobile == (bool(events) and events[-1].tags["kind"] == "mobility_start")
        assert detector.mobile_since_ns == (events[-1].monotonic_ns if detector.mobile else None)
        assert all(e.monotonic_ns <= record.monotonic_ns for e in events)
    events += detector.tick(10_000 * SECOND)
    assert not detector.mobile, "without polls movement ends"
    kinds = [e.tags["kind"] for e in events]
    assert kinds == ["mobility_start", "mobility_stop"] * (len(kinds) // 2)
    times = [e.monotonic_ns for e in events]
    assert all(later - sooner >= 3 * SECOND for sooner, later in itertools.pairwise(times))


@given(POLLS, POLLS)
def test_the_order_of_the_modems_and_a_record_told_twice_change_nothing(a, b):
    one, other = series("a", a), series("b", b)
    assert run(one + other)[1] == run(other + one)[1]
    assert run(one)[1] == run([copy for r in one for copy in (r, r)])[1]


@given(POLLS, st.data())
def test_no_look_ahead(a, data):
    cut = data.draw(st.integers(0, len(a)))
    other = a[:cut] + data.draw(POLLS)
    judged = []
    for polls in (a, other):
        detector = FusedDetector(SETTINGS)
        judged.append([(detector.feed(r), detector.mobile, detector.mobile_since_ns) for r in series("a", polls)][:cut])
    assert judged[0] == judged[1]


@given(POLLS, st.lists(st.integers(0, 250), max_size=20))
def test_ticks_change_no_event(a, ticks_s):
    records = series("a", a)
    detector, events = FusedDetector(SETTINGS), []
    things: list[tuple[int, Record | None]] = [(r.monotonic_ns, r) for r in records]
    # A tick comes before the record of the same instant, as in the app where a poll takes its time.
    things += [(s * SECOND, None) for s in ticks_s if records and s <= records[-1].monotonic_ns // SECOND]
    for at_ns, record in sorted(things, key=lambda t: (t[0], t[1] is not None)):
        events += detector.tick(at_ns) if record is None else detector.feed(record)
    assert [(e.monotonic_ns, e.tags["kind"]) for e in events] == run(records)[1]


@given(st.integers(-140, -50), st.integers(1, 200))
def test_a_constant_signal_is_no_movement(level, polls):
    assert run(series("a", [(1, float(level), 1, "LTE", False)] * polls))[1] == []


@given(POLLS, st.integers(-20, 20))
def test_levels_count_by_their_differences_only(a, offset_db):
    kept = [(s, None if level is None else max(-115.0, min(-60.0, level)), *rest) for s, level, *rest in a]
    shifted = [(s, None if level is None else level + offset_db, *rest) for s, level, *rest in kept]
    assert run(series("a", kept))[1] == run(series("a", shifted))[1]


def test_a_lively_modem_starts_and_a_quiet_one_stops_when_the_vessel_is_full_and_empty():
    """By hand: the fourth poll is the first with three free ones, its rate is 1; so the vessel holds 4 s at second 7."""
    detector, events = run(lively("a", range(20)) + quiet("a", range(20, 60)))
    assert events[0] == (7 * SECOND, "mobility_start")
    # Full (8 s) from second 11. The last level that differs from -90, of second 17, leaves the short window (six polls) at second 23
    # and the long one at second 37. Until then the long one brings ln(2 to 10 dB) / 2 and the short ln(0.3 dB): less than -1.
    assert events[1] == (31 * SECOND, "mobility_stop")
    assert not detector.mobile


def test_a_second_quiet_modem_ends_movement_in_half_the_time():
    _, alone = run(lively("a", range(20)) + quiet("a", range(20, 60)))
    _, both = run(
        lively("a", range(20)) + lively("b", range(20)) + quiet("a", range(20, 60)) + quiet("b", range(20, 60))
    )
    assert (alone[1][0] - both[1][0], both[1][1]) == (4 * SECOND, "mobility_stop")


def visits(*cells: int) -> list[Record]:
    return [r for i, cell in enumerate(cells) for r in quiet("a", range(10 * i, 10 * i + 10), cell)]


def alternate(rats: tuple[str, str], names: tuple[str, str]) -> list[Record]:
    return [radio("a", s, -70.0 - 20 * (s % 2), rat=rats[s % 2], name=names[s % 2]) for s in range(30)]


STALE = [Record.make("radio", r.tags, {**r.fields, "stale": True}, r.monotonic_ns) for r in lively("a", range(60))]
STARTS: dict[str, tuple[list[Record], FusedSettings, bool]] = {
    "new cells of one level": (visits(1, 2, 3, 4), FusedSettings(), False),
    "known cells": (visits(1, 2, 1, 2, 1, 2, 1, 2), FusedSettings(), False),
    "standing between two cells of different level": (
        [radio("a", s, -80.0 - 12 * (s // 3 % 2), s // 3 % 2) for s in range(300)], FusedSettings(), False,
    ),
    "a level that goes up and down": (lively("a", range(60)), FusedSettings(), True),
    "a 5G carrier that comes and goes": (alternate(("LTE", "NR-NSA"), ("rsrp_dbm", "rsrp_dbm")), SETTINGS, True),
    "3G is another level": (alternate(("LTE", "WCDMA"), ("rsrp_dbm", "rscp_dbm")), SETTINGS, False),
    "stale polls": (STALE, SETTINGS, False),
}  # fmt: skip


def test_what_starts_a_movement_and_what_does_not():
    found = {
        name: [kind for _, kind in run(records, settings)[1]][:1] for name, (records, settings, _) in STARTS.items()
    }
    assert found == {name: ["mobility_start"] * starts for name, (_, _, starts) in STARTS.items()}


def test_a_good_speed_decides_against_the_radio_until_it_is_old():
    detector, events = run(lively("a", range(60)) + fixes(range(60), 0.0))
    assert (events, detector.mobile) == ([], False)
    detector, events = run(quiet("a", range(60)) + fixes(range(60), 6.0))
    assert (events, detector.mobile) == ([(3 * SECOND, "mobility_start")], True)
    sparse = [fix for s in range(20, 60, 10) for fix in fixes(range(s, s + 1), 20.0)]
    assert run(quiet("a", range(62)) + sparse)[1] == [(20 * SECOND, "mobility_start")]
    _, events = run(quiet("a", range(100)) + fixes(range(20), 20.0))
    # The last fix, of second 19, decides for 5 s; then 8 s drain in 8.
    assert events == [(0, "mobility_start"), (32 * SECOND, "mobility_stop")]


def test_a_short_stop_by_speed_is_part_of_the_ride():
    def ride(stop_s: int) -> list[tuple[int, str]]:
        records = fixes(range(30), 20.0) + fixes(range(30, 30 + stop_s), 0.5) + fixes(range(30 + stop_s, 100), 20.0)
        return run(records)[1]

    assert ride(15) == [(0, "mobility_start")]
    assert ride(17)[1:] == [(45 * SECOND, "mobility_stop"), (48 * SECOND, "mobility_start")]


def test_a_poor_fix_decides_nothing():
    rows: list[dict[str, Any]] = [{"fix": "none"}, {"fix_age_ms": 9000.0}, {"horizontal_error_m": 400.0}]
    for bad in (*rows, {"speed_m_per_s": None}, {"fix": None}):
        assert run(quiet("a", range(60)) + fixes(range(60), 20.0, **bad))[1] == [], bad
