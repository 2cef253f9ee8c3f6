"""Home zones: whatever the track, nothing inside one leaves the probe."""

import json
import logging
import math
from itertools import pairwise
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tracks import between, metres, tpv, utc_ns

from tandem.position.receiver import Observer
from tandem.position.zones import DWELL_S, METRES_A_DEGREE, Mode, Point, Privacy, Zone, Zones, moved, own_key, rounded
from tandem.schema.record import Record

S = 10**9
KEY = bytes(range(32))


def told(
    track: list[tuple[float, float, float, float | None]], zones: list[Zone], mode: Mode, **more: object
) -> list[Record]:
    """The records of a track: rows of (seconds, latitude, longitude, error)."""
    grid = more.get("grid_deg", 0.01)
    key = more.get("key", KEY)
    assert isinstance(grid, float)
    assert isinstance(key, bytes)
    observer = Observer(Privacy(mode, grid, Zones(zones, key, Random(7))), utc_ns, 5.0)
    records = []
    for second, latitude, longitude, error in track:
        at = int(second * S)
        records += observer.tick(at)
        records += observer.heard(tpv(latitude, longitude, at, error_m=error), at)
    return records + observer.tick(int((track[-1][0] + 1) * S))


def places(records: list[Record]) -> list[tuple[float, float]]:
    return [(r.fields["latitude_deg"], r.fields["longitude_deg"]) for r in records if "latitude_deg" in r.fields]  # type: ignore[misc]  # floats


def ride(
    zone: Zone, offset_m: float, speed: float, before_m: float = 3000.0
) -> list[tuple[float, float, float, float]]:
    """Due north past the zone's middle, ``offset_m`` to the east of it, one fix a second."""
    start = moved(moved(Point(zone.latitude_deg, zone.longitude_deg), 90, offset_m), 180, before_m)
    rows = []
    for n in range(int(2 * before_m / speed)):
        point = moved(start, 0, n * speed)
        rows.append((1000.0 + n, point.latitude_deg, point.longitude_deg, 5.0))
    return rows


zones_strategy = st.builds(
    Zone, st.floats(-85, 85), st.floats(-180, 180, exclude_max=True), st.floats(100, 3000)
)  # fmt: skip


@st.composite
def tracks(draw: st.DrawFn) -> tuple[list[Zone], list[tuple[float, float, float, float | None]]]:
    """A wandering near the zones: any speeds, jumps, gaps and errors, often dithering at an edge."""
    zones = draw(st.lists(zones_strategy, min_size=1, max_size=1))
    if draw(st.booleans()):  # a second one that touches the first
        first = zones[0]
        centre = moved(Point(first.latitude_deg, first.longitude_deg), draw(st.floats(0, 360)), 2.5 * first.radius_m)
        zones.append(Zone(centre.latitude_deg, centre.longitude_deg, draw(st.floats(100, 3000))))
    home = Point(zones[0].latitude_deg, zones[0].longitude_deg)
    radius = zones[0].radius_m
    point = moved(home, draw(st.floats(0, 360)), draw(st.floats(0, 6)) * radius)
    rows: list[tuple[float, float, float, float | None]] = []
    second = 1000.0
    for _ in range(draw(st.integers(1, 12))):
        leg = draw(st.integers(1, 60))
        speed = draw(st.sampled_from([0.0, 1.4, 14.0, 80.0]) | st.floats(0, 300))
        heading = draw(st.floats(0, 360))
        if draw(st.integers(0, 3)) == 0:  # straight for home
            heading = math.degrees(
                math.atan2(home.longitude_deg - point.longitude_deg, home.latitude_deg - point.latitude_deg)
            )
        for _ in range(leg):
            point = moved(point, heading, speed)
            rows.append((second, point.latitude_deg, point.longitude_deg, draw(st.none() | st.floats(0, 30))))
            second += 1.0
        if draw(st.integers(0, 5)) == 0:
            second += draw(st.floats(0, 600))  # a tunnel
            point = moved(home, draw(st.floats(0, 360)), draw(st.floats(0, 5)) * radius)
    return zones, rows


