"""The client against a real InfluxDB, the private instance, and what a database is given beside its records."""

import contextlib
import http.server
import json
import socket
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.hostile_json import any_answer
from tandem_server.schema.rollups import ROLLUPS, resolution_query
from tandem_server.store import Influx, PrivateInflux, QueryError, StoreDown, StoreStartError, find_influxd
from tandem_server.store.influx import AnswerError, joined, read_parts
from tandem_server.store.preparing import (
    Kept,
    look,
    of_minutes,
    of_raw,
    prepare,
    prepare_reader,
    runs_continuous_queries,
)

NOW = 1_700_000_000 * 10**9


@pytest.fixture
def admin(private_influx):
    with private_influx.client("admin") as client:
        yield client


@pytest.fixture
def reader(private_influx):
    with private_influx.client("reader") as client:
        yield client


def test_preparing_again_mends_what_is_wrong(admin):
    try:
        admin.query('DROP SERIES FROM "resolution" WHERE "step" = \'1\'')
        assert look(admin).lacks == ["mapping"]
        prepare(admin, Kept(3650, 400, None))
        mended = look(admin)
        assert mended.mapping
        assert mended.policies == {"kept": "87600h0m0s", "minute": "9600h0m0s", "hour": "0s", "boards": "0s"}
    finally:
        prepare(admin, Kept())
    assert set(look(admin).policies.values()) == {"0s"}


def test_the_reader_learns_the_resolution_from_the_time_range(reader):
    to_ms = 1_790_000_000_000
    for seconds, resolution, rolled in [
        (300, "kept", "minute"),
        (3 * 3600, "kept", "minute"),
        (3 * 3600 + 2, "minute", "minute"),
        (7 * 86_400, "minute", "minute"),
        (8 * 86_400, "hour", "hour"),
        (10 * 365 * 86_400, "hour", "hour"),
    ]:
        for field, expected in (("resolution", resolution), ("rolled", rolled)):
            asked = resolution_query(field).replace("$__to", str(to_ms)).replace("$__from", str(to_ms - seconds * 1000))
            (series,) = reader.query(asked)
            assert series.column(field) == [expected], seconds


CHANGES = [
    'SELECT "rsrp_dbm" INTO "hour"."stolen" FROM "kept"."radio"',
    'DELETE FROM "radio"',
    'DROP MEASUREMENT "radio"',
    'DROP SERIES FROM "radio"',
    'DROP DATABASE "tandem"',
    'CREATE DATABASE "mine"',
    'CREATE RETENTION POLICY "mine" ON "tandem" DURATION 1d REPLICATION 1',
    'ALTER RETENTION POLICY "kept" ON "tandem" DURATION 1d',
    'DROP RETENTION POLICY "hour" ON "tandem"',
    "CREATE USER mine WITH PASSWORD 'mine' WITH ALL PRIVILEGES",
    "SET PASSWORD FOR admin = 'mine'",
    "SET PASSWORD FOR reader = 'mine'",
    "GRANT ALL ON tandem TO reader",
    "GRANT ALL PRIVILEGES TO reader",
    "DROP USER tandem",
    "SHOW USERS",
    "SHOW GRANTS FOR tandem",
    "DROP SHARD 1",
    "KILL QUERY 1",
    'CREATE SUBSCRIPTION "s" ON "tandem"."kept" DESTINATIONS ALL \'udp://127.0.0.1:9\'',
]


def test_the_reader_can_change_nothing_and_cannot_write(store, reader):
    store.write([f"radio,probe=seen,path=a rsrp_dbm=-90 {NOW}"])
    for statement in CHANGES:
        with pytest.raises((StoreDown, QueryError), match=r"not authorized|requires admin|error authorizing"):
            reader.query(statement)
        assert store.query('SELECT "rsrp_dbm" FROM "kept"."radio" WHERE "probe" = \'seen\''), statement
    for policy in (None, "kept", "minute", "hour", "boards"):
        with pytest.raises(StoreDown, match="403"):
            reader.write([f"stolen v=1 {NOW}"], policy=policy)
    assert store.query('SELECT * FROM "stolen"') == []


