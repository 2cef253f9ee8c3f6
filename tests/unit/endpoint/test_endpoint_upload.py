"""Uploads over real sockets on loopback: counted, timed, and cut when they lie, stall or never end."""

import os
import socket
import threading
import time

import pytest
from endpoint_on_loopback import head, read_answer


def upload(here, session, query, body, length=None, kind="mptcp", half_close=True):
    """One upload: status and JSON answer."""
    lines = [] if length is None else [f"Content-Length: {length}"]
    with here.connect(kind) as client:
        client.sendall(head("POST", f"/v1/upload?{query}", session, *lines) + body)
        if half_close:
            client.shutdown(socket.SHUT_WR)
        status, _, answer = read_answer(client)
    return status, answer


def send_for_ever(client, block):
    while True:
        client.sendall(b"x" * block)


def ended(here, session):
    (summary,) = here.sessions.end(session.id, "probe-1", wait_s=5.0).summaries
    return summary


def cut(client):
    """Whether the endpoint resets the connection."""
    try:
        while client.recv(65536):
            pass
    except ConnectionResetError:
        return True
    return False


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
@pytest.mark.parametrize("payload", [1, 100_001, 20_000_000])
def test_as_many_bytes_as_announced_are_counted_and_told(endpoint, kind, payload):
    here = endpoint()
    session = here.session(kind, payload_bytes=payload)
    status, answer = upload(here, session.id, f"bytes={payload}", os.urandom(payload), payload, kind, half_close=False)
    assert (status, answer["bytes"]) == (200, payload)
    assert 0 <= answer["duration_s"] < 20
    summary = ended(here, session)
    assert (summary["bytes_received"], summary["end"], summary["bytes_sent"]) == (payload, "complete", 0)
    assert summary["request"] == f"POST /v1/upload?bytes={payload}"
    assert summary["duration_s"] == answer["duration_s"]
    assert summary["subflows"][0]["bytes_received"] >= payload
    assert (session.used_bytes, summary["fallback"]) == (payload, False)


def test_an_upload_for_a_time_ends_by_half_close(endpoint):
    here = endpoint()
    session = here.session()
    status, answer = upload(here, session.id, "seconds=1", b"x" * 50_000)
    assert (status, answer["bytes"]) == (200, 50_000)
    assert ended(here, session)["end"] == "complete"


def test_the_duration_is_from_the_first_to_the_last_byte(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?bytes=2", session.id, "Content-Length: 2"))
        time.sleep(0.2)  # before the first byte: not counted
        client.sendall(b"a")
        started = time.monotonic()
        time.sleep(0.3)
        client.sendall(b"b")
        apart = time.monotonic() - started
        _, _, answer = read_answer(client)
    assert answer["duration_s"] == pytest.approx(apart, abs=0.1)


def test_records_of_an_upload_carry_what_was_received(endpoint):
    here = endpoint()
    session = here.session(kind="any")
    upload(here, session.id, "bytes=3000000", b"x" * 3_000_000, 3_000_000)
    points = [p for p in here.points() if p.measurement == "connection"]
    assert points[-1].fields["bytes"] == 3_000_000
    assert points[-1].tags["kind"] == "mptcp"


@pytest.mark.parametrize(
    ("query", "length", "status"),
    [
        ("bytes=5", None, 400),
        ("bytes=5", 6, 400),
        ("seconds=5", 5, 400),
        ("bytes=5&seconds=1", 5, 400),
        ("bytes=0", 0, 400),
        ("bytes=9999999999", 9999999999, 429),
    ],
)
def test_what_is_no_upload_is_refused(endpoint, query, length, status):
    here = endpoint(session_bytes=1000)
    assert upload(here, here.session().id, query, b"", length)[0] == status


def test_without_a_session_or_by_another_method_nothing_is_taken(endpoint):
    here = endpoint()
    assert upload(here, "0" * 32, "bytes=1", b"x", 1)[0] == 403
    with here.connect() as client:
        client.sendall(head("GET", "/v1/upload?bytes=1", here.session().id))
        assert read_answer(client)[0] == 405


def test_a_body_shorter_than_it_said_is_recorded(endpoint):
    here = endpoint()
    session = here.session()
    assert upload(here, session.id, "bytes=1000", b"x" * 400, 1000)[0] == 400
    summary = ended(here, session)
    assert (summary["end"], summary["bytes_received"], session.used_bytes) == ("too short", 400, 400)


def test_a_body_longer_than_it_said_is_cut(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?bytes=1000", session.id, "Content-Length: 1000") + b"x" * 5000)
        assert cut(client)
    summary = ended(here, session)
    assert (summary["end"], summary["bytes_received"]) == ("too long", 1000)


def test_a_body_that_stalls_is_cut(endpoint):
    here = endpoint(stall_s=0.3)
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?bytes=1000", session.id, "Content-Length: 1000") + b"x")
        assert cut(client)
    assert ended(here, session)["end"] == "stalled"


def test_a_body_that_never_ends_is_cut_by_time(endpoint):
    here = endpoint(stall_s=0.3)
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?seconds=0.2", session.id))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(client, 10_000)
    assert ended(here, session)["end"] == "over time"


def test_a_body_that_never_ends_is_cut_by_the_budget(endpoint):
    here = endpoint()
    session = here.sessions.open("probe-1", "run-1", "any", None, {}, None, None, budget_bytes=2_000_000)
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?seconds=60", session.id))
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            send_for_ever(client, 100_000)
    summary = ended(here, session)
    assert (summary["end"], summary["bytes_received"], session.used_bytes) == ("budget", 2_000_000, 2_000_000)


def test_a_reset_in_the_middle_is_recorded(endpoint):
    here = endpoint()
    session = here.session("tcp")
    with here.connect("tcp") as client:
        client.sendall(head("POST", "/v1/upload?bytes=1000", session.id, "Content-Length: 1000") + b"x" * 10)
        deadline = time.monotonic() + 5
        while session.used_bytes < 10:
            assert time.monotonic() < deadline
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    summary = ended(here, session)
    assert (summary["end"], summary["bytes_received"]) == ("client gone", 10)


def test_ending_the_session_cuts_its_upload(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(head("POST", "/v1/upload?seconds=60", session.id) + b"x")
        deadline = time.monotonic() + 5
        while not session.used_bytes:
            assert time.monotonic() < deadline
        ending = threading.Thread(target=here.sessions.end, args=(session.id, "probe-1", 0.2))
        ending.start()
        assert cut(client)
        ending.join()
    assert session.summaries[0]["end"] == "stopped"
