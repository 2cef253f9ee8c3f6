"""The time of the last acknowledgement, and several connections of both kinds in one session."""

import socket
import time
from types import SimpleNamespace

import pytest
from endpoint_on_loopback import PATHS, head, read_answer, request

from tandem_server.endpoint import download


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
@pytest.mark.parametrize("payload", [100, 200_000])
def test_the_last_acknowledgement_is_timed_from_the_request(endpoint, kind, payload):
    here = endpoint()
    session = here.session(kind)
    started = time.monotonic()
    here.get(f"/v1/download?bytes={payload}", session.id, kind)
    whole_s = time.monotonic() - started
    (summary,) = here.sessions.end(session.id, "probe-1", wait_s=5.0).summaries
    assert summary["request"] == f"GET /v1/download?bytes={payload}"
    assert 0 < summary["request_to_send_s"] < summary["request_to_last_ack_s"] < whole_s
    assert 0 < summary["last_ack_resolution_s"] <= summary["request_to_last_ack_s"]


def test_it_waits_for_a_reader_that_is_slow(endpoint, monkeypatch):
    rests, sleep = [], time.sleep
    monkeypatch.setattr(
        download, "time", SimpleNamespace(monotonic=time.monotonic, sleep=lambda s: (rests.append(s), sleep(s)))
    )
    here = endpoint()
    session = here.session("tcp")
    with here.connect("tcp") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
        client.sendall(request("/v1/download?bytes=3000000", session.id))
        client.recv(1, socket.MSG_PEEK)  # the endpoint has read the request by now, so its clock runs
        sleep(0.5)
        assert len(read_answer(client)[2]) == 3_000_000
    (summary,) = here.sessions.end(session.id, "probe-1", wait_s=5.0).summaries
    assert summary["request_to_last_ack_s"] > 0.5
    # How far apart the looks came is the machine's affair; how far apart it wants them is ours.
    assert rests
    assert max(rests) < 0.05 * summary["request_to_last_ack_s"]
    assert 0 < summary["last_ack_resolution_s"] < summary["request_to_last_ack_s"]


def test_what_is_never_acknowledged_has_no_such_time(endpoint):
    here = endpoint(stall_s=0.3)
    session = here.session("tcp")
    with here.connect("tcp") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(request("/v1/download?bytes=300000", session.id))
        assert session.await_quiet(0.0) is True or session.live == 1
        deadline = time.monotonic() + 5
        while not session.summaries:
            assert time.monotonic() < deadline
    assert session.summaries[0]["end"] in ("not acknowledged", "stalled")
    assert session.summaries[0]["request_to_last_ack_s"] is None


def test_a_small_answer_does_not_wait_for_its_heads_acknowledgement(endpoint):
    """Head and payload come in one segment: with two, Nagle's algorithm would hold the second for a round trip."""
    here = endpoint()
    with here.connect("tcp") as client:
        client.sendall(request("/v1/download?bytes=50", here.session("tcp").id))
        first = client.recv(65536)
    assert len(first.partition(b"\r\n\r\n")[2]) == 50


def test_one_session_of_any_kind_serves_both(endpoint):
    here = endpoint()
    session = here.sessions.open("probe-1", "run-1", "any", "a", PATHS, None, None, budget_bytes=30_000)
    for kind, target in (("tcp", "bytes=10000"), ("mptcp", "bytes=10000")):
        assert here.get(f"/v1/download?{target}", session.id, kind)[0] == 200
    with here.connect("tcp") as client:
        client.sendall(head("GET", "/v1/download?bytes=9000", session.id, "X-Tandem-Path: b"))
        assert read_answer(client)[0] == 200
    status, _, refused = here.get("/v1/download?bytes=10000", session.id)
    assert (status, refused["error"]) == (429, "1000 bytes are left of the session's budget")
    told = here.sessions.end(session.id, "probe-1").summaries
    assert [(c["multipath"], c["fallback"]) for c in told] == [(False, False), (True, False), (False, False)]
    # The first two by their address; the third came from a's address too, but its request says where it began.
    assert [c["subflows"][0]["path"] for c in told] == ["a", "a", "b"]
    kinds = [p.tags["kind"] for p in here.points() if p.measurement == "connection"]
    assert set(kinds) == {"tcp", "mptcp"}


def test_a_path_that_the_session_does_not_have_is_refused(endpoint):
    here = endpoint()
    session = here.session("any")
    with here.connect("tcp") as client:
        client.sendall(head("GET", "/v1/download?bytes=9000", session.id, "X-Tandem-Path: z"))
        assert read_answer(client)[0] == 400
    assert (session.live, session.summaries) == (0, [])