@given(
    tracks(),
    st.sampled_from(["coarse", "full"]),
    st.sampled_from([0.001, 0.01, 0.1]),
    st.binary(min_size=32, max_size=32),
)
def test_no_record_of_any_track_shows_a_point_inside_a_zone(drawn, mode, grid, key):
    zones, track = drawn
    records = told(track, zones, mode, grid_deg=grid, key=key)
    rows = [r for r in records if r.measurement == "position"]
    for record in rows:
        assert "latitude_deg" in record.fields  # nor does the lack of a place tell that it is home
    for zone in zones:
        home = (zone.latitude_deg, zone.longitude_deg)
        for place in places(rows):
            assert metres(place, home) > zone.radius_m
        # Nor does the line that a map draws between two of them, unless they are so far apart that it means nothing.
        for a, b in pairwise(rows):
            if b.monotonic_ns - a.monotonic_ns < DWELL_S[0] * S and mode == "full":
                (pa,), (pb,) = places([a]), places([b])
                if metres(pa, pb) < 5000:
                    assert all(metres(between(pa, pb, n / 20), home) > zone.radius_m for n in range(21))
    # No second of which the truth was inside has a record of any kind.
    inside = {
        int(second * S) for second, latitude, longitude, _ in track
        for zone in zones if metres((latitude, longitude), (zone.latitude_deg, zone.longitude_deg)) < zone.radius_m
    }  # fmt: skip
    assert not {r.monotonic_ns + 120_000_000 for r in records} & inside
    assert not any(word in str(r.fields.get("detail")) for r in records for word in ("zone", "private", "home"))


@given(tracks())
def test_coarse_tells_the_grid_and_nothing_finer(drawn):
    for record in told(drawn[1], [], "coarse"):
        if record.measurement == "position":
            assert not {"speed_m_per_s", "track_deg", "altitude_m"} & set(record.fields)
            for name in ("latitude_deg", "longitude_deg"):
                value = record.fields[name]
                assert isinstance(value, float)
                assert value == pytest.approx(round(value, 2), abs=1e-9)
            error = record.fields["horizontal_error_m"]
            assert isinstance(error, float)
            assert error >= 0.01 * METRES_A_DEGREE
            assert record.tags == {"mode": "coarse"}


def test_full_tells_everything():
    records = told([(100, 51.9, -8.5, 4.0)], [], "full")
    (row,) = [r for r in records if r.measurement == "position"]
    assert row.fields == {
        "fix": "3d", "latitude_deg": 51.9, "longitude_deg": -8.5, "altitude_m": 31.0, "speed_m_per_s": 9.5, "track_deg": 123.0,
        "horizontal_error_m": 4.0, "fix_age_ms": 120.0,
    }  # fmt: skip


HOME = Zone(51.9, -8.5, 300.0)


def test_a_ride_past_home_is_told_before_and_after_and_never_in_the_log(caplog):
    caplog.set_level(logging.DEBUG)
    track = ride(HOME, 0, 10)
    shown = {round(r.monotonic_ns / S) for r in told(track, [HOME], "full") if r.measurement == "position"}
    assert len(shown) > 300
    assert 1300 not in shown  # at home
    assert max(shown) > 1590
    assert "51.9" not in caplog.text


def test_at_the_start_nothing_is_told_until_a_fix_outside_held():
    track = ride(HOME, 20_000, 1)[:60]
    records = told(track, [HOME], "full")
    first = min(r.monotonic_ns for r in records) / S
    assert 1000 + DWELL_S[0] <= first + 0.2 <= 1000 + DWELL_S[1] + 1.2


