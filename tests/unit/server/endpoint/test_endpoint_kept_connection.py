"""DASH content and stored pages over one kept connection: what is served, what is refused, what is counted."""

import re
import socket
import ssl
from dataclasses import replace

import pytest
from endpoint_on_loopback import Endpoint, head, read_kept
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.content.library import Library
from tandem_server.content.page import Captured, PageStore, write
from tandem_server.content.presentation import LADDER, build_synthetic
from tandem_server.endpoint.kept_connection import Ended, _read
from tandem_server.endpoint.sessions import Limits

SEGMENT = "/v1/content/film/6s/v3/00002.m4s"


HTML = (("Content-Type", "text/html"),)
OBJECTS = (
    Captured("GET", "http://www.a.test/", 200, HTML, b"<html>" * 1000),
    Captured("GET", "http://cdn.a.test/x.js?v=1", 200, (("content-encoding", "br"), ("X-Own", "é")), b"x" * 3000),
    Captured("GET", "http://www.a.test/moved", 302, (("Location", "/"),), b""),
    Captured("GET", "http://www.a.test/none", 204, (), b""),
    Captured("PUT", "http://api.a.test/put", 200, (), b"done"),
)


@pytest.fixture
def endpoint(registry, tmp_path):
    (tmp_path / "film").mkdir()
    build_synthetic(tmp_path / "film", 30, (6,), 1, LADDER[:5])
    (tmp_path / "film" / "real.mp4").write_bytes(bytes(range(100)))
    for name in ("http", "https"):
        (tmp_path / name).mkdir()
        write(tmp_path / name, [replace(one, url=one.url.replace("http:", f"{name}:")) for one in OBJECTS], {}, {})
    made = Endpoint(registry, Limits(), content=Library(tmp_path), pages=PageStore(tmp_path))
    yield made
    made.stop()


class Client:
    def __init__(self, endpoint, session, kind="tcp"):
        self.socket, self.session = endpoint.connect(kind), session
        self.file = self.socket.makefile("rb")

    def get(self, target, *lines, method="GET"):
        self.socket.sendall(head(method, target, self.session, *lines))
        return read_kept(self.file)

    def ended(self):
        return self.file.read() == b""

    def close(self):
        self.file.close()
        self.socket.close()


@pytest.fixture
def client(endpoint):
    made = Client(endpoint, endpoint.session().id)
    yield made
    made.close()


def test_many_requests_over_one_connection_are_one_summary(endpoint):
    session = endpoint.session()
    client = Client(endpoint, session.id, "mptcp")
    status, headers, manifest = client.get("/v1/content/film/6s-number.mpd")
    assert (status, headers["content-type"]) == (200, "application/dash+xml")
    assert manifest.startswith(b"<?xml")
    sizes = [len(client.get(f"/v1/content/film/6s/v4/{n:05d}.m4s")[2]) for n in range(1, 6)]
    assert sum(sizes) == pytest.approx(1_500_000 * 30 / 8, abs=10)
    client.close()
    summary = endpoint.ended(session)
    assert summary["requests"] == 6
    assert summary["bytes_sent"] == len(manifest) + sum(sizes) == session.used_bytes
    assert summary["bytes_acked"] == summary["bytes_sent"]
    assert summary["end"] == "complete"
    assert summary["request"].startswith("GET /v1/content/film/6s-number.mpd")


def test_ranges_and_that_what_is_not_there_ends_nothing(client):
    for asked, status, told, body in [
        ("bytes=0-9", 206, "bytes 0-9/100", bytes(range(10))),
        ("bytes=90-", 206, "bytes 90-99/100", bytes(range(90, 100))),
        ("bytes=95-500", 206, "bytes 95-99/100", bytes(range(95, 100))),
        ("bytes=-3", 206, "bytes 97-99/100", bytes((97, 98, 99))),
        ("bytes=-300", 206, "bytes 0-99/100", bytes(range(100))),
        ("bytes=0-1,5-6", 200, None, bytes(range(100))),
        ("lines=1-2", 200, None, bytes(range(100))),
    ]:
        found = client.get("/v1/content/film/real.mp4", f"Range: {asked}")
        assert (found[0], found[1].get("content-range"), found[2]) == (status, told, body), asked
    for asked in ("bytes=100-", "bytes=9-5", "bytes=-0"):
        assert client.get("/v1/content/film/real.mp4", f"Range: {asked}")[0] == 416, asked
    assert client.get("/v1/content/film/no.mpd")[0] == 404
    assert client.get("/v1/content/film/../film/real.mp4")[0] == 404
    assert client.get("/v1/content/film/real.mp4")[0] == 200


