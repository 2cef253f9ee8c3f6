"""The control channel: sessions for those with a token, and clear refusals; a request's head, read strictly, whatever arrives."""

import asyncio
import contextlib
import json

import pytest
from endpoint_on_loopback import Endpoint, full_disk
from hypothesis import example, given
from hypothesis import strategies as st

from support.asgi_request import asked
from support.hostile_json import any_json
from tandem_server.endpoint.control import RESULT_BYTES, InvalidRequest, Results, control_app, read_session_request
from tandem_server.endpoint.http1 import HEAD_LIMIT_BYTES, BadRequest, read_head, read_transfer
from tandem_server.endpoint.sessions import Limits
from tandem_server.endpoint.sockets import Options, OptionsError, negotiate
from tandem_server.http.rates import DiskShare, Reserve

ASK = {"run": "run-1", "kind": "mptcp", "path": "a", "bytes": 1000, "seconds": None}


@pytest.fixture
def channel(registry):
    here = Endpoint(registry, Limits(sessions_per_probe=2, session_bytes=5000))
    token = registry.probes.rotate("probe-1")
    further = ("203.0.113.11", "2001:db8::11")
    results = Results(registry.file.parent / "results", DiskShare(Reserve([registry.file.parent], 0), 10**9))
    app = control_app(registry, here.sessions, 8480, results, further_addresses=further)

    def request(method, path, body=None, login=f"Bearer {token}"):
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = [(b"authorization", login.encode())] if login else []
        status, _, told = asyncio.run(asked(app, method, path, [raw], headers))
        return status, told

    request.endpoint = here
    yield request
    here.stop()


def test_a_session_is_opened_used_and_ended(channel):
    paths = {"a": {"operator": "A", "address": "127.0.0.1"}, "b": {"operator": "B", "address": None}}
    status, opened = channel("POST", "/v1/sessions", {**ASK, "paths": paths})
    assert status == 201
    assert (opened["budget_bytes"], opened["measurement_port"], opened["expires_s"]) == (1000, 8480, 120)
    assert opened["environment"]["congestion_control"] == opened["options"]["congestion_control"] != ""
    assert opened["options"]["nodelay"] is False
    assert opened["further_addresses"] == ["203.0.113.11", "2001:db8::11"]
    assert opened["environment"]["tcp_wmem"].count(" ") == 2
    channel.endpoint.get("/v1/download?bytes=1000", opened["session"])
    status, told = channel("DELETE", f"/v1/sessions/{opened['session']}")
    assert (status, told["bytes_sent"], len(told["connections"])) == (200, 1000, 1)
    (flow,) = told["connections"][0]["subflows"]
    assert flow["path"] == "a"
    assert channel("DELETE", f"/v1/sessions/{opened['session']}")[0] == 404


def test_options_are_negotiated_told_and_held(channel):
    buffers = {"send_buffer_bytes": 100_000, "receive_buffer_bytes": 50_000}
    options = {"congestion_control": "reno", "nodelay": True, **buffers}
    status, opened = channel("POST", "/v1/sessions", {**ASK, "options": options})
    assert status == 201
    told = opened["options"]
    assert (told["congestion_control"], told["nodelay"]) == ("reno", True)
    # The kernel counts its own overhead.
    assert (told["send_buffer_bytes"], told["receive_buffer_bytes"]) == (200_000, 100_000)
    channel.endpoint.get("/v1/download?bytes=1000", opened["session"])
    (connection,) = channel("DELETE", f"/v1/sessions/{opened['session']}")[1]["connections"]
    assert {key: connection[key] for key in told} == told


def test_a_controller_that_the_kernel_lacks_is_refused_with_those_it_has_and_a_coupled_one_with_the_command(
    channel, tmp_path
):
    status, told = channel("POST", "/v1/sessions", {**ASK, "options": {"congestion_control": "absent"}})
    assert (status, "'absent': the server's kernel has " in told["error"]) == (400, True)
    assert ("reno" in told["error"], "hint" in told["error"]) == (True, False)
    (tmp_path / "available").write_text("reno cubic\n")
    with pytest.raises(
        OptionsError, match=r"'olia': .*reno, cubic; hint: on the server, tandem-server congestion load"
    ):
        negotiate(Options("olia"), tmp_path / "available")


def test_a_result_is_kept_beside_its_session(channel, registry):
    opened = channel("POST", "/v1/sessions", ASK)[1]["session"]
    place = f"/v1/sessions/{opened}/result"
    assert channel("PUT", place, {"a": 1}) == (200, {"bytes": 8})
    assert channel("PUT", place, {"a": 22}) == (200, {"bytes": 9})  # the last one holds
    kept = registry.file.parent / "results/probe-1/run-1"
    assert [(one.name, json.loads(one.read_text())) for one in kept.iterdir()] == [(f"{opened}.json", {"a": 22})]
    channel("DELETE", f"/v1/sessions/{opened}")
    assert registry.sessions.all()[0].sent_bytes == 17  # both count against the probe's day
    assert channel("PUT", place, {"a": 1})[0] == 404


