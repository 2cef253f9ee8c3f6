"""DASH content over one kept connection: what is served, what is refused, what is counted."""

import socket

import pytest
from endpoint_on_loopback import Endpoint, head, read_kept

from tandem_server.content.library import Library
from tandem_server.content.presentation import LADDER, build_synthetic
from tandem_server.endpoint.sessions import Limits

SEGMENT = "/v1/content/film/6s/v3/00002.m4s"


@pytest.fixture
def endpoint(registry, tmp_path):
    (tmp_path / "film").mkdir()
    build_synthetic(tmp_path / "film", 30, (6,), 1, LADDER[:5])
    (tmp_path / "film" / "real.mp4").write_bytes(bytes(range(100)))
    made = Endpoint(registry, Limits(), content=Library(tmp_path))
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


@pytest.mark.parametrize("kind", ["tcp", "mptcp"])
def test_many_requests_over_one_connection_are_one_summary(endpoint, kind):
    session = endpoint.session()
    client = Client(endpoint, session.id, kind)
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
