"""Downloads over real sockets on loopback: exact, bounded, accounted."""

import contextlib
import time
import zlib

import pytest
from endpoint_on_loopback import read_answer, request


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
@pytest.mark.parametrize("payload", [1, 1_048_577, 30_000_000])
def test_as_many_bytes_as_asked_for_and_all_acknowledged(endpoint, kind, payload):
    here = endpoint()
    session = here.session(kind, payload_bytes=payload)
    status, headers, body = here.get(f"/v1/download?bytes={payload}", session.id, kind)
    assert (status, headers["content-length"], len(body)) == (200, str(payload), payload)
    assert headers["connection"] == "close"
    ended = here.sessions.end(session.id, "probe-1")
    (summary,) = ended.summaries
    assert (ended.used_bytes, summary["bytes_sent"], summary["end"]) == (payload, payload, "complete")
    assert summary["bytes_acked"] == payload
    assert summary["fallback"] is False
    (flow,) = summary["subflows"]
    assert flow["path"] == "a"
    assert flow["bytes_acked"] >= payload
    assert flow["rtt_ms_median"] > 0


def test_the_payload_does_not_repeat_within_a_compressors_reach(endpoint):
    here = endpoint()
    _, _, body = here.get("/v1/download?bytes=2000000", here.session().id)
    assert len(zlib.compress(body, 9)) > 0.99 * len(body)


def test_records_of_the_sender_ten_a_second(endpoint):
    here = endpoint(session_bytes=10**12)
    session = here.session()
    received = here.count("/v1/download?seconds=1.05", session.id)
    (summary,) = here.sessions.end(session.id, "probe-1").summaries
    assert summary["bytes_sent"] == summary["bytes_acked"] < received < summary["bytes_sent"] + 500
    points = here.points()
    connections = [p for p in points if p.measurement == "connection"]
    subflows = [p for p in points if p.measurement == "subflow"]
    assert 9 <= len(connections) <= 16
    for point in points:
        assert (point.tags["end"], point.tags["probe"], point.tags["boot"]) == ("server", "probe-1", "boot-1")
        assert "seq" not in point.fields
        assert point.fields["monotonic_ns"] > 0
    assert {(p.tags["path"], p.tags["operator"], p.tags["subflow"]) for p in subflows} == {("a", "A", "1")}
    acked = [p.fields["bytes"] for p in connections]
    assert acked == sorted(acked)
    assert acked[-1] == summary["bytes_sent"]
    goodputs = [p.fields["goodput_bit_per_s"] for p in connections if "goodput_bit_per_s" in p.fields]
    assert max(goodputs) > 1e6


def test_a_connection_that_came_as_tcp_is_a_fallback_in_an_mptcp_session(endpoint):
    here = endpoint()
    session = here.session("mptcp")
    here.get("/v1/download?bytes=1000", session.id, "tcp")
    assert here.sessions.end(session.id, "probe-1").summaries[0]["fallback"] is True