def test_what_is_no_result_too_large_or_anothers_is_refused(channel, registry):
    opened = channel("POST", "/v1/sessions", ASK)[1]["session"]
    place = f"/v1/sessions/{opened}/result"
    for body in (b"{", b"[]", b"NaN", b'{"a": NaN}', b"[" * 100_000, b""):
        assert channel("PUT", place, body)[0] == 400, body[:20]
    assert not (registry.file.parent / "results").exists()
    assert channel("PUT", place, {"a": "x" * RESULT_BYTES})[0] == 413
    assert channel("PUT", place, {}, None)[0] == 401
    assert channel("PUT", place, {}, f"Bearer {registry.probes.add('probe-9')}")[0] == 404


def test_a_result_or_a_session_that_cannot_be_written_is_a_later(channel, registry):
    with full_disk(registry):
        status, told = channel("POST", "/v1/sessions", ASK)
    assert (status, "disk is full" in told["error"]) == (503, True)
    (registry.file.parent / "results").write_text("in the way")
    opened = channel("POST", "/v1/sessions", ASK)[1]["session"]
    status, told = channel("PUT", f"/v1/sessions/{opened}/result", {})
    assert (status, "cannot keep results now" in told["error"]) == (503, True)


def test_nothing_opens_without_a_good_token_or_for_what_is_no_request_for_a_session(channel):
    for login in (None, "", "Bearer", "Bearer x", "Basic abc", "Bearer tandem_" + "A" * 43):
        assert channel("POST", "/v1/sessions", ASK, login)[0] == 401
        assert channel("DELETE", "/v1/sessions/" + "0" * 32, None, login)[0] == 401
    answers = [channel("POST", "/v1/sessions", {**ASK, **change}) for change in NO_ASKS]
    assert [c for c, (status, told) in zip(NO_ASKS, answers, strict=True) if status != 400 or not told["error"]] == []
    assert [channel("POST", "/v1/sessions", body)[0] for body in (b"{", b"[]", b" " * 20_000)] == [400, 400, 413]


def test_a_budget_may_be_asked_for_by_itself_and_more_than_a_probes_share_is_refused_with_the_reason(channel):
    ask = {**ASK, "kind": "any", "bytes": None, "budget_bytes": 4000}
    assert channel("POST", "/v1/sessions", {**ask, "budget_bytes": 5001})[0] == 429
    assert channel("POST", "/v1/sessions", {**ASK, "bytes": 5001})[0] == 429
    assert channel("POST", "/v1/sessions", ask)[1]["budget_bytes"] == 4000
    assert [channel("POST", "/v1/sessions", ASK)[0] for _ in range(2)] == [201, 429]
    assert "2 open sessions" in channel("POST", "/v1/sessions", ASK)[1]["error"]


NO_OPTIONS = {
    "colour": ["red"],
    "congestion_control": ["../x", 5, "absent"],
    "send_buffer_bytes": [1, True],
    "receive_buffer_bytes": [2**31],
    "nodelay": [1],
}
NO_VALUES = {
    "run": ["../x", 5],
    "kind": ["udp"],
    "bytes": [0, True, 1.5, 10**15],
    "seconds": [5],
    "budget_bytes": [5],
    "path": ["", "a\nb", "\ud800"],
    "colour": ["red"],
    "options": [[], *({name: value} for name, values in NO_OPTIONS.items() for value in values)],
    "paths": [[], {"a": "1.2.3.4"}, {str(i): {} for i in range(9)}]
    + [{"a": peer} for peer in ({"address": "1.2.3"}, {"address": 5}, {"operator": "x" * 65})],
}
NO_ASKS = [{name: value} for name, values in NO_VALUES.items() for value in values]
NO_ASKS += [
    {"bytes": None, **more} for more in ({"seconds": -1}, {"seconds": "5"}, {"budget_bytes": 0}, {"budget_bytes": "5"})
]


@given(
    st.one_of(
        st.binary(max_size=50),
        st.dictionaries(st.sampled_from([*ASK, "paths", "options", "budget_bytes"]), any_json(8)).map(
            lambda d: json.dumps({**ASK, **d}).encode()
        ),
    )
)
def test_any_body_is_a_request_or_refused(body):
    with contextlib.suppress(InvalidRequest):
        ask = read_session_request(body)
        assert ask.kind in ("mptcp", "tcp", "any")
        assert ask.payload_bytes is None or ask.payload_bytes > 0
        assert ask.seconds is None or ask.seconds > 0


