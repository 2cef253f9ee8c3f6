"""When a restored database is whole; and tandem-server check: the file as the services read it, nothing started."""

import io
import socket
import tarfile

import pytest

from tandem_server.cli.backup import await_taken, open_connections, shards_sent, shards_taken
from tandem_server.cli.command import EnvironmentLacks
from tandem_server.cli.main import main


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


def test_a_connection_counts_until_the_listener_closed_it(sent):
    port, taker = sent
    assert (open_connections(port), taker.recv(100), open_connections(port)) == (1, b"a shard", 1)
    taker.close()
    assert open_connections(port) == 0


def test_it_is_waited_for_and_one_that_never_ends_is_told(sent, monkeypatch):
    port, taker = sent
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


def test_a_right_file_is_right_and_a_wrong_key_is_one_line_with_its_place(tmp_path, capsys):
    file = tmp_path / "server.toml"
    file.write_text("[listen]\ngateway_port = 9443\n")
    assert main(["check", "--config", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: right\n"
    assert sorted(tmp_path.iterdir()) == [file]
    file.write_text("[listen]\nport = 9443\n")
    assert main(["check", "--config", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{file}:2: unknown key 'port'" in line
    assert "hint: " in line