def test_a_reader_that_was_given_more_is_given_back_its_one_right_and_a_password_with_quotes_is_one(
    admin, private_influx
):
    password = (private_influx.folder / "reader.password").read_text().strip()
    try:
        prepare_reader(admin, 'it\'s \\ "so"')
        with Influx(private_influx.url, "tandem", "reader", 'it\'s \\ "so"') as reader:
            reader.query("SHOW MEASUREMENTS")
        admin.query("GRANT ALL ON tandem TO reader")
    finally:
        prepare_reader(admin, password)
    with private_influx.client("reader") as reader, pytest.raises(StoreDown, match="403"):
        reader.write([f"stolen v=1 {NOW}"])


def test_the_readers_password_is_made_anew_and_a_continuous_query_of_its_does_nothing_and_is_forgotten(
    influx_binary, tmp_path
):
    """InfluxDB 1.x lets who may only read make one, and would run it with the right to write: so none runs here."""
    query = (
        'CREATE CONTINUOUS QUERY "mine" ON "tandem" BEGIN SELECT mean("v") INTO "stolen" FROM "x" GROUP BY time(1s) END'
    )
    with PrivateInflux(influx_binary, tmp_path, 0) as database:
        old = (tmp_path / "reader.password").read_text()
        with database.client("reader") as reader:
            reader.query(query)
        with database.client("admin") as admin:
            assert not runs_continuous_queries(admin)
    (tmp_path / "reader.password").unlink()
    with PrivateInflux(influx_binary, tmp_path, 0) as database:
        with database.client("admin") as admin:
            assert [row for series in admin.query("SHOW CONTINUOUS QUERIES") for row in series.rows] == []
        with database.client("reader") as reader:
            reader.query("SHOW MEASUREMENTS")
        assert (tmp_path / "reader.password").read_text() != old


def test_every_statement_is_understood(store):
    """Each name and function of the table, by the database itself; with no record of that time there is nothing to write."""
    statements = [of_minutes(measurement, "tandem", 0, 7200) for measurement in ROLLUPS]
    for measurement in ROLLUPS:
        for step in ("minute", "hour"):
            statements += of_raw(measurement, step, "tandem", 0, 7200, "it's \\ one")
    for statement in statements:
        assert [row[1] for series in store.query(statement) for row in series.rows] == [0], statement


def test_big_answers_come_whole(store):
    lines = [f"big,k=x v={i} {NOW + i}" for i in range(25_000)]
    assert store.write(lines) == []
    (series,) = store.query('SELECT "v" FROM "big"')
    assert series.column("v") == list(range(25_000))


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


def test_it_listens_on_loopback_only_and_lets_nobody_in_without_a_password_that_is_its_owners_only(private_influx):
    assert listeners(private_influx.pid) == ["0100007F"] * 2
    for user, password in (("", ""), ("admin", ""), ("admin", "admin")):
        with Influx(private_influx.url, "tandem", user, password) as client, pytest.raises(StoreDown, match="401"):
            client.query("SHOW DATABASES")
    for name in ("admin.password", "tandem.password", "reader.password"):
        assert stat.S_IMODE((private_influx.folder / name).stat().st_mode) == 0o600
    assert stat.S_IMODE(private_influx.folder.stat().st_mode) == 0o700


def test_the_everyday_account_has_its_own_database_only(store):
    store.write([f"mine v=1 {NOW}"])
    with pytest.raises(StoreDown, match="403"):
        store.query("CREATE DATABASE other")


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


