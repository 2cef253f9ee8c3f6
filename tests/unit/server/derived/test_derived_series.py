"""The derived series in a real database: the same from the same records, in whatever order and however often these came."""

import random

import pytest
from riding import HOUR, START, S, commute

from tandem_server.derived.series import AFFECTED, CONSUMER, Derived, DerivedSeries, Making, Span, affected, duration_s
from tandem_server.registry import CONSUMERS, Debounce, LateHour, Registry, late_hours
from tandem_server.schema.derived import DERIVED_POLICIES
from tandem_server.schema.measurements import SERVER_MEASUREMENTS
from tandem_server.store import StoreDown

LATER = START + 5 * HOUR
EVERY_S = 10
POLLS = 3 * 3600 // EVERY_S
"""Of one modem on one ride."""
PROBES = ("probe-1", "probe-2")
WHOLE = [Span(probe, START - 24 * HOUR, START + 48 * HOUR) for probe in PROBES]

COUNTING = ("coverage", "coverage_day", "probe_area_day", "area", "area_day")
ALL = [Span(None, START - 24 * HOUR, START + 48 * HOUR)]


def series_of(registry, store):
    return DerivedSeries(registry, store, Debounce(settle_s=0))


def turned(registry, store, now):
    """By a process that was started anew."""
    return series_of(registry, store).once(now)


def everything(store):
    return {
        (measurement, *identity): fields
        for measurement in DERIVED_POLICIES
        for span in (WHOLE if "probe" in SERVER_MEASUREMENTS[measurement].tags else ALL)
        for identity, fields in Derived(store).points(measurement, span).items()
    }


def polls_in(made):
    return {m: sum(f.get("polls", 0) for (n, *_), f in made.items() if n == m) for m in COUNTING}


def send(store, lines):
    for i in range(0, len(lines), 5000):
        assert store.write(lines[i : i + 5000]) == []


@pytest.fixture(scope="module")
def rides():
    return [commute(name, seed, every_s=EVERY_S) for seed, name in enumerate(PROBES)]


def test_hours_days_and_pairs_are_made_once_and_stay(registry, store, rides):
    for ride in rides:
        send(store, ride.lines)
    turn = turned(registry, store, LATER)
    assert (turn.left, turn.hours) == (False, 2 * 3 + 2)  # the third pair of each ends in the fourth hour
    made = everything(store)
    assert polls_in(made) == dict.fromkeys(COUNTING, 2 * 2 * POLLS)
    hours = {time for (m, time, _) in made if m == "coverage"}
    assert hours >= {START, START + HOUR, START + 2 * HOUR}
    pairs = {(dict(tags)["probe"], f["pair"]): f for (m, _, tags), f in made.items() if m == "pair"}
    assert len(pairs) == 6
    third = pairs["probe-1", "pair-probe-1-2"]
    assert third["gain"] == pytest.approx(17 * 0.8 / 12)
    assert third["primary_share"] == pytest.approx(12 / 17, abs=1e-4)
    days = {dict(tags)["probe"]: f for (m, _, tags), f in made.items() if m == "pair_day"}
    assert [(f["pairs"], f["benefits"], f["shares"]) for f in days.values()] == [(3, 3, 3)] * 2
    assert days["probe-1"]["mptcp_goodput_bit_per_s"] == pytest.approx((17 + 16 + 15) * 0.8e6)
    # Nothing new: not a point is written, not an hour made.
    again = series_of(registry, store)
    assert again.once(LATER + 60 * S).hours == 0
    assert not any(again._making.hour(probe, START + k * HOUR) for probe in PROBES for k in range(4))
    assert everything(store) == made


def test_seconds_of_goodput_are_those_of_tcp_downloads(registry, store, rides):
    send(store, rides[0].lines)
    turned(registry, store, LATER)
    seconds = {}
    for (m, _, tags), fields in everything(store).items():
        if m == "coverage_day" and "goodput_bit_per_s_count" in fields:
            path = dict(tags)["path"]
            seconds.setdefault(path, []).append((fields["goodput_bit_per_s_count"], fields["goodput_bit_per_s_sum"]))
    counts = {path: [sum(c) for c in zip(*rows, strict=True)] for path, rows in seconds.items()}
    assert counts == {"a": [60, pytest.approx(20 * (10e6 + 11e6 + 12e6))], "b": [60, pytest.approx(60 * 5e6)]}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.exhaustive)])
