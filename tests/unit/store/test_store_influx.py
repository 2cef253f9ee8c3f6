"""The client against a real InfluxDB: each good line is in, each bad one is named."""

import contextlib
import http.server
import json
import threading
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandem_server.store import Influx, QueryError, StoreDown
from tandem_server.store.series import AnswerError, joined, read_parts

NOW = 1_700_000_000 * 10**9


def count(store, measurement):
    answer = store.query(f'SELECT count("v") FROM "{measurement}"')  # noqa: S608  (a name made by these tests)
    return answer[0].rows[0][1] if answer else 0


def test_points_come_back_with_their_times_in_ns(store):
    store.write([f'one,path=a v=1.5,n=2i,ok=true,s="x \\"y\\"" {NOW + 1}', f"one,path=b v=2 {NOW + 2}"])
    (a, b) = store.query('SELECT * FROM "one" GROUP BY "path"')
    assert (a.name, a.tags, a.columns[0]) == ("one", {"path": "a"}, "time")
    assert a.column("time") == [NOW + 1]
    assert (a.column("v"), a.column("n"), a.column("ok"), a.column("s")) == ([1.5], [2], [True], ['x "y"'])
    assert (b.column("v"), b.column("n")) == ([2], [None])
    with pytest.raises(KeyError):
        a.column("w")


def test_writing_again_is_the_same_point(store):
    for _ in range(3):
        assert store.write([f"again v=1 {NOW}"]) == []
    assert count(store, "again") == 1


def test_bad_lines_are_named_and_all_others_are_in(store):
    lines = [f"mixed,k=a v={i} {NOW + i}" for i in range(1000)]
    lines[0] = "no line protocol"
    lines[499] = f'mixed,k=a v="text" {NOW + 499}'
    lines[500] = f"mixed,k= v=1 {NOW}"
    lines[999] = "mixed v=NaN"
    rejected = store.write(lines)
    assert [one.index for one in rejected] == [0, 499, 500, 999]
    assert all(one.reason for one in rejected)
    assert "field type conflict" in rejected[1].reason
    assert count(store, "mixed") == 996


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(bad=st.sets(st.integers(0, 39), max_size=40))
def test_whatever_is_bad_is_found(store, bad):
    name = f"found{time.monotonic_ns()}"
    lines = [f"{name} v= {i}" if i in bad else f"{name} v={i} {NOW + i}" for i in range(40)]
    assert {one.index for one in store.write(lines)} == bad
    assert count(store, name) == 40 - len(bad)


def test_big_answers_come_whole(store):
    lines = [f"big,k=x v={i} {NOW + i}" for i in range(25_000)]
    assert store.write(lines) == []
    (series,) = store.query('SELECT "v" FROM "big"')
    assert series.column("v") == list(range(25_000))


def test_an_answer_is_handed_on_while_it_is_sent(grumpy):
    """The database sends its second piece when the first one was read here: whoever waited for the whole answer would never get it."""
    piece = {
        "results": [{"series": [{"name": "m", "tags": {"k": "x"}, "columns": ["time", "v"], "values": [[1, 2]] * 9}]}]
    }
    Grumpy.lines, Grumpy.more = [json.dumps(piece).encode() + b"\n"] * 3, threading.Semaphore(1)
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
    client = private_influx.client()
    client.ping()
    for connection in client._link._idle:
        connection.sock.shutdown(2)
    assert client.write([f"reopened v=1 {NOW}"]) == []
    client.close()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["results", "series", "values", "columns", "tags", "name", "error", "x"]), inner, max_size=5
        )
    ),
    max_leaves=20,
)


@given(st.lists(st.one_of(st.binary(max_size=40), JSON.map(lambda v: json.dumps(v).encode())), max_size=3))
def test_any_answer_is_read_or_refused(documents):
    with contextlib.suppress(AnswerError):
        for series in joined(read_parts(documents)):
            assert all(len(row) == len(series.columns) for row in series.rows)
