"""The server's own series: what each process of the gateway counted adds up and outlasts a database that is away; its machine."""

import os
import time
from pathlib import Path

import pytest
from fake_database import FakeDatabase
from hypothesis import given
from hypothesis import strategies as st

from support.serve_on_loopback import command, end
from tandem.schema.line_protocol import parse
from tandem_server.cli.configuration import load
from tandem_server.cli.worker import places_of
from tandem_server.derived.own_series import MachineSeries, busy_percent, disk, held_bytes, machine, ticks
from tandem_server.ingest import meter as metering
from tandem_server.ingest.meter import GatewaySeries, Meter
from tandem_server.periodic import own_line
from tandem_server.quantile import nearest_rank
from tandem_server.registry import Registry
from tandem_server.schema.measurements import SERVER_PLACES
from tandem_server.store import StoreDown

TAKEN = ("requests", "lines_accepted", "lines_rejected", "received_bytes")
COUNTED = (*TAKEN, "answers_429", "answers_503", "answers_refused")


def record(seq, state='"idle"'):
    return f"radio,boot=b,path=a state={state},seq={seq}i,monotonic_ns=1i {time.time_ns()}"


def test_what_two_processes_counted_adds_up(two_gateways):
    server = two_gateways
    config = ("--config", server.folder / "server.toml")
    assert command("probe", "add", "probe-2", *config, "--token-file", server.folder / "second")[0] == 0
    second = (server.folder / "second").read_text().strip()
    sent = 0
    for number in range(40):  # each on a connection of its own
        body = "\n".join(record(3 * number + n) for n in (1, 2, 3))
        assert server.gateway("POST", "/v1/records", body)[2]["accepted"] == 3
        sent += len(body)
    for bad in (record(201, "5i"), record(203).replace("radio", "weather")):
        told = server.gateway("POST", "/v1/records", f"{record(200)}\n{bad}", token=second)[2]
        assert (told["accepted"], told["rejected"][0]["line"]) == (1, 1)
    assert server.gateway("POST", "/v1/records", b"\xff", token=second)[0] == 400
    assert server.gateway("GET", "/v1/campaigns", token=second)[0] == 200
    assert server.gateway("POST", "/v1/records", "", token="none")[0] == 401  # noqa: S106
    assert end(server.process) == 0  # what the minute had so far is written at the end
    with server.store() as store:
        sums = ", ".join(f'sum("{name}") AS "{name}"' for name in COUNTED)
        found = store.query(f'SELECT {sums} FROM "gateway" GROUP BY "probe"')  # noqa: S608
        told_of = {s.tags["probe"]: dict(zip(COUNTED, s.rows[0][1:], strict=True)) for s in found}
        assert told_of["probe-1"] == dict(zip(COUNTED, (40, 120, 0, sent, 0, 0, 0), strict=True))
        of_second = [told_of["probe-2"][n] for n in ("requests", "lines_accepted", "lines_rejected", "answers_refused")]
        assert of_second == [4, 2, 2, 1]
        reasons = {
            s.tags["probe"]: s.rows[0][1] for s in store.query('SELECT last("reason") FROM "gateway" GROUP BY "probe"')
        }
        assert set(reasons) == {"probe-2"}  # who had none rejected has no reason
        assert "unknown measurement 'weather'" in reasons["probe-2"] or "state: 5 is not text" in reasons["probe-2"]
        by_process = store.query(
            'SELECT sum("strangers"), sum("written_lines"), sum("acknowledged_requests"), max("acknowledged_most_ms"),'
            ' max("rss_bytes"), max("requests_at_once") FROM "gateway_process" GROUP BY "process"'
        )
        rows = {s.tags["process"]: s.rows[0][1:] for s in by_process}
        assert set(rows) == {"1", "2"}
        assert [sum(row[n] for row in rows.values()) for n in range(3)] == [1, 122, 42]
        assert all(row[4] > 1e6 for row in rows.values())
        assert all(row[3] > 0 for row in rows.values() if row[2])
        assert max(row[5] for row in rows.values()) == 1


def test_a_minute_that_the_database_did_not_take_comes_later(monkeypatch):
    store, meter = FakeDatabase(), Meter()
    series = GatewaySeries(store, meter, 1)
    meter.answered("probe-1", 200, 7)
    store.away = True
    for _ in range(2):
        with pytest.raises(StoreDown):
            series.turn()
        meter.answered("probe-1", 429, 1)
    store.away = False
    series.turn()
    points = [point for point in map(parse, store.lines) if point.measurement == "gateway"]
    assert [(p.fields["requests"], p.fields["answers_429"], p.fields["received_bytes"]) for p in points] == [
        (1, 0, 7),
        (1, 1, 1),
        (1, 1, 1),
    ]
    assert len({point.utc_ns for point in points}) == 3  # none writes over another, also within one minute
    series.turn()
    assert len([line for line in store.lines if line.startswith("gateway,")]) == 3  # who asked nothing has no point
    store.away = True
    monkeypatch.setattr(metering, "_MOST_HELD", 2)
    for _ in range(4):
        with pytest.raises(StoreDown):
            series.turn()
    store.away = False
    before = len(store.lines)
    series.turn()
    assert len(store.lines) - before == 2  # the newest