def test_any_order_of_arrival_leaves_the_same(registry, store, rides, seed, tmp_path):
    lines = [line for ride in rides for line in ride.lines]
    send(store, lines)
    turned(registry, store, LATER)
    once = everything(store)
    for measurement in (*DERIVED_POLICIES, *CONSUMERS[CONSUMER]):
        store.query(f'DROP SERIES FROM "{measurement}"')
    assert everything(store) == {}

    with Registry(tmp_path / "another.sqlite") as other:
        # The loop turns, and is started anew, between the pieces.
        chance, rest = random.Random(seed), lines.copy()
        chance.shuffle(rest)
        pieces = [rest[i::4] for i in range(4)]
        for number, piece in enumerate(pieces):
            now = LATER + number * 600 * S
            send(store, piece)
            for ride in rides:
                own = [line for line in piece if f"probe={ride.name}" in line.split(" ", 1)[0]]
                other.late.note(late_hours(ride.name, own, now), now)
            if chance.random() < 0.8:
                turned(other, store, now)
        turned(other, store, LATER + HOUR)
        assert other.late.pending(CONSUMER) == []
        assert everything(store) == once


def test_a_position_that_comes_late_moves_its_polls_and_leaves_no_row_behind(registry, store, rides):
    lines = rides[0].lines
    positions = [line for line in lines if line.startswith("position")]
    send(store, [line for line in lines if not line.startswith("position")])
    series = series_of(registry, store)
    series.once(LATER)
    assert not any("area" in dict(tags) for (_, _, tags) in everything(store))
    send(store, positions)
    registry.late.note(late_hours("probe-1", positions, LATER), LATER)
    series.once(LATER + S)
    placed = {(m, time, tags): f for (m, time, tags), f in everything(store).items() if m == "coverage"}
    assert sum(f.get("polls", 0) for f in placed.values()) == 2 * POLLS
    assert all("area" in dict(tags) for (_, _, tags), f in placed.items() if "polls" in f)
    assert any("way_m" in f for f in placed.values())


def test_the_hour_that_goes_on_is_made_too_and_grows(registry, store, rides):
    def polls_of_the_second_hour():
        made = everything(store).items()
        return sum(f.get("polls", 0) for (m, time, _), f in made if (m, time) == ("coverage", START + HOUR))

    ride = rides[0]
    cut = START + HOUR + 1800 * S
    early = [line for line in ride.lines if int(line.rsplit(" ", 1)[1]) < cut]
    send(store, early)
    series = series_of(registry, store)
    series.once(cut)
    assert polls_of_the_second_hour() == 2 * POLLS // 6
    send(store, [line for line in ride.lines if line not in set(early)])
    series.once(START + 2 * HOUR)
    assert polls_of_the_second_hour() == 2 * POLLS // 3


def test_what_is_not_kept_any_more_is_not_made_again_of_what_is_left(registry, store, rides, caplog):
    send(store, rides[0].lines)
    series = series_of(registry, store)
    series.once(LATER)
    before = everything(store)
    store.query('DELETE FROM "radio" WHERE "path" = \'b\'')
    registry.late.note({("probe-1", "radio", START // S)}, LATER)
    series._keep_from = lambda _: START + 24 * HOUR
    series.once(LATER + S)
    assert everything(store) == before
    assert registry.late.pending(CONSUMER) == []
    assert "not kept any more" in caplog.text


def test_a_measurement_affects_the_hours_that_look_at_it_and_durations_are_read():
    note = LateHour("probe-1", "position", START // S, 1, 0)
    assert affected([note], LATER) == {("probe-1", START + k * HOUR) for k in (-1, 0, 1, 2)}
    assert affected([note], START) == {("probe-1", START - HOUR)}
    assert set(AFFECTED) == set(CONSUMERS[CONSUMER])
    assert affected([LateHour("probe-1", "clock", START // S, 1, 0)], LATER) == set()
    written = {"0s": 0, "168h0m0s": 604_800, "1h30m5s": 5405, "45m0s": 2700}
    assert {text: duration_s(text) for text in written} == written
    for text in ("", "7d", "1h 2m", "h", "-1h"):
        with pytest.raises(ValueError, match="no duration"):
            duration_s(text)


@pytest.mark.parametrize("broken", ["_day", "together"])
def test_what_was_broken_off_between_hour_and_day_is_made_whole(registry, store, rides, monkeypatch, broken):
    send(store, rides[0].lines)
    whole = Making.__dict__[broken]

    def breaks(*_):
        raise StoreDown("gone")

    monkeypatch.setattr(Making, broken, breaks)
    with pytest.raises(StoreDown):
        series_of(registry, store).once(LATER)
    assert any(m == "coverage" for (m, *_) in everything(store))
    monkeypatch.setattr(Making, broken, whole)
    series = series_of(registry, store)
    series.once(LATER)
    assert polls_in(everything(store)) == dict.fromkeys(COUNTING, 2 * POLLS)