def test_a_download_for_a_time_ends_in_time_even_when_nobody_reads(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=0.3", session.id))
        client.recv(1)
        started = time.monotonic()
        ended = here.sessions.end(session.id, "probe-1", wait_s=8.0)
        assert time.monotonic() - started < 7.0
    (summary,) = ended.summaries
    assert summary["end"] == "not acknowledged"
    assert summary["bytes_acked"] < summary["bytes_sent"]


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_a_download_for_a_time_is_complete_when_the_client_closes_at_its_end(endpoint, kind):
    here = endpoint(session_bytes=10**12)
    session = here.session(kind)
    with here.connect(kind) as client:
        client.sendall(request("/v1/download?seconds=0.3", session.id))
        until = None
        while until is None or time.monotonic() < until:
            client.recv(1 << 16)  # slower than the sender: much is still under way when the time is over
            until = until or time.monotonic() + 0.4
    assert here.sessions.end(session.id, "probe-1", wait_s=5.0).summaries[0]["end"] == "complete"


def test_a_stalled_download_is_given_up(endpoint):
    here = endpoint(stall_s=0.3)
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?bytes=500000000", session.id))
        assert session.await_quiet(5) is True or session.live == 1
        deadline = time.monotonic() + 5
        while not session.summaries:
            assert time.monotonic() < deadline
        assert session.summaries[0]["end"] == "stalled"
        with pytest.raises(ConnectionResetError):
            read_answer(client)
    assert session.used_bytes == session.summaries[0]["bytes_sent"] < 500_000_000


def test_a_client_that_goes_away_ends_its_download(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
    assert here.sessions.end(session.id, "probe-1", wait_s=5.0).summaries[0]["end"] == "client gone"


def test_a_session_ended_meanwhile_cuts_its_download(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        assert here.sessions.end(session.id, "probe-1", wait_s=0.5).summaries[0]["end"] == "stopped"


def test_the_budget_ends_a_download_and_refuses_the_next(endpoint):
    here = endpoint(session_bytes=3_000_000)
    session = here.session()
    _, _, body = here.get("/v1/download?seconds=5", session.id)
    assert len(body) == 3_000_000
    status, _, answer = here.get("/v1/download?bytes=1", session.id)
    assert (status, "budget" in answer["error"]) == (429, True)


def test_nothing_is_sent_without_an_open_session(endpoint):
    here = endpoint()
    for session in ("", "0" * 32, "x"):
        status, headers, answer = here.get("/v1/download?bytes=1000", session)
        assert (status, list(answer)) == (403, ["error"])
        assert int(headers["content-length"]) < 200


@pytest.mark.parametrize(
    ("target", "status"),
    [("/v1/download?bytes=0", 400), ("/v1/download", 400), ("/v1/nothing", 404), ("/v1/download?seconds=99999", 429)],
)
def test_nonsense_is_answered_briefly(endpoint, target, status):
    here = endpoint()
    answer = here.get(target, here.session().id)
    assert answer[0] == status
    assert int(answer[1]["content-length"]) < 200


def test_other_methods_are_refused(endpoint):
    with endpoint().connect() as client:
        client.sendall(b"POST /v1/download?bytes=5 HTTP/1.1\r\nHost: x\r\n\r\n")
        assert read_answer(client)[0] == 405


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_whoami_tells_the_peers_address(endpoint, kind):
    here = endpoint()
    with here.connect(kind) as client:
        client.sendall(b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n")
        status, headers, answer = read_answer(client)
        port = client.getsockname()[1]
    assert (status, answer) == (200, {"address": "127.0.0.1", "port": port})
    assert int(headers["content-length"]) <= 200


def test_whoami_within_a_session_tells_of_the_handshake(endpoint):
    here = endpoint()
    session = here.session()
    before = here.get("/v1/whoami", session.id)[2]
    plain = here.get("/v1/whoami", session.id, kind="tcp")[2]
    after = here.get("/v1/whoami", session.id)[2]
    assert [a["multipath"] for a in (before, plain, after)] == ["native", "none", "native"]
    assert after["multipath_syns"] == before["multipath_syns"] + 1
    assert plain["handshake_rtt_ms"] > 0
    assert session.live == 0


def test_a_request_that_does_not_come_is_not_waited_for(endpoint):
    here = endpoint(head_s=0.2)
    with here.connect() as client:
        client.sendall(b"GET /v1/whoami HTTP/1.1\r\nHos")
        assert read_answer(client)[0] == 408


def test_an_endless_head_is_refused(endpoint):
    here = endpoint()
    with here.connect() as client:
        client.sendall(b"GET /v1/whoami HTTP/1.1\r\nX: " + b"a" * 8300)
        assert read_answer(client)[0] == 431


def test_one_address_gets_so_many_connections_and_then_503(endpoint):
    here = endpoint(connections_per_address=2, head_s=5.0)
    waiting = [here.connect(), here.connect()]
    with here.connect() as third:
        assert read_answer(third)[0] == 503
    for client in waiting:
        client.close()
    deadline = time.monotonic() + 5
    status = None
    while status != 200:
        assert time.monotonic() < deadline
        with contextlib.suppress(ConnectionResetError):  # a 503 that was said before the request was read may be lost
            status = here.get("/v1/whoami")[0]


def test_stopping_ends_what_is_running(endpoint):
    here = endpoint()
    session = here.session()
    with here.connect() as client:
        client.sendall(request("/v1/download?seconds=60", session.id))
        client.recv(1000)
        started = time.monotonic()
        here.stop()
        assert time.monotonic() - started < 5
    assert session.summaries[0]["end"] == "stopped"
    with pytest.raises(ConnectionRefusedError):
        here.connect()
