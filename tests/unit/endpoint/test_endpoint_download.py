"""Downloads over real sockets on loopback: exact, bounded, accounted."""

import time
import zlib

import pytest
from endpoint_on_loopback import PATHS, head, request, wait_until

from tandem_server.door import DoorBounds
from tandem_server.endpoint import download


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


def test_the_payload_does_not_repeat_within_a_compressors_reach(endpoint):
    here = endpoint()
    _, _, body = here.get("/v1/download?bytes=2000000", here.session().id)
    assert len(zlib.compress(body, 9)) > 0.99 * len(body)


def test_a_download_for_a_time_ends_even_when_nobody_reads(endpoint, monkeypatch):
    monkeypatch.setattr(download, "_DRAIN_S", 0.3)
    here = endpoint()
    session = here.session()
    with here.downloading(session, "seconds=0.2"):
        summary = here.ended(session)
    assert summary["end"] == "not acknowledged"
    assert summary["bytes_acked"] < summary["bytes_sent"]
    assert summary["request_to_last_ack_s"] is None


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_a_download_for_a_time_is_complete_when_the_client_closes_at_its_end(endpoint, kind):
    here = endpoint(session_bytes=10**12)
    session = here.session(kind)
    with here.downloading(session, "seconds=0.3", kind) as client:
        until = time.monotonic() + 0.4
        while time.monotonic() < until:
            client.recv(1 << 16)  # slower than the sender: much is still under way when the time is over
    assert here.ended(session)["end"] == "complete"


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
    here = endpoint(door=DoorBounds(strangers=2))
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
    session = here.sessions.open("probe-1", "run-1", "any", "a", PATHS, None, None, budget_bytes=30_000)
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


def test_a_path_that_the_session_does_not_have_is_refused(endpoint):
    here = endpoint()
    session = here.session("any")
    assert here.exchange(head("GET", "/v1/download?bytes=9000", session.id, "X-Tandem-Path: z"), "tcp")[0] == 400
    assert (session.live, session.summaries) == (0, [])