def test_what_stops_the_start_is_told_in_one_line(influx_binary, tmp_path, monkeypatch):
    program = tmp_path / "influxd"

    def refused(binary, why):
        with pytest.raises(StoreStartError, match=why):
            PrivateInflux(binary, tmp_path / "data", 0).start()

    refused(program, "is no program; hint: ")
    monkeypatch.setenv("TANDEM_INFLUXD", str(program))
    with pytest.raises(StoreStartError, match="TANDEM_INFLUXD names"):
        find_influxd()
    program.write_text("#!/bin/sh\necho 'panic: listen tcp: bind: address already in use' >&2\nexit 1\n")
    program.chmod(0o755)
    refused(program, r"ended at its start .*: port [0-9]+ on loopback is in use")
    monkeypatch.setattr("tandem_server.store.private.LEAST_FREE_BYTES", 2**62)
    refused(influx_binary, r"disk full .* hint: free")


def test_a_free_port_that_another_takes_first_is_given_up_for_another(influx_binary, tmp_path):
    program, there = tmp_path / "influxd", tmp_path / "there"
    taken = (
        f"[ -e {there} ] || {{ touch {there}; echo 'panic: listen tcp: bind: address already in use' >&2; exit 1; }}"
    )
    program.write_text(f'#!/bin/sh\n{taken}\nexec {influx_binary} "$@"\n')
    program.chmod(0o755)
    private = PrivateInflux(program, tmp_path / "data", 0)
    first = private.port
    with private:
        assert there.exists()
        assert private.port != first
        with private.client() as client:
            assert client.query("SHOW MEASUREMENTS")


def test_a_port_in_use_is_told_in_one_line_and_a_backup_port_is_kept(influx_binary, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StoreStartError, match=f"port {port} on loopback is in use; hint: ") as told:
            PrivateInflux(influx_binary, tmp_path, port).start()
        assert "\n" not in str(told.value)
        database = PrivateInflux(influx_binary, tmp_path, 0, backup_port=port)
        with pytest.raises(StoreStartError, match=rf"port {port} on loopback is in use; hint: .*\[store\] backup_port"):
            database.start()
    for _ in range(2):
        with database, socket.create_connection(("127.0.0.1", port)):
            assert f'bind-address = "127.0.0.1:{port}"' in (tmp_path / "influxd.conf").read_text()


def count(store, measurement):
    answer = store.query(f'SELECT count("v") FROM "{measurement}"')  # noqa: S608  (a name made by these tests)
    return answer[0].rows[0][1] if answer else 0


def test_points_come_back_with_their_times_in_ns_once_however_often_they_are_written(store):
    for _ in range(3):
        store.write([f'one,path=a v=1.5,n=2i,ok=true,s="x \\"y\\"" {NOW + 1}', f"one,path=b v=2 {NOW + 2}"])
    (a, b) = store.query('SELECT * FROM "one" GROUP BY "path"')
    assert (a.name, a.tags, a.columns[0]) == ("one", {"path": "a"}, "time")
    assert a.column("time") == [NOW + 1]
    assert (a.column("v"), a.column("n"), a.column("ok"), a.column("s")) == ([1.5], [2], [True], ['x "y"'])
    assert (b.column("v"), b.column("n")) == ([2], [None])
    with pytest.raises(KeyError):
        a.column("w")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(bad=st.sets(st.integers(0, 39), max_size=40))
def test_whatever_is_bad_is_found(store, bad):
    name = f"found{time.monotonic_ns()}"
    lines = [f"{name} v= {i}" if i in bad else f"{name} v={i} {NOW + i}" for i in range(40)]
    assert {one.index for one in store.write(lines)} == bad
    assert count(store, name) == 40 - len(bad)


