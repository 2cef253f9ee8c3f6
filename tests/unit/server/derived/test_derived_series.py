"""The derived series in a real database: the same from the same records, in whatever order and however often these came; a drive that
somebody else logged, counted by other means than the server's; and the worker that makes them, the only one of its registry."""

import csv
import math
import os
import random
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest
from riding import HOUR, START, Riding, S, commute, driven

from support.serve_on_loopback import await_ready, end, start, tandem_server, wait_for, working
from support.shared_data import LACKING, shared_data
from tandem_server.derived.series import CONSUMER, Derived, DerivedSeries, Making, Span, duration_s
from tandem_server.registry import CONSUMERS, Debounce, Registry, late_hours
from tandem_server.schema.derived import DERIVED_POLICIES, RSRP_EDGES_DBM
from tandem_server.schema.measurements import SERVER_MEASUREMENTS
from tandem_server.store import StoreDown
from tandem_server.store.private import account_password

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


DRIVES = shared_data("drives")
LOGS = ("drive-download-a.csv", "drive-video-b.csv", "static-download-a.csv")


def seconds_of(log):
    """One row a second, the last of those that there are; ``t`` from midnight of the log's day."""
    found = {}
    with log.open() as file:
        for row in csv.DictReader(file):
            if "-" in (row["RSRP"], row["RAWCELLID"]):
                continue
            hours, minutes, seconds = map(int, row["Timestamp"].split("_")[1].split("."))
            place = {"latitude": float(row["Latitude"]), "longitude": float(row["Longitude"])}
            t = hours * 3600 + minutes * 60 + seconds
            found[t] = {"t": t, "rsrp": float(row["RSRP"]), "eci": int(row["RAWCELLID"]), **place}
    return [found[t] for t in sorted(found)]


def metres(a, b):
    """Flat, which is right to a millimetre over a second's way."""
    east = math.radians(b["longitude"] - a["longitude"]) * math.cos(math.radians(a["latitude"]))
    return 6_371_000 * math.hypot(east, math.radians(b["latitude"] - a["latitude"]))


@pytest.mark.skipif(DRIVES is None, reason=LACKING)
@pytest.mark.parametrize("name", LOGS)
def test_a_drive_is_counted_as_its_log_has_it(registry, store, name):
    seconds = seconds_of(DRIVES / name)
    ride = driven(seconds, START)
    send(store, ride.lines)
    series_of(registry, store).once(START + (seconds[-1]["t"] // 3600 + 3) * HOUR)

    def asked(of):
        (found,) = store.query(f'SELECT {of} FROM "hour"."coverage_day"')  # noqa: S608  constants of this test
        return found.rows[0][1]

    def total(field):
        return asked(f'sum("{field}")')

    assert total("polls") == total("rsrp_dbm_count") == len(seconds)
    assert total("rsrp_dbm_sum") == pytest.approx(sum(s["rsrp"] for s in seconds))
    for low, high in zip((-math.inf, *RSRP_EDGES_DBM), (*RSRP_EDGES_DBM, math.inf), strict=True):
        name_of = f"rsrp_m{-low}_m{-high}" if math.isfinite(low + high) else ""
        name_of = name_of or (f"rsrp_from_m{-low}" if math.isfinite(low) else f"rsrp_below_m{-high}")
        in_bin = sum(low <= s["rsrp"] < high for s in seconds)
        rows = store.query(f'SELECT sum("{name_of}") FROM "hour"."coverage_day"')  # noqa: S608  likewise
        assert (rows[0].rows[0][1] if rows else 0) == in_bin, name_of
    # Whole seconds between rows, as far as polls are successive: 2.5 s stand for a longer gap, and for the last.
    gaps = [b["t"] - a["t"] for a, b in pairwise(seconds)]
    assert total("time_s") == pytest.approx(sum(min(gap, 2.5) for gap in gaps) + 2.5)
    changes = sum(a["eci"] != b["eci"] for a, b in pairwise(seconds))
    driving = name.startswith("drive")
    if changes:
        assert total("handovers") == changes
    joined = [(a, b) for a, b in pairwise(seconds) if b["t"] - a["t"] <= 10]
    way = sum(metres(a, b) for a, b in joined)
    if driving:
        assert way > 10_000
        assert total("way_m") == pytest.approx(way, rel=0.02)
        per_km = asked('sum("way_handovers") / sum("way_m") * 1000')
        assert per_km == pytest.approx(changes / way * 1000, rel=0.02)
        per_hour = asked('sum("handovers") / sum("time_s") * 3600')
        assert per_hour == pytest.approx(changes / sum(min(gap, 2.5) for gap in gaps) * 3600, rel=0.01)
        areas = store.query('SELECT sum("polls") FROM "hour"."area_day" GROUP BY "area"')
        assert len(areas) > 8
        assert sum(series.rows[0][1] for series in areas) == len(seconds)
    else:
        ways = store.query('SELECT sum("way_m") FROM "hour"."coverage_day"')
        assert not ways or (ways[0].rows[0][1] or 0) < 200


@pytest.fixture
def config(tmp_path, private_influx):
    (tmp_path / "password").write_text(account_password(private_influx.folder))
    file = tmp_path / "server.toml"
    file.write_text(
        f'[store]\nkind = "running"\nurl = "{private_influx.url}"\nuser = "tandem"\npassword_file = "password"\n'
        '[registry]\nfile = "registry.sqlite"\n'
    )
    return file


def polls_stored(store):
    return sum(series.rows[0][1] for series in store.query('SELECT sum("polls") FROM "hour"."coverage_day"'))


def nice_by_thread(process):
    """proc(5): the 19th field of stat, the name in parentheses being the second."""
    return [
        int((task / "stat").read_text().rpartition(")")[2].split()[16])
        for task in Path(f"/proc/{process.pid}/task").iterdir()
    ]


def test_it_makes_the_hour_that_goes_on_and_ends_when_it_is_told_to(config, store):
    ride, now = Riding(), time.time_ns()
    for t in range(now // S - 60, now // S):
        ride.say(t * S, "radio", {"path": "a", "operator": "op-a", "rat": "LTE"}, {"state": "idle", "rsrp_dbm": -90.0})
    assert store.write(ride.lines) == []
    with working(config.parent) as process:
        wait_for(lambda: polls_stored(store) == 60)
        wait_for(lambda: store.query('SELECT * FROM "server_health"'))
        nice, own = nice_by_thread(process), os.nice(0)
        assert nice.count(own) >= 5
        assert own == 19 or nice.count(19) in (2, 3)  # with the captures' where the native pass is built
        second = tandem_server("serve", "worker", "--config", config)
        assert (second.returncode, "another worker has it; hint:" in second.stderr) == (3, True)
    killed = start(config.parent, "worker")  # the lock is nobody's when its process has ended
    await_ready(killed, "worker")
    killed.kill()
    assert end(killed) == -9
    with working(config.parent):
        pass


def test_where_the_native_pass_is_not_built_a_worker_does_the_rest(config):
    script = (
        "import sys; sys.modules['tandem_server.tandem_trace_core'] = None\n"
        "from tandem_server.cli.main import main\n"
        "sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", script, "serve", "worker", "--config", str(config)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    await_ready(process, "worker")
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "captures are not analysed when they come: the native pass over captures is not built; hint: " in said


def test_a_retention_is_read_as_the_database_writes_it_or_refused():
    assert (duration_s("168h0m0s"), duration_s("90m0s"), duration_s("0s")) == (168 * 3600, 5400, 0)
    for text in ("", "7", "1m1h", "-1h0m0s"):
        with pytest.raises(ValueError, match="is no duration"):
            duration_s(text)
