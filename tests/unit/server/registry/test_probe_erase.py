"""``tandem-server probe erase`` against a real InfluxDB and a registry with a row in every table: one name goes, the other is whole."""

import json
import sqlite3
import time

import pytest

from tandem_server.cli.main import main
from tandem_server.registry import NotErasableError
from tandem_server.registry.database import Registry

GONE, KEPT = "kit-01b", "kit-02a"
NOW = time.time_ns()
STAYS = {"probes"}
"""The name itself, revoked, so that nobody gets it again."""
FILES = {"traces": b"trace", "captures": b"packets", "results": b"{}"}


@pytest.fixture
def server(tmp_path, private_influx):
    """Something of both names at every place; ``GONE`` is revoked."""
    store = private_influx.folder
    (tmp_path / "server.toml").write_text(
        f'[store]\nkind = "running"\nurl = "{private_influx.url}"\nuser = "tandem"\npassword_file = "{store}/tandem.password"\n'
    )
    with Registry(tmp_path / "registry.sqlite") as registry:
        for name in (GONE, KEPT):
            registry.probes.add(name)
        registry.probes.revoke(GONE)
    fill(tmp_path / "registry.sqlite")
    with private_influx.client() as client:
        for name in (GONE, KEPT):
            lines = [f"radio,probe={name},path=a seq={i}i {NOW - i * 10**9}" for i in range(50)]
            assert client.write([*lines, f"event,probe={name},kind=handover seq=1i {NOW}"]) == []
            assert client.write([f"radio,probe={name},path=a rsrp_dbm_mean=-90 {NOW}"], "minute") == []
    for place, content in FILES.items():
        for name in (GONE, KEPT):
            (tmp_path / place / name / "run").mkdir(parents=True)
            (tmp_path / place / name / "run" / "file").write_bytes(content)
    return tmp_path


def fill(file):
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = OFF")
    for table in tables(connection):
        columns = connection.execute(f"PRAGMA table_info({table})").fetchall()
        if table != "probes" and {"probe", "run"} & {column[1] for column in columns}:
            for name in (GONE, KEPT):
                values = [value(column[1], column[2], name) for column in columns]
                marks = ",".join("?" * len(values))
                connection.execute(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", values)  # noqa: S608  its own names
    connection.close()


def tables(connection):
    return [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]


def value(column, kind, name):
    if column == "probe":
        return name
    if column in ("id", "run"):
        return f"run-of-{name}"
    return {"INTEGER": 1, "BLOB": name.encode(), "REAL": 1.0}.get(kind, name)


def rows(file, name):
    """By table, rows in which the name stands anywhere."""
    with sqlite3.connect(file) as connection:
        return {
            table: sum(
                any(name in (v.decode(errors="replace") if isinstance(v, bytes) else str(v)) for v in row)
                for row in connection.execute(f"SELECT * FROM {table}")  # noqa: S608  its own names
            )
            for table in tables(connection)
        }


def erase(server, *options, name=GONE):
    return main(["probe", "erase", name, "--config", str(server / "server.toml"), *options])


def series(private_influx, name):
    found = {}
    with private_influx.client() as client:
        for policy in ("kept", "minute"):
            for one in client.query(f'SELECT * FROM "{policy}"./.*/ WHERE "probe" = \'{name}\''):  # noqa: S608
                found[policy, one.name] = len(one.rows)
    return found


def test_one_name_is_gone_everywhere_and_the_other_is_whole(server, private_influx, capsys):
    registry = server / "registry.sqlite"
    before, points = rows(registry, KEPT), series(private_influx, KEPT)
    assert sum(before.values()) > 12
    assert points == {("kept", "radio"): 50, ("kept", "event"): 1, ("minute", "radio"): 1}
    assert erase(server, "--yes", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["probe"], told["erased"]) == (GONE, True)
    assert told["found"]["measurements"] == 2
    assert set(told["found"]["registry"]) == {t for t, n in before.items() if n} - STAYS
    assert {place: told["found"][place] for place in FILES} == {
        p: {"files": 1, "bytes": len(c)} for p, c in FILES.items()
    }
    empty = {"files": 0, "bytes": 0}
    assert told["left"] == {"registry": {}, "measurements": 0, "traces": empty, "captures": empty, "results": empty}
    assert {table for table, count in rows(registry, GONE).items() if count} <= STAYS
    assert series(private_influx, GONE) == {}
    assert [place for place in FILES if (server / place / GONE).exists()] == []
    assert (rows(registry, KEPT), series(private_influx, KEPT)) == (before, points)
    assert all((server / place / KEPT / "run" / "file").read_bytes() == content for place, content in FILES.items())
    with sqlite3.connect(registry) as connection:
        assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
    # Not in free pages either: only the name itself, in the table of probes.
    assert registry.read_bytes().count(f"run-of-{GONE}".encode()) == 0


def test_without_yes_it_only_tells_and_with_yes_a_second_time_nothing_is_left_to_do(server, private_influx, capsys):
    before = rows(server / "registry.sqlite", GONE), series(private_influx, GONE)
    assert erase(server) == 0
    told = capsys.readouterr().out
    assert "this would be erased" in told
    assert "--yes" in told
    assert (rows(server / "registry.sqlite", GONE), series(private_influx, GONE)) == before
    for _ in range(2):
        assert erase(server, "--yes") == 0
    assert "0 rows\n" in capsys.readouterr().out


def test_who_may_still_send_and_who_is_not_known_is_refused(server, capsys):
    for name, mend in ((KEPT, f"revoke {KEPT}"), ("nobody", "probe list")):
        assert erase(server, "--yes", name=name) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert mend in line
    with Registry(server / "registry.sqlite") as registry:
        registry.probes.rotate(GONE)  # a revocation that was lifted meanwhile
        with pytest.raises(NotErasableError, match="revoke"):
            registry.erasure.erase(GONE)
    assert [rows(server / "registry.sqlite", name)["runs"] for name in (KEPT, GONE)] == [1, 1]


def test_a_database_that_does_not_answer_is_told_and_nothing_is_erased(server, private_influx, capsys):
    text = (server / "server.toml").read_text()
    (server / "server.toml").write_text(text.replace(private_influx.url, "http://127.0.0.1:1"))
    assert erase(server, "--yes") == 3
    assert "hint: " in capsys.readouterr().err
    assert rows(server / "registry.sqlite", GONE)["runs"] == 1
    assert (server / "traces" / GONE).exists()


def test_what_comes_back_is_told(server, capsys, monkeypatch):
    monkeypatch.setattr("tandem_server.store.influx.Influx.erase", lambda *_: None)
    assert erase(server, "--yes") == 1
    assert "this is left" in capsys.readouterr().err