# --- the request's head


GOOD = b"GET /v1/download?bytes=5 HTTP/1.1\r\nHost: x\r\nX-Tandem-Session: abc\r\n\r\n"
TOKENS = [
    GOOD,
    *(one.encode() for one in ["GET", " ", "/v1/whoami", *"/?&%:x\n\r\0", "a=b", "HTTP/1.1", "\r\n", "Host"]),
]
PIECES = st.lists(st.sampled_from(TOKENS), max_size=15).map(b"".join)


def test_a_request_is_read_and_only_a_post_has_a_body():
    request = read_head(GOOD)
    assert (request.method, request.path, request.query) == ("GET", "/v1/download", {"bytes": "5"})
    assert request.headers == {"host": "x", "x-tandem-session": "abc"}
    post = GOOD.replace(b"GET", b"POST").replace(b"Host: x", b"Host: x\r\nContent-Length: 5")
    assert (read_head(post).body_bytes, read_head(GOOD).body_bytes) == (5, None)
    assert read_head(post).line == "POST /v1/download?bytes=5"


@given(
    st.one_of(st.binary(max_size=300), PIECES, PIECES.map(lambda p: b"GET / HTTP/1.1\r\nHost: x\r\n" + p + b"\r\n\r\n"))
)
@example(b"GET / HTTP/1.1\r\nHost:\r\n\r\n")
def test_any_bytes_are_a_request_or_refused(head):
    with contextlib.suppress(BadRequest):
        request = read_head(head)
        assert request.path.startswith("/")
        assert "host" in request.headers
        for text in (request.method, request.path, *request.query, *request.headers.values()):
            assert text.isascii()
            assert not set(text) & set("\r\n\0")


REFUSED = [
    (b"HTTP/1.1", b"HTTP/1.0", 505), (b"HTTP/1.1", b"HTTP/2.0", 505), (b"HTTP/1.1", b"http/1.1", 400),
    (b"GET ", b"GET  ", 400), (b"GET ", b"get ", 400), (b"/v1/download", b"http://x/v1/download", 400),
    (b"/v1/download", b"/v1/%64ownload", 400), (b"bytes=5", b"bytes=5&bytes=6", 400), (b"bytes=5", b"bytes", 400),
    (b"Host: x\r\n", b"", 400), (b"Host: x", b"Host: x\r\nHost: y", 400), (b"Host: x", b"Host : x", 400),
    (b"Host: x", b"Host: x\r\n folded", 400), (b"Host: x", b"Host: x\r\nContent-Length: 5", 400),
    (b"Host: x", b"Host: x\r\nContent-Length: +5", 400), (b"Host: x", b"Host: x\r\nContent-Length: 5, 5", 400),
    (b"Host: x", b"Host: x\r\nContent-Length: 5\r\nContent-Length: 5", 400),
    (b"GET /v1/download?bytes=5 HTTP/1.1", b"POST /v1/upload HTTP/1.1\r\nTransfer-Encoding: chunked", 400),
    (b"Host: x", b"Host: x\r\nTransfer-Encoding: chunked", 400), (b"Host: x", b"Host: \xff", 400),
    (b"abc", b"abc\r\nX-Tandem-Session: def", 400), (b"Host: x\r\n", b"Host: x\r\n" + b"A: b\r\n" * 64, 431),
    (b"abc", b"a" * HEAD_LIMIT_BYTES, 431), (b"\r\n\r\n", b"\n\n", 400),
]  # fmt: skip
NO_DOWNLOADS = [
    {},
    *({"bytes": text} for text in ("0", "-1", "05", "5.0", "1e9", "9" * 16)),
    *({"seconds": text} for text in ("0", "0.0", "nan", "1.0000", "-1")),
    {"bytes": "5", "seconds": "1"},
    {"bytes": "5", "x": "1"},
]


def status_of(read, asked):
    """With which it is refused; None: it is not."""
    try:
        read(asked)
    except BadRequest as refused:
        return refused.status
    return None


def test_what_is_not_exactly_right_is_refused():
    told = [(old, new, status_of(read_head, GOOD.replace(old, new))) for old, new, _ in REFUSED]
    assert told == REFUSED
    assert [query for query in NO_DOWNLOADS if status_of(read_transfer, query) != 400] == []


@given(st.integers(1, 10**15 - 1), st.integers(1, 99_999_999))
def test_every_size_and_time_in_range_is_understood(payload, milliseconds):
    assert read_transfer({"bytes": str(payload)}).payload_bytes == payload
    assert read_transfer({"seconds": f"{milliseconds / 1000:.3f}"}).seconds == pytest.approx(milliseconds / 1000)
