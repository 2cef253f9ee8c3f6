"""`tandem-server backup` beside a database that runs, `restore` into a fresh server: a real influxd at both ends."""

import hashlib
import io
import json
import shutil
import socket
import tarfile
import time

import pytest

from tandem_server.cli.backup import await_taken, open_connections, shards_sent, shards_taken
from tandem_server.cli.command import EnvironmentLacks
from tandem_server.cli.main import main
from tandem_server.registry import Registry
from tandem_server.registry.traces import TraceRow, insert
from tandem_server.store import PrivateInflux, find_influxd

CONTENT = b"a capture" * 1000


class Server:
    """A server's folder with its server.toml, and the database that runs in it."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        self.influx = PrivateInflux(find_influxd(), folder / "influxdb", 0)
        self.influx.start().close()
        self.config = folder / "server.toml"
        self.config.write_text(
            f'[store]\nfolder = "influxdb"\nport = {self.influx.port}\n[registry]\nfile = "state/registry.sqlite"\n'
            '[traces]\nfolder = "state/traces"\n[results]\nfolder = "state/results"\n'
        )
        (folder / "state").mkdir()

    @property
    def registry(self):
        return self.folder / "state/registry.sqlite"

    def run(self, *words):
        return main([words[0], "--config", str(self.config), *words[1:]])


@pytest.fixture
def server(tmp_path):
    made = []

    def one(name):
        made.append(Server(tmp_path / name))
        return made[-1]

    yield one
    for each in made:
        each.influx.stop()


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A server with a probe, a trace, a result and records under two retention policies."""
    one = Server(tmp_path_factory.mktemp("measured") / "first")
    with Registry(one.registry) as registry:
        registry.probes.add("probe-1")
        digest, size, place = hashlib.sha256(CONTENT).hexdigest(), len(CONTENT), "probe-1/run/a.pcap"
        row = TraceRow("probe-1", "run/a.pcap", "r1", digest, size, 1, place, "identity", size)
        with registry._write() as connection:
            insert(connection, row)
    file = one.folder / "state/traces/probe-1/run/a.pcap"
    file.parent.mkdir(parents=True)
    file.write_bytes(CONTENT)
    (one.folder / "state/results/probe-1").mkdir(parents=True)
    (one.folder / "state/results/probe-1/r1.json").write_text("{}")
    with one.influx.client() as client:
        now = time.time_ns()
        assert client.write([f"radio,probe=probe-1 rsrp_dbm=-{90 + i} {now - i * 10**9}" for i in range(100)]) == []
        assert client.write([f"radio,probe=probe-1 rsrp_dbm=-90 {now}"], policy="minute") == []
    yield one
    one.influx.stop()


@pytest.fixture(scope="module")
def made_backup(measured, tmp_path_factory):
    folder = tmp_path_factory.mktemp("backup") / "kept"
    assert measured.run("backup", str(folder)) == 0
    return folder


@pytest.fixture
def kept(made_backup, tmp_path):
    """A backup of that server, and a copy of it for this test alone."""
    return the_backup(shutil.copytree(made_backup, tmp_path / "kept"))


def values(client, source="radio"):
    return [row[1] for series in client.query(f"SELECT rsrp_dbm FROM {source}") for row in series.rows]  # noqa: S608  (names of the test)


def the_backup(folder):
    (made,) = [path for path in folder.iterdir() if path.name != "traces"]
    return made


def test_what_was_backed_up_is_there_again(measured, server, tmp_path, capsys):
    also = tmp_path / "hub.key"
    also.write_text("made on the server\n")
    also.chmod(0o600)
    assert measured.run("backup", str(tmp_path / "kept"), "--also", str(also), "--also", str(tmp_path / "none")) == 0
    assert f"{tmp_path / 'none'}: not there" in capsys.readouterr().out
    also.write_text("another machine's\n")
    fresh = server("second")
    assert fresh.run("restore", str(the_backup(tmp_path / "kept"))) == 0
    with Registry(fresh.registry) as registry:
        assert [probe.name for probe in registry.probes.all()] == ["probe-1"]
    assert (fresh.folder / "state/traces/probe-1/run/a.pcap").read_bytes() == CONTENT
    assert (fresh.folder / "state/results/probe-1/r1.json").read_text() == "{}"
    assert also.read_text() == "made on the server\n"
    assert also.stat().st_mode & 0o777 == 0o600
    assert not (fresh.folder / "state/.restoring").exists()
    with measured.influx.client() as before, fresh.influx.client() as after:
        assert values(after) == values(before)
        assert len(values(after)) == 100
        assert values(after, "minute.radio") == [-90.0]
        assert after.write(["radio,probe=probe-1 rsrp_dbm=-1"]) == []
    with fresh.influx.client("reader") as reader:
        assert len(values(reader)) == 101


