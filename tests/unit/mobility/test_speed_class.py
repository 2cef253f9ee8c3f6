"""The class of a movement, and which detector tells what."""

from typing import Any

import pytest

from tandem.mobility.detectors import Detectors
from tandem.mobility.settings import Settings
from tandem.schema.record import Record

SECOND = 10**9


def ride(step_db: float, cell_every_s: int, seconds: int = 300) -> list[Record]:
    """Levels that go up and down by ``step_db`` every other second, every so often another cell; then quiet for ten minutes."""
    out = []
    for s in range(seconds + 600):
        moving = s < seconds
        level = -70.0 - (step_db if moving and s // 2 % 2 else 0.0)
        cell = (s if moving else seconds) // cell_every_s
        fields = {"state": "idle", "rsrp_dbm": level, "eci": 256 * cell + 1}
        out.append(Record.make("radio", {"path": "a", "rat": "LTE"}, fields, s * SECOND))
    return out


def mobility(detector: str, records: list[Record]) -> list[Record]:
    detectors = Detectors(Settings(detector=detector))
    return [e for r in records for e in detectors.feed(r) if e.tags["kind"].startswith("mobility")]


@pytest.mark.parametrize("detector", ["published", "fused"])
@pytest.mark.parametrize(
    ("step_db", "cell_every_s", "expected"), [(7.0, 120, "low"), (12.0, 15, "high"), (7.0, 15, "high")]
)
def test_a_stop_tells_the_class_of_its_movement_and_events_tell_their_detector(
    detector: str, step_db: float, cell_every_s: int, expected: str
) -> None:
    start, stop = mobility(detector, ride(step_db, cell_every_s))
    assert (start.tags["kind"], stop.tags["kind"]) == ("mobility_start", "mobility_stop")
    assert {event.fields["detector"] for event in (start, stop)} == {detector}
    assert "speed_class" not in start.fields
    assert stop.fields["speed_class"] == expected


def fixes(seconds: range, km_h: float, **other: Any) -> list[Record]:
    told = {"fix": "3d", "fix_age_ms": 100.0, "speed_m_per_s": km_h / 3.6, **other}
    return [Record.make("position", {}, told, s * SECOND) for s in seconds]


def in_order(*rows: list[Record]) -> list[Record]:
    return sorted((record for row in rows for record in row), key=lambda record: record.monotonic_ns)


@pytest.mark.parametrize(
    ("km_h", "other", "expected"),
    [
        (4.0, {}, ("low", "speed")),
        (60.0, {}, ("high", "speed")),
        (4.0, {"fix_age_ms": 3500.0}, ("high", "events")),
        (4.0, {"horizontal_error_m": 200.0}, ("high", "events")),
        (4.0, {"fix": None}, ("high", "events")),
    ],
)
def test_a_good_speed_classes_a_movement_and_the_radio_does_where_there_is_none(
    km_h: float, other: dict[str, Any], expected: tuple[str, str]
) -> None:
    """The radio alone says high."""
    *_, stop = mobility("published", in_order(ride(12.0, 15), fixes(range(300), km_h, **other)))
    assert (stop.fields["speed_class"], stop.fields["speed_class_by"]) == expected


def test_a_speed_over_less_than_half_of_the_movement_is_not_its_speed() -> None:
    *_, stop = mobility("published", in_order(ride(12.0, 15), fixes(range(100), 4.0)))
    assert (stop.fields["speed_class"], stop.fields["speed_class_by"]) == ("high", "events")


def test_the_class_is_known_from_the_first_minute_on_and_events_on_the_move_have_it() -> None:
    detectors = Detectors(Settings())
    known: list[tuple[int, str | None]] = []
    events = []
    for record in ride(12.0, 15):
        events += detectors.feed(record)
        known.append((record.monotonic_ns // SECOND, detectors.speed_class))
    start, stop = (e for e in events if e.tags["kind"].startswith("mobility"))
    begin_s, end_s = start.monotonic_ns // SECOND, stop.monotonic_ns // SECOND
    assert {kind for s, kind in known if s < begin_s + 60 or s > end_s + 1} == {None}
    assert {kind for s, kind in known if begin_s + 60 < s < end_s} == {"high"}
    noticed = [e for e in events if e.tags["kind"] in ("handover", "signal_drop")]
    minute_ns = start.monotonic_ns + 60 * SECOND
    assert {e.fields.get("speed_class") for e in noticed if e.monotonic_ns < minute_ns} == {None}
    assert {e.fields.get("speed_class") for e in noticed if e.monotonic_ns > minute_ns} == {"high"}


def test_a_movement_of_less_than_a_minute_has_no_class() -> None:
    start, stop = mobility("published", ride(12.0, 15, seconds=20))
    assert stop.monotonic_ns - start.monotonic_ns < 60 * SECOND
    assert "speed_class" not in stop.fields


def test_only_the_chosen_detector_tells() -> None:
    assert mobility("published", ride(4.9, 1000)) == []
    assert len(mobility("fused", ride(4.9, 1000))) == 2
