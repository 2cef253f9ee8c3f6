"""Downloads and uploads over real sockets on loopback: exact, bounded, accounted; and the recorder of what they tell."""

import contextlib
import itertools
import os
import select
import socket
import threading
import time
import zlib
from types import SimpleNamespace

import pytest
from endpoint_on_loopback import PATHS, head, read_answer, request, wait_until

from tandem.schema.line_protocol import Point
from tandem_server.endpoint import transfers
from tandem_server.endpoint.flows import FlowAccount, Labels
from tandem_server.endpoint.http1 import Transfer
from tandem_server.endpoint.recorder import Recorder
from tandem_server.endpoint.sessions import SessionRequest
from tandem_server.endpoint.transfers import Download, Measured
from tandem_server.http.connections import ConnectionLimits
from tandem_server.store import StoreDown


def test_as_many_bytes_as_asked_for_and_all_acknowledged(endpoint):
    here = endpoint()
    for kind, payload in [(kind, payload) for kind in ("mptcp", "tcp") for payload in (1, 1_048_577, 30_000_000)]:
        session = here.session(kind, payload_bytes=payload)
        status, headers, body = here.get(f"/v1/download?bytes={payload}", session.id, kind)
        assert (status, headers["content-length"], len(body)) == (200, str(payload), payload)
        assert headers["connection"] == "close"
        summary = here.ended(session)
        assert (session.used_bytes, summary["bytes_sent"], summary["end"]) == (payload, payload, "complete")
        assert (summary["bytes_acked"], summary["fallback"]) == (payload, False)
        (flow,) = summary["subflows"]
        assert flow["path"] == "a"
        assert flow["bytes_acked"] >= payload
        assert flow["rtt_ms_median"] > 0
    assert len(zlib.compress(body[:2_000_000], 9)) > 0.99 * 2_000_000  # it does not repeat within a compressor's reach


def test_a_download_for_a_time_ends_even_when_nobody_reads(endpoint, monkeypatch):
    monkeypatch.setattr(transfers, "_DRAIN_S", 0.3)
    here = endpoint()
    session = here.session()
    with here.downloading(session, "seconds=0.2"):
        summary = here.ended(session)
    assert summary["end"] == "not acknowledged"
    assert summary["bytes_acked"] < summary["bytes_sent"]
    assert summary["request_to_last_ack_s"] is None


def test_ending_the_session_or_the_endpoint_cuts_a_download(endpoint):
    here = endpoint()
    for end in (lambda one: here.sessions.end(one.id, "probe-1", wait_s=0.1), lambda _: here.stop()):
        session = here.session()
        with here.downloading(session):
            end(session)
            wait_until(lambda one=session: one.summaries)
        assert session.summaries[0]["end"] == "stopped"
    with pytest.raises(ConnectionRefusedError):
        here.connect()


def test_what_is_refused_is_answered_briefly(endpoint):
    here = endpoint(head_s=1.0)
    good = here.session().id
    cases = [
        *((request("/v1/download?bytes=1000", session), 403) for session in ("", "0" * 32, "x")),
        (request("/v1/download?bytes=0", good), 400),
        (request("/v1/download", good), 400),
        (request("/v1/nothing", good), 404),
        (request("/v1/download?seconds=99999", good), 429),
        (head("POST", "/v1/download?bytes=5", good), 405),
        (head("GET", "/v1/download?bytes=9000", good, "X-Tandem-Path: z"), 400),
        (b"GET /v1/whoami HTTP/1.1\r\nHos", 408),
        (b"GET /v1/whoami HTTP/1.1\r\nX: " + b"a" * 8300, 431),
    ]
    answers = [here.exchange(sent) for sent, _ in cases]
    assert [status for status, _, _ in answers] == [status for _, status in cases]
    assert all(list(told) == ["error"] and int(headers["content-length"]) < 200 for _, headers, told in answers)


def test_whoami_within_a_session_tells_of_the_handshake(endpoint):
    here = endpoint()
    session = here.session()
    before, plain, after = (here.get("/v1/whoami", session.id, kind)[2] for kind in ("mptcp", "tcp", "mptcp"))
    assert [a["multipath"] for a in (before, plain, after)] == ["native", "none", "native"]
    assert after["multipath_syns"] > before["multipath_syns"]  # the kernel's counter: others count on it too
    assert plain["handshake_rtt_ms"] > 0
    assert session.live == 0