def test_a_server_that_has_something_is_left_alone(measured, server, kept, capsys):
    assert measured.run("restore", str(kept)) == 2
    assert "has probes" in capsys.readouterr().err
    fresh = server("second")
    with fresh.influx.client() as client:  # records alone are something
        assert client.write(["radio,probe=other rsrp_dbm=-1"]) == []
    assert fresh.run("restore", str(kept)) == 2
    assert "has records of probes" in capsys.readouterr().err
    with fresh.influx.client() as client:
        assert values(client) == [-1.0]


def test_what_is_not_as_it_was_is_told_of_and_an_interrupted_restoration_begun_anew(server, kept, capsys):
    fresh = server("second")
    listed, registry = kept / "backup.json", kept / "registry.sqlite"
    text, content = listed.read_text(), registry.read_bytes()
    for change in (
        {"format": "tandem-backup/9"},
        {"files": {"../../etc/passwd": {"bytes": 1, "sha256": ""}}},
        {"also": [{"file": "/etc/passwd", "path": "x", "owner": "root", "group": "root", "mode": 0}]},
        {"traces": None},
    ):
        listed.write_text(json.dumps(json.loads(text) | change))
        assert fresh.run("restore", str(kept)) == 2, change
        assert len(capsys.readouterr().err.splitlines()) == 1, change
    listed.write_text(text)
    registry.write_bytes(content[:200] + b"x" + content[201:])
    assert fresh.run("restore", str(kept)) == 2
    assert "not as it was backed up" in capsys.readouterr().err
    assert not fresh.registry.exists()
    registry.write_bytes(content)
    (fresh.folder / "state/.restoring").write_text(kept.name)
    with fresh.influx.client() as client:  # half of it, as an end in between leaves it
        assert client.write(["radio,probe=probe-1 rsrp_dbm=-1"]) == []
    assert fresh.run("restore", str(kept)) == 0
    with fresh.influx.client() as client:
        assert len(values(client)) == 100


def test_the_newest_are_kept_and_traces_once(measured, tmp_path, capsys):
    folder = tmp_path / "kept"
    assert measured.run("backup", str(folder), "--keep", "0") == 2
    assert "--keep 0; hint" in capsys.readouterr().err
    for name in ("20250101T000000Z", "20250102T000000Z"):
        (folder / name).mkdir(parents=True)
        (folder / name / "backup.json").write_text("{}")
    (folder / ".20250103T000000Z.tmp").mkdir()
    assert measured.run("backup", str(folder), "--keep", "2") == 0
    left = sorted(path.name for path in folder.iterdir())
    assert left[0] == "20250102T000000Z"
    assert left[2] == "traces"
    assert len(left) == 3
    assert (folder / "traces/probe-1/run/a.pcap").read_bytes() == CONTENT


# --- when a restored database is whole


@pytest.fixture
def sent():
    """A listener's port, and its end of a connection whose other end has sent all and gone."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(b"a shard")
        taker = listener.accept()[0]
        yield port, taker
        taker.close()


def test_a_connection_is_waited_for_until_the_listener_closed_it_and_one_that_never_ends_is_told(sent, monkeypatch):
    port, taker = sent
    assert taker.recv(100) == b"a shard"
    looks = []

    def pause(_):
        looks.append(open_connections(port))
        taker.close()

    with pytest.raises(EnvironmentLacks, match="hint: end what else uses it"):
        await_taken(f"127.0.0.1:{port}", within_s=0)
    monkeypatch.setattr("tandem_server.cli.backup.time.sleep", pause)
    await_taken(f"127.0.0.1:{port}")
    assert looks == [1]


def test_shards_without_points_do_not_count(tmp_path):
    for number, names in enumerate((["tandem/kept/1/000000001-000000001.tsm"], ["tandem/kept/2/fields.idx"], [])):
        with tarfile.open(tmp_path / f"20261122T000000Z.s{number}.tar.gz", "w:gz") as archive:
            for name in names:
                archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert shards_sent(tmp_path) == 1
    for name in ("kept/7/a.tsm", "kept/7/b.tsm", "minute/8/a.tsm", "minute/9/fields.idx"):
        file = tmp_path / "data/tandem" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    assert shards_taken(tmp_path, "tandem") == 2
    assert shards_taken(tmp_path, "other") == 0