def test_the_circle_that_many_rides_show_does_not_have_home_in_its_middle():
    """The attacker fits a circle to the last points before silence, and takes its middle for the home."""
    misses = []
    for n in range(10):
        ends = []
        for bearing in range(0, 360, 20):
            middle = moved(Point(HOME.latitude_deg, HOME.longitude_deg), bearing + 90, Random(bearing).uniform(0, 300))
            start = moved(middle, bearing, 3000)
            rows = []
            for step in range(300):
                point = moved(start, bearing + 180, step * 10.0)
                rows.append((1000.0 + step, point.latitude_deg, point.longitude_deg, 5.0))
            ends.append(places(told(rows, [HOME], "full", key=bytes([n]) * 32))[-1])
        misses.append(metres(_middle_of_circle(ends), (HOME.latitude_deg, HOME.longitude_deg)))
    assert sum(misses) / len(misses) > 0.45 * HOME.radius_m  # six tenths are meant
    assert max(misses) < 1.2 * HOME.radius_m


def _middle_of_circle(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Least squares (Kåsa) on a plane through the first point."""
    squeeze = math.cos(math.radians(points[0][0]))
    flat = np.array([((b - points[0][1]) * squeeze, a - points[0][0]) for a, b in points]) * METRES_A_DEGREE
    system = np.column_stack([2 * flat, np.ones(len(flat))])
    x, y, _ = np.linalg.lstsq(system, (flat**2).sum(axis=1), rcond=None)[0]
    return points[0][0] + y / METRES_A_DEGREE, points[0][1] + x / METRES_A_DEGREE / squeeze


def test_the_hidden_circle_is_the_same_after_a_restart_and_another_with_another_key():
    track = ride(HOME, 0, 5)
    seconds = [tuple(r.monotonic_ns for r in told(track, [HOME], "full", key=key)) for key in (KEY, KEY, KEY[::-1])]
    assert seconds[0] == seconds[1] != seconds[2]


def test_dithering_at_the_edge_tells_little():
    edge = [(n * 1.0 + 1000, *_at(600 + 100 * math.sin(n / 5)), 5.0) for n in range(2000)]
    far = [(500.0 + n, *_at(3000), 5.0) for n in range(60)]
    records = told(far + edge, [HOME], "full")
    seconds = [r.monotonic_ns for r in records if r.measurement == "position"]
    changes = sum(b - a > 2 * S for a, b in pairwise(seconds))
    assert changes <= 2000 / (2 * math.pi * 5) / 2 + 1  # at most every other swing is seen


def _at(north_m: float) -> tuple[float, float]:
    point = moved(Point(HOME.latitude_deg, HOME.longitude_deg), 0, north_m)
    return point.latitude_deg, point.longitude_deg


def test_no_event_and_no_speed_tells_what_the_receiver_does_at_home():
    speeds: list[Record] = []
    observer = Observer(Privacy("full", 0.01, Zones([HOME], KEY, Random(1))), utc_ns, 5.0, speeds.append)
    records = []
    for n in range(200):  # indoors: found, lost, found …
        at = (1000 + n) * S
        if n % 20 < 10:
            records += observer.heard(tpv(HOME.latitude_deg, HOME.longitude_deg, at), at)
        records += observer.tick(at + S // 2)
    assert records == speeds == []
    assert observer.state((1000 + 188) * S, connected=True).state == "private"


def test_the_key_is_ours_alone_and_a_disk_that_takes_none_is_told(tmp_path, caplog):
    file = tmp_path / "spool" / "zones.key"
    key = own_key(file)
    assert own_key(file) == key
    assert len(key) == 32
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(b"short")
    assert own_key(file) != key
    assert json.dumps([p.name for p in file.parent.iterdir()]) == '["zones.key"]'
    (tmp_path / "file").write_text("in the way")
    assert len(own_key(tmp_path / "file" / "zones.key")) == 32
    assert "differently at each start" in caplog.text


def test_rounding_keeps_to_the_poles_and_the_date_line():
    assert rounded(Point(89.999, 179.999), 0.03) == Point(90.0, 180.0)
    assert rounded(Point(-51.897, -8.4717), 0.01) == Point(-51.9, -8.47)
