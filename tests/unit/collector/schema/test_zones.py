"""Local time where daylight saving changes it: Los Angeles goes from 02:00 to 03:00 on 8 March 2026, and back on 1 November."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem.schema import zones
from tandem_server.derived.coverage import nearest

LA = "America/Los_Angeles"


@pytest.mark.parametrize(
    ("between", "now", "opens"),
    [
        ((0, 300), "2026-11-25 16:00 PST", "2026-11-26 00:00 PST"),  # midnight UTC is an afternoon there
        ((1380, 60), "2026-11-26 00:59 PST", None),  # over midnight
        ((1380, 60), "2026-11-26 01:00 PST", "2026-11-26 23:00 PST"),
        ((150, 240), "2026-03-08 01:59 PST", "2026-03-08 03:00 PDT"),  # begins in the hour that is left out
        ((130, 170), "2026-03-08 01:59 PST", "2026-03-09 02:10 PDT"),  # lies in it
        ((60, 240), "2026-03-07 04:00 PST", "2026-03-08 01:00 PST"),  # around it
        ((90, 105), "2026-11-01 01:45 PDT", "2026-11-01 01:30 PST"),  # in the hour that is repeated
        ((30, 90), "2026-11-01 01:45 PDT", "2026-11-01 01:00 PST"),  # opens again in the middle, as the clock goes back
        ((120, 180), "2026-10-31 03:00 PDT", "2026-11-01 02:00 PST"),  # behind it: a day of 25 hours
    ],
)
def test_a_span_is_of_the_local_clock(between, now, opens):
    local, utc_s = zones.zone(LA), instant(now)
    wait_s = zones.until(*between, utc_s + 0.75, local)
    if opens is None:
        assert wait_s == 0.0
    else:
        assert datetime.fromtimestamp(utc_s + 0.75 + wait_s, local).strftime("%Y-%m-%d %H:%M %Z") == opens
        assert zones.until(*between, utc_s + 0.75 + wait_s, local) == 0.0
        assert zones.until(*between, utc_s + 0.75 + wait_s - 1, local) == pytest.approx(1.0)


def instant(text):
    plain, _, name = text.rpartition(" ")
    east = {"PST": -8, "PDT": -7}[name]
    return datetime.strptime(plain, "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp() - east * 3600


def test_days_of_a_change_have_23_or_25_hours_and_each_record_gets_the_nearest_within_a_second():
    local = zones.zone(LA)
    assert zones.to_midnight(instant("2026-03-08 00:00 PST"), local) == 23 * 3600
    assert zones.to_midnight(instant("2026-11-01 00:00 PDT"), local) == 25 * 3600
    rows_ns = [10 * S, 11 * S, 15 * S]
    times_ns = [8 * S, 9 * S, int(10.4 * S), int(10.5 * S), int(10.6 * S), 13 * S, 16 * S, 16 * S + 1]
    assert nearest(times_ns, rows_ns, ["a", "b", "c"]) == [None, "a", "a", "a", "b", None, "c", None]


def test_a_name_that_is_none_is_told_with_what_is_near_and_the_machines_zone_is_its_link(tmp_path, monkeypatch):
    near = {"los angeles": f"write {LA}", "europe/berlin": "write Europe/Berlin", "PST": f"as in {LA}", "../x": "as in"}
    for name, hint in near.items():
        with pytest.raises(zones.ZoneError, match=f"no such zone; hint: {hint}"):
            zones.zone(name)
    link = tmp_path / "localtime"
    monkeypatch.setattr(zones, "LOCALTIME", link)
    assert zones.machine() == "UTC"
    link.symlink_to(Path("../usr/share/zoneinfo/Europe/Berlin"))
    assert zones.machine() == "Europe/Berlin"
    monkeypatch.setattr("zoneinfo.available_timezones", set)
    assert (zones.machine(), str(zones.zone("UTC"))) == ("UTC", "UTC")


S = 10**9


@given(st.lists(st.integers(0, 50), max_size=30), st.lists(st.integers(0, 50), max_size=30), st.integers(0, 10))
def test_it_is_what_a_look_at_every_pair_finds(times, rows, within):
    for time, found in zip(times, nearest(times, rows, rows, within), strict=True):
        distances = [abs(row - time) for row in rows]
        if found is None:
            assert not distances or min(distances) > within
        else:
            assert abs(found - time) == min(distances) <= within
            assert found == min(row for row in rows if abs(row - time) == min(distances))
