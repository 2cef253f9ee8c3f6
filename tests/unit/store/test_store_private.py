"""The private instance: loopback only, with accounts, and one clear line when it cannot start."""

import socket
import stat
from pathlib import Path

import pytest

from tandem_server.store import Influx, PrivateInflux, StoreDown, StoreStartError, find_influxd
from tandem_server.store.preparing import Kept

NOW = 1_700_000_000 * 10**9


def listeners(pid):
    """Addresses, as hex, on which the process listens."""
    sockets = {Path(f"/proc/{pid}/fd/{fd.name}").readlink().name for fd in Path(f"/proc/{pid}/fd").iterdir()}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and f"socket:[{columns[9]}]" in sockets:
                found.append(columns[1].split(":")[0])
    return found


def test_it_listens_on_loopback_only(private_influx):
    found = listeners(private_influx.pid)
    assert len(found) == 2
    assert set(found) == {"0100007F"}


def test_nobody_gets_in_without_a_password(private_influx):
    for user, password in (("", ""), ("admin", ""), ("admin", "admin")):
        with Influx(private_influx.url, "tandem", user, password) as client, pytest.raises(StoreDown, match="401"):
            client.query("SHOW DATABASES")


def test_the_everyday_account_has_its_own_database_only(store):
    store.write([f"mine v=1 {NOW}"])
    with pytest.raises(StoreDown, match="403"):
        store.query("CREATE DATABASE other")


def test_passwords_are_the_owners_only(private_influx):
    for name in ("admin.password", "tandem.password", "reader.password"):
        assert stat.S_IMODE((private_influx.folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(private_influx.folder.stat().st_mode) == 0o700


def test_points_and_accounts_survive_a_restart_and_lost_passwords_are_made_anew_or_told(influx_binary, tmp_path):
    folder = tmp_path / "influx"
    for turn in range(3):
        with PrivateInflux(influx_binary, folder, 0, kept=Kept(3650)) as database, database.client() as client:
            assert client.write([f"kept v={turn} {NOW + turn}"]) == []
            (series,) = client.query('SELECT "v" FROM "kept"')
            assert series.column("v") == list(range(turn + 1))
            assert client.query("SHOW RETENTION POLICIES")[0].rows[0][:2] == ["kept", "87600h0m0s"]
        assert database.pid is None
        if turn == 1:
            (folder / "tandem.password").unlink()
    (folder / "admin.password").unlink()
    with pytest.raises(StoreStartError, match=r"password files back, or start with an empty folder\Z"):
        PrivateInflux(influx_binary, folder, 0).start()


def test_a_missing_binary_is_told_in_one_line(tmp_path, monkeypatch):
    with pytest.raises(StoreStartError, match="is no program; mend: "):
        PrivateInflux(tmp_path / "influxd", tmp_path, 0).start()
    monkeypatch.setenv("TANDEM_INFLUXD", str(tmp_path / "influxd"))
    with pytest.raises(StoreStartError, match="TANDEM_INFLUXD names"):
        find_influxd()


def test_a_program_that_is_no_influxd_is_told_in_one_line(tmp_path):
    false = tmp_path / "influxd"
    false.write_text("#!/bin/sh\necho 'panic: listen tcp: bind: address already in use' >&2\nexit 1\n")
    false.chmod(0o755)
    with pytest.raises(StoreStartError, match=r"ended at its start .*: port [0-9]+ on loopback is in use"):
        PrivateInflux(false, tmp_path / "data", 0).start()


def test_a_full_disk_is_told_in_one_line(influx_binary, tmp_path, monkeypatch):
    monkeypatch.setattr("tandem_server.store.private.LEAST_FREE_BYTES", 2**62)
    with pytest.raises(StoreStartError, match=r"disk full .* mend: free"):
        PrivateInflux(influx_binary, tmp_path, 0).start()


def test_a_port_in_use_is_told_in_one_line_and_a_backup_port_is_kept(influx_binary, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreStartError, match=f"port {port} on loopback is in use; mend: ") as told:
            PrivateInflux(influx_binary, tmp_path, port).start()
        assert "\n" not in str(told.value)
        database = PrivateInflux(influx_binary, tmp_path, 0, backup_port=port)
        with pytest.raises(StoreStartError, match=rf"port {port} on loopback is in use; mend: .*\[store\] backup_port"):
            database.start()
    for _ in range(2):
        with database, socket.create_connection(("127.0.0.1", port)):
            assert f'bind-address = "127.0.0.1:{port}"' in (tmp_path / "influxd.conf").read_text()