def test_only_content_of_the_same_session_follows_content(endpoint):
    opened, other = endpoint.session().id, endpoint.session().id
    for session, target, headers, status in [
        ("none", SEGMENT, [], 403),
        (other, SEGMENT, [], 403),
        (opened, "/v1/download?bytes=5", [], 405),
        (opened, "/v1/whoami", [], 405),
        (opened, SEGMENT, ["Connection: close"], 200),
    ]:
        client = Client(endpoint, opened)
        assert client.get(SEGMENT)[0] == 200
        client.session = session
        assert (client.get(target, *headers)[0], client.ended()) == (status, True), (session, target)
        client.close()


def test_the_budget_holds_for_all_requests_together(endpoint):
    session = endpoint.session(payload_bytes=700_000)
    client = Client(endpoint, session.id)
    first = len(client.get(SEGMENT)[2])
    assert client.get(SEGMENT)[0] == 429
    assert client.ended()
    client.close()
    assert (endpoint.ended(session)["end"], session.used_bytes) == ("budget", first)


def test_pipelining_is_refused(client):
    client.socket.sendall(head("GET", "/v1/content/film/real.mp4", client.session))
    client.file.read(10)
    client.socket.sendall(2 * head("GET", "/v1/content/film/real.mp4", client.session))
    assert b" 400 " in client.file.read()


def test_the_end_of_the_session_ends_a_waiting_connection(endpoint, client):
    assert client.get(SEGMENT)[0] == 200
    ended = endpoint.sessions.end(client.session, "probe-1", wait_s=0.1)
    assert client.ended()
    assert ended is not None


def test_a_client_that_does_not_read_is_cut(endpoint):
    endpoint.measurement._limits = Limits(stall_s=0.3)
    session = endpoint.session()
    with endpoint.connect("tcp") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(head("GET", "/v1/content/film/6s/v4/all.mp4", session.id))
        assert client.recv(4).startswith(b"HTTP")
        assert endpoint.ended(session)["end"] == "stalled"


# --- stored pages


class Browser:
    """One connection to a page's origin, as the probe's relay makes it."""

    def __init__(self, endpoint, page, session, trusted=None, early=b""):
        self.session = session
        self.raw = endpoint.connect("mptcp")
        self.raw.sendall(
            head("GET", f"/v1/page/{page}", session.id, "Connection: Upgrade", "Upgrade: tandem-page") + early
        )
        switched = b""
        while not switched.endswith(b"\r\n\r\n"):
            switched += self.raw.recv(1)
        assert switched.startswith(b"HTTP/1.1 101 ")
        self.socket = self.raw
        if trusted is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.load_verify_locations(cadata=trusted)
            self.socket = context.wrap_socket(self.raw, server_hostname="www.a.test")
        self.file = self.socket.makefile("rb")

    def send(self, method, host, target, *lines, body=b""):
        text = "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *lines, "", ""])
        self.socket.sendall(text.encode("latin-1") + body)

    def answer(self, method="GET"):
        return read_kept(self.file, method)

    def get(self, host, target, method="GET", *lines, body=b""):
        self.send(method, host, target, *lines, body=body)
        return self.answer(method)

    def close(self, endpoint):
        self.file.close()
        self.socket.close()
        return endpoint.ended(self.session)


def test_a_page_is_replayed_over_one_connection_and_counted(endpoint):
    browser = Browser(endpoint, "http", endpoint.session())
    assert browser.get("www.a.test", "/")[2] == b"<html>" * 1000
    status, headers, body = browser.get("cdn.a.test", "/x.js?v=1")
    assert (status, headers["content-encoding"], headers["x-own"]) == (200, "gzip", "é")
    assert browser.get("cdn.a.test:80", "/x.js?v=2&r=9")[2] == body
    assert browser.get("www.a.test", "/", "HEAD")[1]["content-length"] == "6000"
    status, headers, _ = browser.get("www.a.test", "/moved")
    assert (status, headers["location"], headers["content-length"]) == (302, "/", "0")
    status, headers, _ = browser.get("www.a.test", "/none")
    assert (status, "content-length" in headers) == (204, False)
    assert browser.get("api.a.test", "/put", "PUT", "Content-Length: 70000", body=b"b" * 70000)[2] == b"done"
    status, headers, _ = browser.get("www.a.test", "/other")
    assert (status, headers["x-tandem-page"]) == (404, "miss")
    status, headers, _ = browser.get(
        "api.a.test", "/put", "OPTIONS", "Origin: http://x", "Access-Control-Request-Method: PUT"
    )
    assert (status, headers["access-control-allow-methods"]) == (204, "put")
    summary = browser.close(endpoint)
    assert summary["bytes_sent"] == 6000 + 2 * len(body) + 4
    assert (summary["requests"], summary["near"], summary["missed"], summary["end"]) == (9, 1, 1, "complete")
    assert summary["bytes_acked"] == summary["bytes_sent"]
    assert summary["multipath"] is True
    assert summary["page_tls"] is False


