"""From reports to fixes and events: one a second, of the right time, and lost when nothing comes."""

from dataclasses import replace
from random import Random

import pytest
from tracks import tpv, utc_ns

from tandem.position.receiver import Observer
from tandem.position.reports import Fix, Fixes, Sky, Tpv
from tandem.position.zones import Privacy, Zones
from tandem.schema.record import Record

S = 10**9


def full(**more: object) -> Observer:
    return Observer(Privacy("full", 0.01, Zones([], b"", Random(1))), utc_ns, 5.0, **more)  # type: ignore[arg-type]  # one keyword


def kinds(records: list[Record]) -> list[str]:
    return [r.tags.get("kind", r.measurement) for r in records]


def collected(fixes: Fixes, reports: list[tuple[Tpv, int]]) -> list[Fix]:
    found = [fix for report, at in reports if (fix := fixes.tpv(report, at))]
    last = fixes.tick(reports[-1][1] + S)
    return [*found, last] if last else found


WEEKS = 1024 * 7 * 86400 * S


def test_a_fix_has_the_time_when_it_was_true_or_where_that_cannot_be_its_arrival_and_no_age():
    """None: the clock is not set. A time to come: a clock that is behind; long ago: a receiver whose week number rolled over."""
    for age_ns in (180_000_000, None, -1, 6 * S, WEEKS):
        fixes = Fixes(utc_ns if age_ns is not None else lambda _ns: None, 5.0)
        (fix,) = collected(fixes, [(tpv(51.9, -8.5, 100 * S, age_ns=age_ns or 0), 100 * S)])
        known = (100 * S - 180_000_000, 180.0) if age_ns == 180_000_000 else (100 * S, None)
        assert (fix.monotonic_ns, fix.age_ms) == known


def test_reports_of_one_epoch_become_one_fix_also_when_the_first_have_no_time():
    whole = tpv(51.9, -8.5, 100 * S)
    first = replace(whole, mode=2, altitude_m=None, error_m=None)  # RMC came first
    later = replace(whole, speed_m_per_s=None, track_deg=None)  # then GGA
    (fix,) = collected(Fixes(utc_ns, 5.0), [(first, 100 * S), (later, 100 * S + 80_000_000)])
    assert fix.tpv == whole
    assert fix.age_ms == 120.0  # of the first arrival
    whole = tpv(51.9, -8.5, 100 * S)
    # As gpsd 3.22 says it: two without a time and speed, then the whole.
    first = replace(whole, time_utc_ns=None, speed_m_per_s=None, track_deg=None, error_m=20.9)
    reports = [(first, 100 * S), (first, 100 * S), (whole, 100 * S + 1), (tpv(51.9, -8.5, 101 * S), 101 * S)]
    found = collected(Fixes(utc_ns, 5.0), reports)
    assert [f.tpv.time_utc_ns for f in found] == [utc_ns(100 * S) - 120_000_000, utc_ns(101 * S) - 120_000_000]
    assert found[0].tpv == whole


def test_there_is_one_fix_a_second_of_ten_and_also_without_a_time():
    reports = [(tpv(51.9, -8.5, 100 * S + n * S // 10), 100 * S + n * S // 10) for n in range(50)]
    found = collected(Fixes(utc_ns, 5.0), reports)
    assert len({f.tpv.time_utc_ns // S for f in found if f.tpv.time_utc_ns}) == len(found) == 6
    searching = Tpv(1, "/dev/ttyACM0")
    found = collected(Fixes(utc_ns, 5.0), [(searching, 100 * S + n * S // 4) for n in range(40)])
    assert len(found) == 10
    assert not any(f.found for f in found)


def test_satellites_hold_for_ten_seconds():
    fixes = Fixes(utc_ns, 5.0)
    fixes.tpv(tpv(51.9, -8.5, 100 * S), 100 * S)
    fixes.sky(Sky("/dev/ttyACM0", hdop=0.8), 100 * S)
    fixes.sky(Sky("/dev/ttyACM0", satellites_used=7, satellites_seen=11), 100 * S)
    fixes.sky(Sky("/dev/other", hdop=9.0, satellites_used=1), 100 * S)
    assert (first := fixes.tpv(tpv(51.9, -8.5, 109 * S), 109 * S))
    assert (first.hdop, first.satellites_used, first.satellites_seen) == (0.8, 7, 11)
    assert (second := fixes.tpv(tpv(51.9, -8.5, 112 * S), 112 * S))
    assert second.hdop == 0.8
    assert (third := fixes.tick(113 * S))
    assert third.satellites_used is None


def test_of_two_receivers_one_speaks_until_it_has_no_fix():
    fixes = Fixes(utc_ns, 5.0)
    fixes.tpv(replace(tpv(0, 0, 100 * S), device="b", mode=1, latitude_deg=None, longitude_deg=None), 100 * S)
    found = []
    for n in range(20):
        at = (101 + n) * S
        a = tpv(10, 10, at, device="a", **({} if n < 5 else {"mode": 1, "latitude_deg": None, "longitude_deg": None}))
        found += [fixes.tpv(a, at), fixes.tpv(tpv(20, 20, at, device="b"), at)]
    places = [f.tpv.latitude_deg for f in found if f is not None and f.found]
    assert places == [10] * 5 + [20] * 9


def test_found_and_lost_are_events_once():
    observer, records = full(), []
    for n in range(3):
        records += observer.heard(Tpv(1, "d"), (90 + n) * S)
    observer.heard(Sky("d", satellites_used=6), 92 * S)
    for n in range(5):
        records += observer.heard(tpv(51.9, -8.5, (100 + n) * S, device="d"), (100 + n) * S)
    for n in range(40):
        records += observer.tick(104 * S + n * S // 4)
    assert kinds(records) == ["position"] * 3 + ["position_fix"] + ["position"] * 5 + ["position_lost"]
    assert [r.fields["fix"] for r in records if r.measurement == "position"] == ["none"] * 3 + ["3d"] * 5
    found, lost = (r for r in records if r.measurement == "event")
    assert found.fields == {"detail": "3d, 6 satellites"}
    assert lost.fields["detail"] == "the receiver is silent"
    assert lost.fields["took_ms"] == pytest.approx(8750, abs=500)
    assert observer.state(120 * S, connected=True).state == "silent"
    assert observer.state(120 * S, connected=False).state == "no_gpsd"


def test_a_receiver_that_only_searches_is_no_loss():
    observer = full()
    records = [r for n in range(21) for r in observer.heard(Tpv(1, "d"), (100 + n) * S)]
    assert kinds(records) == ["position"] * 20
    assert observer.state(120 * S, connected=True).state == "searching"


def test_speed_is_told_inside_the_probe():
    speeds: list[Record] = []
    observer = full(speed=speeds.append)
    observer.heard(tpv(51.9, -8.5, 100 * S), 100 * S)
    observer.tick(101 * S)
    (told,) = speeds
    assert (told.monotonic_ns, told.fields["speed_m_per_s"], told.fields["fix"]) == (100 * S - 120_000_000, 9.5, "3d")
    assert told.fields["fix_age_ms"] == pytest.approx(120)
    assert "latitude_deg" not in told.fields
