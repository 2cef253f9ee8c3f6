"""The detectors on hand-made series (a folder a behaviour), what holds for every series of polls, and the class of a movement."""

import csv
import itertools
import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import badly_refused
from tandem.mobility.detectors import Detectors
from tandem.mobility.radio_events import MobilityDetector
from tandem.mobility.settings import FusedSettings, Settings
from tandem.schema.record import Record

GOLDEN = Path(__file__).parent / "golden"


def record(row: dict[str, str]) -> Record:
    """A row of input.csv; the state ``stale`` is an idle poll that is marked stale."""
    stale = row["state"] == "stale"
    return Record.make(
        "radio",
        {"path": row["path"], "rat": row["rat"]},
        {
            "state": "idle" if stale else row["state"],
            "stale": stale,
            "rsrp_dbm": float(row["rsrp_dbm"]) if row["rsrp_dbm"] else None,
            "eci": int(row["eci"]) if row["eci"] else None,
            "plmn": row["plmn"] or None,
        },
        round(float(row["t_s"]) * 1e9),
    )


def told(event: Record) -> dict[str, Any]:
    return {"t_s": event.monotonic_ns / 1e9, **event.tags, **event.fields}


@pytest.mark.parametrize("folder", sorted(GOLDEN.iterdir()), ids=lambda folder: folder.name)
def test_golden(folder):
    detectors = Detectors(Settings(**tomllib.loads((folder / "config.toml").read_text())))
    with (folder / "input.csv").open(newline="") as rows:
        events = [told(event) for row in csv.DictReader(rows) for event in detectors.feed(record(row))]
    assert events == [json.loads(line) for line in (folder / "expected.jsonl").read_text().splitlines()]


SECOND = 10**9
SETTINGS = Settings(threshold_db=6.0, stop_after_s=4.0)

LEVELS = st.one_of(st.none(), st.floats(-140, -50).map(lambda level: round(level, 1)))
STATES = st.sampled_from(["idle", "connected", "unknown", "no_answer", "port_lost"])
POLLS = st.lists(st.tuples(LEVELS, STATES, st.one_of(st.none(), st.integers(0, 2**28 - 1)), st.booleans()), max_size=40)


def series(path: str, polls: list[tuple[float | None, str, int | None, bool]], offset_ns: int = 0) -> list[Record]:
    return [
        Record.make(
            "radio",
            {"path": path, "operator": path.upper(), "rat": "LTE"},
            {"rsrp_dbm": level, "state": state, "eci": eci, "stale": stale},
            i * SECOND + offset_ns,
        )
        for i, (level, state, eci, stale) in enumerate(polls)
    ]


def key(event: Record) -> tuple[int, str, str]:
    return event.monotonic_ns, event.tags["kind"], event.tags.get("path", "")