def test_the_oldest_that_asks_for_nothing_makes_room(endpoint):
    here = endpoint(connections=ConnectionLimits(unauthenticated=2))
    with here.connect("tcp") as oldest, here.connect() as second, here.connect():
        assert (oldest.recv(1), second.fileno() > 0) == (b"", True)
        assert here.get("/v1/whoami")[0] == 200
        assert second.recv(1) == b""


# --- the time of the last acknowledgement, and several connections of both kinds in one session


def test_a_small_answer_does_not_wait_for_its_heads_acknowledgement(endpoint):
    """Head and payload come in one segment: with two, Nagle's algorithm would hold the second for a round trip."""
    here = endpoint()
    with here.connect("tcp") as client:
        client.sendall(request("/v1/download?bytes=50", here.session("tcp").id))
        first = client.recv(65536)
    assert len(first.partition(b"\r\n\r\n")[2]) == 50


def test_one_session_of_any_kind_serves_both(endpoint):
    here = endpoint()
    session = here.sessions.open("probe-1", SessionRequest("run-1", "any", "a", PATHS, None, None, budget_bytes=30_000))
    for kind, target in (("tcp", "bytes=10000"), ("mptcp", "bytes=10000")):
        assert here.get(f"/v1/download?{target}", session.id, kind)[0] == 200
    assert here.exchange(head("GET", "/v1/download?bytes=9000", session.id, "X-Tandem-Path: b"), "tcp")[0] == 200
    status, _, refused = here.get("/v1/download?bytes=10000", session.id)
    assert (status, refused["error"]) == (429, "1000 bytes are left of the session's budget")
    wait_until(lambda: len(session.summaries) == 3)
    told = session.summaries
    assert [(c["multipath"], c["fallback"]) for c in told] == [(False, False), (True, False), (False, False)]
    # The first two by their address; the third came from a's address too, but its request says where it began.
    assert [c["subflows"][0]["path"] for c in told] == ["a", "a", "b"]
    kinds = [p.tags["kind"] for p in here.points() if p.measurement == "connection"]
    assert set(kinds) == {"tcp", "mptcp"}


# --- the recorder: never blocks, bounded, counts what it drops, and writes what waited when the database is back

NOW = time.time_ns()


def point(number, **fields):
    tags = {"probe": "p", "boot": "b", "run": "r", "kind": "tcp", "end": "server"}
    return Point("connection", tags, {"bytes": number, "monotonic_ns": number, **fields}, NOW + number)


class Flaky:
    def __init__(self):
        self.up, self.lines, self.tried = threading.Event(), [], threading.Event()

    def write(self, lines):
        self.tried.set()
        if not self.up.is_set():
            raise StoreDown("away")
        self.lines += lines
        return []


def test_what_waits_for_the_database_is_bounded_and_the_loss_counted():
    store = Flaky()
    recorder = Recorder(lambda: store, room=100)
    recorder.put(point(i) for i in range(50))
    assert store.tried.wait(60)
    recorder.put(point(i) for i in range(50, 300))
    store.up.set()
    account = recorder.close(timeout_s=60)
    assert account.made == 300
    assert account.stored == len(store.lines)
    assert account.stored + account.dropped == 300
    assert 100 <= account.stored <= 150
    assert f"bytes={299}i" in store.lines[-1]


def test_a_record_that_breaks_the_schema_is_counted_and_closing_does_not_wait_for_ever_for_a_database():
    store = Flaky()
    store.up.set()
    recorder = Recorder(lambda: store)
    recorder.put([point(1), point(2, colour="red"), point(3)])
    account = recorder.close()
    assert (account.stored, account.rejected, len(store.lines)) == (2, 1, 2)
    recorder = Recorder(Flaky)
    recorder.put([point(1)])
    account = recorder.close(timeout_s=0.3)
    assert (account.stored, account.dropped) == (0, 1)