def test_hours_that_get_their_points_late_are_told():
    store, meter, told = FakeDatabase(), Meter(), []
    series = GatewaySeries(store, meter, 1, late=lambda hours, _: told.append(hours))
    for probe in ("probe-1", "probe 2"):
        meter.answered(probe, 200, 7)
    series._at_utc_ns = 1_700_000_000 * 10**9
    series.turn()
    late = [{("probe-1", "gateway", 1_699_999_200), ("probe 2", "gateway", 1_699_999_200)}]
    assert told == late
    meter.answered("probe-1", 200, 7)
    series.turn()  # of this minute
    assert told == late


def test_two_starts_of_a_process_in_one_minute_leave_two_points():
    store = FakeDatabase()
    for _ in range(2):
        meter = Meter()
        meter.answered("probe-1", 503, 0)
        with GatewaySeries(store, meter, 1):
            pass
    points = [point for point in map(parse, store.lines) if point.measurement == "gateway"]
    assert [p.fields["answers_503"] for p in points] == [1, 1]
    assert points[0].utc_ns != points[1].utc_ns


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 1))
def test_a_quantile_is_the_least_value_that_enough_do_not_exceed(values, share):
    ordered = sorted(values)
    found = nearest_rank(ordered, share)
    assert sum(v <= found for v in values) >= share * len(values) - 1e-9
    assert found == ordered[0] or sum(v < found for v in values) < share * len(values)
    assert nearest_rank([], share) is None


def test_what_is_absent_is_left_out_and_long_texts_are_cut():
    line = own_line("gateway", {"probe": "p", "process": None}, {"requests": 1, "reason": "x" * 600 + "\n"}, 5)
    point = parse(line)
    assert (point.tags, point.utc_ns, len(point.fields["reason"])) == ({"probe": "p"}, 5, 500)
    assert own_line("gateway", {"probe": "p"}, {"requests": None}, 5) is None


# --- the machine: what the kernel tells, and what is not there left out


def test_proc_is_read_as_its_manual_has_it_and_what_is_not_there_is_none(tmp_path):
    (tmp_path / "stat").write_text("cpu  10 1 5 70 4 3 2 1 0 0\ncpu0 10 1 5 70 4 3 2 1 0 0\n")
    (tmp_path / "meminfo").write_text("MemTotal:        8 kB\nHugePages_Total: 0\nMemAvailable:    4 kB\n")
    (tmp_path / "loadavg").write_text("0.52 0.58 0.59 1/537 9\n")
    (tmp_path / "uptime").write_text("35.31 60.02\n")
    assert ticks(tmp_path) == (22, 96)
    read = machine(tmp_path)
    assert (read["memory_total_bytes"], read["memory_available_bytes"]) == (8192, 4096)
    assert (read["load_1min"], read["uptime_s"]) == (0.52, 35.31)
    assert busy_percent((10, 100), (60, 200)) == 50
    assert busy_percent(None, (1, 2)) is None
    assert busy_percent((1, 2), (1, 2)) is None
    assert ticks(tmp_path / "none") is None
    assert {name for name, value in machine(tmp_path / "none").items() if value is not None} == {"cores"}


def test_what_a_folder_holds_is_what_its_files_take_on_disk(tmp_path):
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/one").write_bytes(os.urandom(100_000))
    (tmp_path / "a/two").write_bytes(b"x")
    (tmp_path / "a/link").symlink_to("/")
    (tmp_path / "registry.sqlite").write_bytes(b"x" * 5000)
    (tmp_path / "registry.sqlite-wal").write_bytes(b"x" * 5000)
    assert 100_000 <= held_bytes(tmp_path / "a") < 200_000
    assert 10_000 <= held_bytes(tmp_path / "registry.sqlite") < 50_000
    assert held_bytes(tmp_path / "none") == 0
    assert disk(tmp_path / "none") is None


def test_every_minute_the_machine_and_its_disks(tmp_path):
    (tmp_path / "server.toml").write_text("[capture]\nallowed = true\n")
    config = load(tmp_path / "server.toml")
    assert set(places_of(config)) == set(SERVER_PLACES)
    (tmp_path / "traces").mkdir()
    store = FakeDatabase()
    with Registry(config.registry.file) as registry:
        registry.probes.add("probe-1")
        registry.probes.add("probe-2")
        registry.probes.revoke("probe-2")
        series = MachineSeries(registry, store, places_of(config))
        now = time.time_ns()
        series.once(now)
        deadline = time.monotonic() + 60
        while ticks(Path("/proc"))[1] == series._before[1]:
            assert time.monotonic() < deadline
        series.once(now + 60 * 10**9)
    points = [parse(line) for line in store.lines]
    first, second = (p.fields for p in points if p.measurement == "server_health")
    assert (first["database"], first["probes"]) == ("1.6.7", 1)
    assert 0 < second["memory_available_bytes"] < second["memory_total_bytes"]
    assert 0 <= second["cpu_percent"] <= 100
    assert second["uptime_s"] > 0
    disks = [(p.tags["place"], set(p.fields)) for p in points if p.measurement == "server_disk"]
    assert [name for name, _ in disks] == ["traces", "registry"] * 2  # what is not there is not told
    assert disks[0][1] >= {"free_bytes", "used_bytes", "held_bytes"}
    assert "held_bytes" not in disks[2][1]  # counted every ten minutes