def test_an_https_page_is_replayed_by_tls_with_the_certificate_that_control_tells(endpoint, tmp_path):
    trusted = PageStore(tmp_path).open("https").public["certificate"]
    browser = Browser(endpoint, "https", endpoint.session(), trusted)
    assert browser.get("www.a.test", "/")[2] == b"<html>" * 1000
    assert browser.get("www.a.test:443", "/moved")[0] == 302
    summary = browser.close(endpoint)
    assert (summary["page_tls"], summary["requests"], summary["missed"], summary["end"]) == (True, 2, 0, "complete")
    assert summary["bytes_sent"] == 6000
    assert summary["bytes_acked"] == pytest.approx(6000, abs=1)


def test_requests_that_came_with_the_head_and_with_each_other_are_answered_in_turn(endpoint):
    asked = b"".join(f"GET {t} HTTP/1.1\r\nHost: www.a.test\r\n\r\n".encode() for t in ("/", "/moved", "/none"))
    browser = Browser(endpoint, "http", endpoint.session(), early=asked)
    assert [browser.answer()[0] for _ in range(3)] == [200, 302, 204]
    browser.close(endpoint)


def test_an_http_page_does_not_answer_tls_nor_an_https_page_http(endpoint):
    browser = Browser(endpoint, "http", endpoint.session())
    browser.raw.sendall(b"\x16\x03\x01\x02\x00" + bytes(512))
    assert browser.close(endpoint)["end"] == "client gone"
    browser = Browser(endpoint, "https", endpoint.session())
    assert browser.get("www.a.test", "/")[0] == 404
    assert browser.close(endpoint)["missed"] == 1


def test_without_a_session_a_page_or_an_upgrade_there_is_no_replay(endpoint):
    def asked(page, session, *lines):
        status, _, told = endpoint.exchange(head("GET", f"/v1/page/{page}", session, *lines), "tcp")
        assert list(told) == ["error"]
        return status

    session, upgrade = endpoint.session().id, "Upgrade: tandem-page"
    assert asked("http", "nobody", upgrade) == 403
    assert asked("other", "nobody", upgrade) == 403  # what there is, only sessions learn
    assert asked("http", session) == 400
    assert [asked(page, session, upgrade) for page in ("other", "..", "http/page.json")] == [404] * 3


def test_the_budget_ends_a_replay(endpoint):
    session = endpoint.session(payload_bytes=7000)
    browser = Browser(endpoint, "http", session)
    assert browser.get("www.a.test", "/")[0] == 200
    status, headers, _ = browser.get("www.a.test", "/")
    assert (status, headers["x-tandem-page"], headers["connection"]) == (429, "budget", "close")
    summary = browser.close(endpoint)
    assert (summary["end"], summary["bytes_sent"]) == ("budget", 6000)
    assert session.used_bytes == 6000


def test_what_is_no_request_ends_the_connection(endpoint):
    for raw in (
        b"\x00" * 100 + b"\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
    ):
        browser = Browser(endpoint, "http", endpoint.session())
        browser.raw.sendall(raw)
        assert browser.close(endpoint)["end"] == "client gone", raw[:60]


class Pieces:
    """A stream that gives ``raw`` in pieces."""

    def __init__(self, raw, sizes):
        self.left, self.sizes = raw, sizes

    def read(self, _within_s):
        size = self.sizes[0] if self.sizes else 100
        self.sizes = self.sizes[1:]
        given, self.left = self.left[:size], self.left[size:]
        return given


@given(
    st.lists(st.tuples(st.sampled_from(["GET", "POST"]), st.binary(max_size=80)), max_size=4),
    st.lists(st.integers(1, 60), max_size=30),
)
def test_requests_in_any_pieces_are_read_one_after_the_other(requests, sizes):
    raw = b"".join(
        f"{method} /{n} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        for n, (method, body) in enumerate(requests)
    )
    stream, begun = Pieces(raw, sizes), b""
    for n, (method, _) in enumerate(requests):
        asked, begun = _read(stream, begun)
        assert (asked.method, asked.target) == (method, f"/{n}")
    assert _read(stream, begun)[0] is None


@given(st.binary(max_size=300), st.lists(st.integers(1, 60), max_size=10))
def test_any_bytes_are_a_request_an_end_or_the_connections_end(raw, sizes):
    try:
        asked, _ = _read(Pieces(raw, sizes), b"")
    except Ended:
        return
    assert asked is None or re.match(r"[A-Z]+\Z", asked.method)
