"""The server's machine: what the kernel tells, read strictly, and what is not there left out."""

import os
import time
from pathlib import Path

from fake_database import FakeDatabase
from hypothesis import example, given
from hypothesis import strategies as st

from tandem.schema.line_protocol import parse
from tandem_server.cli.configuration import load
from tandem_server.cli.gateway import places_of
from tandem_server.ingest.own_series import (
    MachineSeries,
    Processors,
    busy_percent,
    disk,
    first_number,
    held_bytes,
    memory_bytes,
    processors,
)
from tandem_server.registry import Registry
from tandem_server.schema.measurements import SERVER_PLACES


@given(st.text())
@example("cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1")
@example("cpu ² 2 3 4 5 6 7 8")
def test_any_text_is_read_or_is_none(text):
    assert processors(text) is None or processors(text).busy <= processors(text).total
    assert first_number(text) is None or first_number(text) >= 0
    assert all(isinstance(value, int) for value in memory_bytes(text).values())


def test_proc_is_read_as_its_manual_has_it():
    assert processors("cpu  10 1 5 70 4 3 2 1 0 0\n") == Processors(22, 96)
    assert busy_percent(Processors(10, 100), Processors(60, 200)) == 50
    assert busy_percent(None, Processors(1, 2)) is None
    assert busy_percent(Processors(1, 2), Processors(1, 2)) is None
    assert memory_bytes("MemTotal:  8 kB\nHugePages_Total: 0\nMemAvailable: 4 kB\n") == {
        "MemTotal": 8192,
        "MemAvailable": 4096,
    }
    assert (first_number("0.52 0.58 1/5"), first_number("nan 1")) == (0.52, None)


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
        assert series.once(now)
        deadline = time.monotonic() + 60
        while processors(Path("/proc/stat").read_text()).total == series._before.total:
            assert time.monotonic() < deadline
        assert series.once(now + 60 * 10**9)
    points = [parse(line) for line in store.lines]
    first, second = (p.fields for p in points if p.measurement == "server_health")
    assert (first["database"], first["probes"]) == ("1.6.7", 1)
    assert 0 < second["memory_available_bytes"] < second["memory_total_bytes"]
    assert 0 <= second["cpu_percent"] <= 100
    assert second["uptime_s"] > 0
    disks = [(p.tags["place"], set(p.fields)) for p in points if p.measurement == "server_disk"]
    fields = {"free_bytes", "used_bytes", "held_bytes"}
    assert [name for name, _ in disks] == ["traces", "registry"] * 2  # what is not there is not told
    assert fields <= disks[0][1]
    assert "held_bytes" not in disks[2][1]  # counted every ten minutes