# --- a download by itself: who closes as soon as he has what he asked for has not gone away, and how often the sender is looked at


@pytest.fixture
def pair():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        serving, _ = listener.accept()
        with serving:
            yield serving, client


def close_and_wait(serving, client, wanted):
    """The client reads so much and closes; returns when this end has seen it."""
    while wanted > 0:
        wanted -= len(client.recv(wanted))
    client.close()
    seen = select.poll()
    seen.register(serving, select.POLLRDHUP)
    assert seen.poll(60_000)


class Budget:
    """Without end; ``after`` is called when something was sent."""

    def __init__(self, after):
        self.after = after

    def take(self, wanted_bytes):
        return wanted_bytes

    def give_back(self, unused_bytes):
        del unused_bytes
        self.after()


def downloading(serving, ask, after, record=lambda _: None):
    account = FlowAccount(Labels("probe-1", "boot-1", "run-1", "tcp", "a", {}))
    return Download(Measured(serving, Budget(after), account, record, lambda: False, 30.0), ask)


def test_the_sender_is_looked_at_ten_times_a_second(pair, monkeypatch):
    """By a clock that goes on by 10 ms with every look at it."""
    serving, client = pair
    now_s, samples = itertools.count(1000, 0.01), []
    monkeypatch.setattr(
        "tandem_server.endpoint.transfers.time", SimpleNamespace(monotonic=lambda: next(now_s), sleep=time.sleep)
    )
    client.setblocking(False)

    def read():
        with contextlib.suppress(BlockingIOError):
            while client.recv(1 << 20):
                pass

    one = downloading(serving, Transfer(None, 2.05), read, samples.append)
    assert one.run(b"abc") == "complete"
    # Until the client's kernel has acknowledged all it goes on looking: how long that takes is the machine's.
    looked_s = next(now_s) - 1000
    assert looked_s > 2.05
    assert 10 * looked_s - 3 <= len(samples) <= 10 * looked_s + 3


def test_who_closes_when_all_has_come_is_complete(pair):
    serving, client = pair
    one = downloading(serving, Transfer(1000, None), lambda: close_and_wait(serving, client, 1003))
    assert (one.run(b"abc"), one.acked_at_s is not None) == ("complete", True)


def test_who_closes_before_all_has_come_has_gone(pair):
    serving, client = pair
    serving.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    one = downloading(serving, Transfer(1000, None), lambda: close_and_wait(serving, client, 3))
    assert one.run(b"abc" + bytes(10_000_000)) == "client gone"


def test_a_look_that_comes_late_sees_first_that_the_client_has_closed(pair, monkeypatch):
    """What was queued has no reader any more once a timed download's client has closed: not a missing acknowledgement."""
    serving, client = pair
    monkeypatch.setattr("tandem_server.endpoint.transfers._DRAIN_S", 0.2)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    one = downloading(serving, Transfer(None, 0.1), lambda: None)
    asleep = time.sleep

    def late(_seconds):
        client.close()
        asleep(0.5)

    monkeypatch.setattr("tandem_server.endpoint.transfers.time.sleep", late)
    assert one.run(b"abc") == "complete"


# --- uploads: counted, timed, and cut when they lie, stall or never end


def upload(here, session, query, body, length=None, kind="mptcp", half_close=True):
    lines = [] if length is None else [f"Content-Length: {length}"]
    with here.connect(kind) as client:
        client.sendall(head("POST", f"/v1/upload?{query}", session, *lines) + body)
        if half_close:
            client.shutdown(socket.SHUT_WR)
        status, _, answer = read_answer(client)
    return status, answer


def send_for_ever(client):
    while True:
        client.sendall(b"x" * 10_000)
        time.sleep(0.0001)  # so that a session's time is over before its bytes are