def test_an_answer_is_handed_on_while_it_is_sent(grumpy):
    """The database sends its second piece when the first one was read here: whoever waited for the whole answer would never get it."""
    series = {"name": "m", "tags": {"k": "x"}, "columns": ["time", "v"], "values": [[1, 2]] * 9}
    piece = json.dumps({"results": [{"series": [series]}]}).encode() + b"\n"
    Grumpy.lines, Grumpy.more = [piece] * 3, threading.Semaphore(1)
    with Influx(f"http://127.0.0.1:{grumpy.server_port}", "tandem", "u", "p", timeout_s=60.0) as client:
        parts = client.parts('SELECT "v" FROM "m"')
        for _ in range(3):
            assert next(parts).rows == [[1, 2]] * 9
            Grumpy.more.release()
        assert list(parts) == []
        for _ in range(12):
            Grumpy.more.release()
        (series,) = client.query('SELECT "v" FROM "m"')
        assert len(series.rows) == 27
        next(client.parts('SELECT "v" FROM "m"'))  # the rest is not wanted; the client is still good
        assert len(client.query('SELECT "v" FROM "m"')[0].rows) == 27


def test_placeholders_keep_values_out_of_the_statement(store):
    store.write([f"safe,k=it's v=1 {NOW}"])
    assert store.query('SELECT "v" FROM "safe" WHERE "k" = $k', {"k": "it's"})[0].column("v") == [1]
    assert store.query('SELECT "v" FROM "safe" WHERE "k" = $k', {"k": "x' OR 'a'='a"}) == []


def test_a_wrong_statement_is_told_from_a_database_that_is_down(store, private_influx):
    with pytest.raises(QueryError, match="expected"):
        store.query("SELECT nonsense")
    with pytest.raises(QueryError, match="undefined function"):
        store.query('SELECT nothing("v") + mean() FROM "one"')
    with pytest.raises(StoreDown, match="does not answer"):
        Influx("http://127.0.0.1:1", "tandem", "u", "p").write([f"x v=1 {NOW}"])
    password = (private_influx.folder / "tandem.password").read_text().strip()
    for database, login, status in (("tandem", "wrong", "401"), ("elsewhere", password, "403|404")):
        with Influx(private_influx.url, database, "tandem", login) as client, pytest.raises(StoreDown, match=status):
            client.write([f"x v=1 {NOW}"])


class Grumpy(http.server.BaseHTTPRequestHandler):
    """Answers every write with one status and body, and counts."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    status, body, asked = 400, b"", 0
    lines, more = (), threading.Semaphore()

    def do_POST(self):
        type(self).asked += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.lines:
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for line in [*self.lines, b""]:
                self.more.acquire()
                with contextlib.suppress(OSError):
                    self.wfile.write(b"%x\r\n%b\r\n" % (len(line), line))
            return
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_):
        pass


@pytest.fixture
def grumpy():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Grumpy)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    Grumpy.asked, Grumpy.lines = 0, ()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_no_line_is_given_up_for_a_fault_of_the_database_and_none_is_asked_for_ever(grumpy):
    with Influx(f"http://127.0.0.1:{grumpy.server_port}", "tandem", "u", "p") as client:
        for number, (Grumpy.status, Grumpy.body) in enumerate(
            [
                (400, b'{"error":"database is required"}'),
                (500, b'{"error":"engine: no space left on device"}'),
                (503, b"busy"),
                (404, b'{"error":"database not found"}'),
            ]
        ):
            with pytest.raises(StoreDown):
                client.write(["a v=1 1", "b v=2 2"])
            assert Grumpy.asked == number + 1
        Grumpy.status, Grumpy.body, Grumpy.asked = 400, b'{"error":"partial write: odd"}', 0
        assert len(client.write([f"a v=1 {i}" for i in range(64)])) == 64
        assert Grumpy.asked == 127


def test_a_connection_closed_while_idle_is_opened_again(private_influx):
    with private_influx.client() as client:
        client.ping()
        for connection in client._link._idle:
            connection.sock.shutdown(2)
        assert client.write([f"reopened v=1 {NOW}"]) == []


@given(st.lists(st.binary(max_size=40) | any_answer(), max_size=3))
def test_any_answer_is_read_or_refused(documents):
    with contextlib.suppress(AnswerError):
        for series in joined(read_parts(documents)):
            assert all(len(row) == len(series.columns) for row in series.rows)
