"""What an InfluxDB 2.x is asked, byte for byte, and what is made of its documented answers.

No InfluxDB 2.x is in the distribution, so a stand-in answers here: it shows that these requests are the documented ones (paths,
query, headers, encoding), not that a real 2.x takes them.
"""

import gzip
import http.server
import json
import threading
from urllib.parse import parse_qs, urlsplit

import pytest

from tandem_server.store import Influx2, LinesRefused, StoreDown

LINES = [f"health,boot=b mobile=true,monotonic_ns=1i,seq={i}i {1_800_000_000_000_000_000 + i}" for i in range(1, 9)]
WRITE = "/api/v2/write?org=lab+%C3%BC&bucket=tandem&precision=ns"


class StandIn(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        length = int(self.headers.get("Content-Length", 0))
        seen = (self.command, self.path, dict(self.headers), self.rfile.read(length))
        self.server.seen.append(seen)
        status, headers, body = self.server.script(seen)
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer  # noqa: N815  (the base class's names)

    def log_message(self, *_):
        pass


@pytest.fixture(params=["127.0.0.1", "127.0.0.2"])
def stand_in(request):
    """On an address that counts as this machine, and on one that counts as another."""
    server = http.server.ThreadingHTTPServer((request.param, 0), StandIn)
    server.daemon_threads, server.seen = True, []
    server.script = lambda _: (204, {}, b"")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    server.url = f"http://{request.param}:{server.server_address[1]}"
    server.store = Influx2(server.url, "lab ü", "tandem", "t0ken==")
    yield server
    server.store.close()
    server.shutdown()
    thread.join()
    server.server_close()


def text(seen):
    return (gzip.decompress(seen[3]) if seen[2].get("Content-Encoding") == "gzip" else seen[3]).decode()


def told(code, message, headers=None):
    status = {"invalid": 400, "unprocessable entity": 422, "unauthorized": 401, "not found": 404}.get(code, code)
    body = json.dumps({"code": code, "message": message}).encode()
    return status, {"Content-Type": "application/json", **(headers or {})}, body


def test_a_write(stand_in):
    assert stand_in.store.write(LINES) == []
    ((method, path, headers, _),) = stand_in.seen
    assert (method, path) == ("POST", WRITE)
    assert headers["Authorization"] == "Token t0ken=="
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert headers.get("Content-Encoding") == (None if "127.0.0.1" in stand_in.url else "gzip")
    assert text(stand_in.seen[0]) == "\n".join(LINES)


@pytest.mark.parametrize(
    "refusal",
    [
        told("invalid", "unable to parse 'health ...': missing fields"),
        told(
            "unprocessable entity",
            'failure writing points to database: partial write: field type conflict: input field "mobile" on measurement "health" is type'
            " boolean, already exists as type float dropped=1",
        ),
        told(
            "unprocessable entity",
            "failure writing points to database: partial write: points beyond retention policy dropped=1",
        ),
        (413, {}, b'{"code":"request too large","message":"unable to read data: points batch is too large"}'),
    ],
    ids=["400 parse", "422 type", "422 retention", "413"],
)
def test_a_bad_line_is_found_and_the_others_are_sent(stand_in, refusal):
    stand_in.script = lambda seen: refusal if LINES[5] in text(seen) else (204, {}, b"")
    assert [one.index for one in stand_in.store.write(LINES)] == [5]
    taken = [line for seen in stand_in.seen for line in text(seen).split("\n") if LINES[5] not in text(seen)]
    assert sorted(taken) == sorted(line for line in LINES if line != LINES[5])


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (told("unauthorized", "unauthorized access"), StoreDown),
        (told("not found", 'bucket "tandem" not found'), StoreDown),
        (told(429, "org lab has exceeded limited_write plan limit", {"Retry-After": "30"}), StoreDown),
        (told(500, "internal error"), StoreDown),
        (told(503, "unexpected error writing points to database: timeout", {"Retry-After": "10"}), StoreDown),
        (told("invalid", "something that names no line"), LinesRefused),
        ((200, {}, b"<html>a captive portal</html>"), StoreDown),
    ],
    ids=["401", "404", "429", "500", "503", "400 of another kind", "200"],
)
def test_nothing_is_given_up_or_counted_as_stored_for_another_reason(stand_in, answer, kind):
    stand_in.script = lambda _: answer
    with pytest.raises(StoreDown) as raised:
        stand_in.store.write(LINES)
    assert type(raised.value) is kind
    assert len(stand_in.seen) == 1


def test_a_query_is_influxql_over_the_compatible_endpoint(stand_in):
    body = b'{"results":[{"statement_id":0,"series":[{"name":"health","columns":["time","seq"],"values":[[5,1]]}]}]}\n'
    stand_in.script = lambda _: (200, {"Content-Type": "application/json"}, body)
    (series,) = stand_in.store.query('SELECT "seq" FROM "health" WHERE "probe" = $probe', {"probe": "p"})
    assert (series.column("time"), series.column("seq")) == ([5], [1])
    ((method, path, headers, form),) = stand_in.seen
    assert (method, urlsplit(path).path, headers["Authorization"]) == ("POST", "/query", "Token t0ken==")
    asked = {key: value for key, (value,) in parse_qs(form.decode()).items()}
    assert (asked["db"], asked["epoch"]) == ("tandem", "ns")
    assert asked["q"] == 'SELECT "seq" FROM "health" WHERE "probe" = $probe'
    assert json.loads(asked["params"]) == {"probe": "p"}


def test_a_ping(stand_in):
    stand_in.script = lambda _: (204, {"X-Influxdb-Version": "v2.7.11"}, b"")
    assert stand_in.store.ping() == "v2.7.11"
    assert stand_in.seen[0][:2] == ("GET", "/ping")


def test_a_probe_is_erased_by_a_delete_over_all_time(stand_in):
    stand_in.store.erase("kit-01b")
    ((method, path, headers, body),) = stand_in.seen
    assert (method, path) == ("POST", WRITE.replace("/write?", "/delete?").replace("&precision=ns", ""))
    assert headers["Content-Type"] == "application/json"
    asked = json.loads(body)
    assert asked["predicate"] == 'probe="kit-01b"'
    assert (asked["start"], asked["stop"]) == ("1970-01-01T00:00:00Z", "2262-01-01T00:00:00Z")
    stand_in.script = lambda _: told("unauthorized", "unauthorized access")
    with pytest.raises(StoreDown, match="401"):
        stand_in.store.erase("kit-01b")