def is_cut(client):
    """Reset: an end without it would look like an answer."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return False


def test_as_many_bytes_as_announced_are_counted_and_told(endpoint):
    here = endpoint()
    for kind, payload in [(kind, payload) for kind in ("mptcp", "tcp") for payload in (1, 100_001, 20_000_000)]:
        session = here.session(kind, payload_bytes=payload)
        body = os.urandom(payload)
        status, answer = upload(here, session.id, f"bytes={payload}", body, payload, kind, half_close=False)
        assert (status, answer["bytes"]) == (200, payload)
        summary = here.ended(session)
        assert (summary["bytes_received"], summary["end"], summary["bytes_sent"]) == (payload, "complete", 0)
        assert summary["request"] == f"POST /v1/upload?bytes={payload}"
        assert summary["duration_s"] == answer["duration_s"] >= 0
        assert summary["subflows"][0]["bytes_received"] >= payload
        assert (session.used_bytes, summary["fallback"]) == (payload, False)
    session = here.session()
    assert upload(here, session.id, "seconds=1", b"x" * 300_000)[1]["bytes"] == 300_000
    assert here.ended(session)["end"] == "complete"  # one for a time, by its half close
    points = [p for p in here.points() if p.measurement == "connection"]
    assert (points[-1].fields["bytes"], points[-1].tags["kind"]) == (300_000, "mptcp")


def test_the_duration_is_from_the_first_to_the_last_byte(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        begun = time.monotonic()
        client.sendall(head("POST", "/v1/upload?bytes=2", session.id, "Content-Length: 2"))
        time.sleep(0.3)  # before the first byte: not counted
        client.sendall(b"a")
        wait_until(lambda: session.used_bytes)
        time.sleep(0.3)
        client.sendall(b"b")
        _, _, answer = read_answer(client)
        whole = time.monotonic() - begun
    assert 0.3 <= answer["duration_s"] < whole - 0.3


def test_what_is_no_upload_is_refused(endpoint):
    here = endpoint(session_bytes=1000)
    good = here.session().id
    cases = [
        (good, "bytes=5", None, 400),
        (good, "bytes=5", 6, 400),
        (good, "seconds=5", 5, 400),
        (good, "bytes=5&seconds=1", 5, 400),
        (good, "bytes=0", 0, 400),
        (good, "bytes=9999999999", 9999999999, 429),
        ("0" * 32, "bytes=1", 1, 403),
    ]
    told = [upload(here, session, query, b"", length)[0] for session, query, length, _ in cases]
    assert told == [status for *_, status in cases]
    assert here.exchange(head("GET", "/v1/upload?bytes=1", good))[0] == 405


def test_a_body_shorter_than_it_said_is_recorded(endpoint):
    here = endpoint()
    session = here.session()
    assert upload(here, session.id, "bytes=1000", b"x" * 400, 1000)[0] == 400
    summary = here.ended(session)
    assert (summary["end"], summary["bytes_received"], session.used_bytes) == ("too short", 400, 400)


def test_a_body_longer_than_it_said_and_one_that_stalls_are_cut(endpoint):
    for body, stall_s, end in ((b"x" * 5000, 30.0, "too long"), (b"x", 0.3, "stalled")):
        here = endpoint(stall_s=stall_s)
        session = here.session()
        with here.connect() as client:
            client.sendall(head("POST", "/v1/upload?bytes=1000", session.id, "Content-Length: 1000") + body)
            assert is_cut(client)
        summary = here.ended(session)
        assert (summary["end"], summary["bytes_received"]) == (end, min(len(body), 1000))


@pytest.mark.parametrize(("query", "stall_s", "end"), [("0.2", 2.0, "over time"), ("3000", 30.0, "budget")])
def test_a_body_that_never_ends_is_cut_by_time_or_by_the_budget(endpoint, query, stall_s, end):
    here = endpoint(stall_s=stall_s)
    session = here.session("any", payload_bytes=2_000_000 if end == "budget" else None)
    with here.connect() as client:
        client.sendall(head("POST", f"/v1/upload?seconds={query}", session.id))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(client)
    summary = here.ended(session)
    assert summary["end"] == end
    assert summary["bytes_received"] == session.used_bytes
    assert end == "over time" or session.used_bytes == 2_000_000


def test_ending_the_session_cuts_its_upload(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?seconds=3000", session.id) + b"x")
        wait_until(lambda: session.used_bytes)
        here.sessions.end(session.id, "probe-1", wait_s=0.1)
        assert is_cut(client)
    wait_until(lambda: session.summaries)
    assert session.summaries[0]["end"] == "stopped"
