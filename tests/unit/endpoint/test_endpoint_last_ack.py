"""The time of the last acknowledgement, and several connections of both kinds in one session."""

from endpoint_on_loopback import PATHS, head, request, wait_until


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
