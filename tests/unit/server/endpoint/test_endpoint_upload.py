"""Uploads over real sockets on loopback: counted, timed, and cut when they lie, stall or never end."""

import os
import socket
import time

import pytest
from endpoint_on_loopback import head, read_answer, wait_until


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


@pytest.mark.parametrize(("body", "stall_s", "end"), [(b"x" * 5000, 30.0, "too long"), (b"x", 0.3, "stalled")])
def test_a_body_longer_than_it_said_and_one_that_stalls_are_cut(endpoint, body, stall_s, end):
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
