"""The server's machine: what the kernel tells, and what is not there left out."""

import os
import time
from pathlib import Path

from fake_database import FakeDatabase

from tandem.schema.line_protocol import parse
from tandem_server.cli.configuration import load
from tandem_server.cli.worker import places_of
from tandem_server.derived.own_series import MachineSeries, busy_percent, disk, held_bytes, machine, ticks
from tandem_server.registry import Registry
from tandem_server.schema.measurements import SERVER_PLACES


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