@given(POLLS, POLLS)
def test_starts_and_stops_alternate_the_state_follows_them_and_a_record_told_twice_is_nothing(a, b):
    detectors, changes = Detectors(SETTINGS), []
    for record in sorted(series("a", a) + series("b", b, SECOND // 2), key=lambda r: r.monotonic_ns):
        changes += [e for e in detectors.feed(record) if e.tags["kind"].startswith("mobility")]
        assert detectors.feed(record) == []
        assert detectors.mobile == (bool(changes) and changes[-1].tags["kind"] == "mobility_start")
        assert (detectors.mobile_since_ns is not None) == detectors.mobile
    changes += detectors.tick(1000 * SECOND)
    kinds = [e.tags["kind"] for e in changes]
    assert kinds == ["mobility_start", "mobility_stop"] * (len(kinds) // 2)
    assert [e.monotonic_ns for e in changes] == sorted(e.monotonic_ns for e in changes)
    for start, stop in zip(changes[::2], changes[1::2], strict=True):
        assert stop.monotonic_ns - start.monotonic_ns >= 4 * SECOND


@given(POLLS, POLLS, st.randoms(use_true_random=False))
def test_events_of_a_path_do_not_depend_on_the_other_path(a, b, random):
    together, alone = Detectors(SETTINGS), Detectors(SETTINGS)
    queues, mixed = [series("a", a), series("b", b)], []
    while any(queues):
        mixed.append(random.choice([queue for queue in queues if queue]).pop(0))
    of_a = [key(e) for r in mixed for e in together.feed(r) if e.tags.get("path") == "a"]
    expected = [key(e) for r in series("a", a) for e in alone.feed(r)]
    kept = ("signal_drop", "handover", "modem_lost", "modem_back")
    assert [e for e in of_a if e[1] in kept] == [e for e in expected if e[1] in kept]


@given(POLLS, POLLS)
def test_records_of_the_modems_may_arrive_up_to_a_period_late(a, b):
    """Both orders of a round give the same stretches of mobility, but for which modem's change began one."""
    stretches = []
    for order in (0, 1):
        detector, events = MobilityDetector(SETTINGS), []
        for round_ in itertools.zip_longest(series("a", a), series("b", b, SECOND // 2)):
            for record in (round_, round_[::-1])[order]:
                events += detector.feed(record) if record is not None else []
        events += detector.tick(1000 * SECOND)
        stretches.append([e.monotonic_ns for e in events if e.tags["kind"] == "mobility_stop"])
    assert stretches[0] == stretches[1]


@given(POLLS)
def test_drops_are_negative_and_their_sizes_are_differences_of_the_polls(a):
    detectors, records = Detectors(SETTINGS), series("a", a)
    levels = {r.fields["rsrp_dbm"] for r in records if "rsrp_dbm" in r.fields}
    for event in (e for r in records for e in detectors.feed(r) if e.tags["kind"] == "signal_drop"):
        size = event.fields["change_db"]
        assert isinstance(size, float)
        assert size <= -6.0
        assert any(abs(x - y - size) < 0.01 for x, y in itertools.product(levels, levels))
        assert event.fields["quantity"] == "rsrp_dbm"


def test_rssi_may_be_the_quantity_and_is_named():
    detectors = Detectors(Settings(quantity="rssi_dbm"))
    records = [
        Record.make("radio", {"path": "a"}, {"state": "idle", "rssi_dbm": level, "rsrp_dbm": -90.0}, i * SECOND)
        for i, level in enumerate((-70.0, -77.0))
    ]
    events = [e for r in records for e in detectors.feed(r)]
    assert {e.tags["kind"] for e in events} == {"signal_drop", "mobility_start"}
    assert {e.fields["quantity"] for e in events} == {"rssi_dbm"}


def test_a_tick_ends_mobility_when_no_poll_comes():
    detectors = Detectors(SETTINGS)
    for record in series("a", [(-90.0, "idle", None, False), (-70.0, "idle", None, False)]):
        detectors.feed(record)
    assert detectors.mobile_since_ns == SECOND
    assert detectors.tick(5 * SECOND) == []
    (stop,) = detectors.tick(6 * SECOND)
    assert (stop.tags["kind"], stop.monotonic_ns) == ("mobility_stop", 5 * SECOND)
    assert detectors.tick(60 * SECOND) == []


def test_settings_that_cannot_be_are_refused_by_name():
    nan = float("nan")
    rows = [
        ({"quantity": "rsrq_db"}, "quantity"),
        ({"threshold_db": 0.0}, "threshold_db"),
        ({"period_s": nan}, "period_s"),
        ({"stop_after_s": -1.0}, "stop_after_s"),
    ]
    assert badly_refused(ValueError, lambda wrong: Settings(**wrong), rows) == []
    rows = [({"start_s": 0.0}, "start_s"), ({"windows_s": (10.0, 10.0)}, "windows_s"), ({"most_s": 0.5}, "most_s")]
    rows += [({"weights": (1.0,)}, "weights"), ({"bias": nan}, "weights")]
    assert badly_refused(ValueError, lambda wrong: FusedSettings(**wrong), rows) == []


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


def test_events_tell_their_detector_and_the_radio_alone_tells_no_class():
    for detector in ("published", "fused"):
        start, stop = mobility(detector, ride(12.0, 15))
        assert (start.tags["kind"], stop.tags["kind"]) == ("mobility_start", "mobility_stop")
        assert {event.fields["detector"] for event in (start, stop)} == {detector}
        assert all("speed_class" not in event.fields for event in (start, stop))
    assert mobility("published", ride(4.9, 1000)) == [], "only the chosen detector tells"
    assert len(mobility("fused", ride(4.9, 1000))) == 2


def fixes(seconds: range, km_h: float, **other: Any) -> list[Record]:
    told = {"fix": "3d", "fix_age_ms": 100.0, "speed_m_per_s": km_h / 3.6, **other}
    return [Record.make("position", {}, told, s * SECOND) for s in seconds]


def in_order(*rows: list[Record]) -> list[Record]:
    return sorted((record for row in rows for record in row), key=lambda record: record.monotonic_ns)


def test_good_speeds_over_half_of_a_movement_class_it():
    rows: list[tuple[int, float, dict[str, Any], str | None]] = [
        *((300, 4.0, {}, "low"), (300, 60.0, {}, "high"), (100, 4.0, {}, None)),
        *((300, 4.0, bad, None) for bad in ({"fix_age_ms": 3500.0}, {"horizontal_error_m": 200.0}, {"fix": None})),
    ]
    for seconds, km_h, other, speed_class in rows:
        *_, stop = mobility("published", in_order(ride(12.0, 15), fixes(range(seconds), km_h, **other)))
        assert stop.fields.get("speed_class") == speed_class
        assert stop.fields.get("speed_class_by") == (speed_class and "speed")


def test_the_class_is_known_from_the_first_minute_on_and_events_on_the_move_have_it():
    detectors = Detectors(Settings())
    known: list[tuple[int, str | None]] = []
    events = []
    for record in in_order(ride(12.0, 15), fixes(range(310), 30.0)):
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
    start, stop = mobility("published", in_order(ride(12.0, 15, seconds=20), fixes(range(60), 30.0)))
    assert stop.monotonic_ns - start.monotonic_ns < 60 * SECOND
    assert "speed_class" not in stop.fields
