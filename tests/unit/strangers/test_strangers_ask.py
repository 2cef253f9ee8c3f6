"""Requests as a stranger makes them: without a token, with somebody else's, malformed, made to be read in two ways."""

import contextlib
import json
import ssl
import warnings

import pytest
from attacked import FAILURES, heard, line, statuses
from serve_on_loopback import command
from test_ingest_body import MANIFEST

BOTH = pytest.mark.parametrize("which", ["gateway", "endpoint"])
pytestmark = pytest.mark.usefixtures("meanwhile")
CLOSE = "Host: x\r\nConnection: close\r\n"


NO_TOKENS = [
    None,
    "",
    "Bearer",
    "Bearer ",
    "Bearer \t",
    "Basic cHJvYmUtMTp4",
    "Bearer tandem_" + "A" * 43,
    "Bearer tandem_" + "A" * 43 + ", Bearer x",
    "Bearer ' OR 1=1 --",
    "Bearer \xff\xfe",
    "Bearer " + "A" * 12_000,
    "tandem_" + "A" * 43,
]


@BOTH
def test_no_good_token(attacked, which):
    gateway = ("POST /v1/records", "PUT /v1/runs/run-1", "POST /v1/traces", f"PATCH /v1/traces/{64 * '0'}")
    asks = {"gateway": gateway, "endpoint": ("POST /v1/sessions",)}[which]
    nearly = [f"Bearer {attacked.token[:-1]}", f"Bearer {attacked.token}x"]
    for number, authorization in enumerate([*NO_TOKENS, *nearly]):
        header = "" if authorization is None else f"Authorization: {authorization}\r\n"
        for ask in asks:
            whole = f"{ask} HTTP/1.1\r\n{CLOSE}{header}Content-Length: 1\r\n\r\nx"
            told = attacked.says(whole, which, f"127.0.2.{number + 1}")
            assert statuses(told) in ([401], [400]), (ask, authorization)
            assert b"AAAA" not in told


@BOTH
def test_a_token_in_the_address_is_none_and_is_not_written_down(attacked, which):
    """That it stands in no log is looked at when the server has ended (``attacked``)."""
    for token in (attacked.token, "tandem_" + "B" * 43):
        told = attacked.says(f"GET /v1/campaigns?token={token} HTTP/1.1\r\n{CLOSE}\r\n", which, "127.0.2.200")
        assert statuses(told) in ([401], [404])
        assert token.encode() not in told


@BOTH
def test_a_head_without_an_end(attacked, which):
    with attacked.tls(which) as connection:
        with contextlib.suppress(OSError):  # refused while it still came
            connection.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 1_000_000)
        assert statuses(heard(connection)) in ([400], [])


def test_who_fails_too_often_is_told_to_wait_and_a_good_token_is_not(attacked):
    """Behind one address there may be a carrier's thousands: their good tokens go on to work."""
    ask = f"GET /v1/campaigns HTTP/1.1\r\n{CLOSE}\r\n"
    answers = [attacked.says(ask, source="127.0.3.1") for _ in range(FAILURES + 3)]
    assert statuses(answers[0]) == [401]
    assert statuses(answers[-1]) == [429]
    assert b"retry-after: " in answers[-1].lower()
    good = f"GET /v1/campaigns HTTP/1.1\r\n{CLOSE}Authorization: Bearer {attacked.token}\r\n\r\n"
    assert statuses(attacked.says(good, source="127.0.3.1")) == [200]


def test_many_in_one_go_are_answered_in_turn_and_end(attacked):
    told = attacked.says("GET /v1/campaigns HTTP/1.1\r\nHost: x\r\n\r\n" * 500, source="127.0.3.2")
    # As many as wait at once, or as fail at most; then it is told why, and that was all.
    assert set(statuses(told)) <= {400, 401, 429}
    assert len(statuses(told)) <= 20


def test_another_probes_token_writes_under_its_own_name_only(attacked):
    other = attacked.probe("probe-other")
    body = "\n".join(line(i + 1, "forged", probe="probe-1") for i in range(3))
    assert attacked.gateway("POST", "/v1/records", body, token=other)[2]["accepted"] == 3
    assert attacked.stored("forged") == {"probe-other": 3}
    mine = json.dumps({**MANIFEST, "id": "run-mine"})
    assert attacked.gateway("PUT", "/v1/runs/run-mine", mine)[0] == 200
    assert attacked.gateway("PUT", "/v1/runs/run-mine", mine, token=other)[0] == 400
    stolen = json.dumps({**MANIFEST, "id": "run-mine", "probe": "probe-other"})
    status, _, told = attacked.gateway("PUT", "/v1/runs/run-mine", stolen, token=other)
    assert (status, told) == (400, {"error": "run run-mine belongs to another probe"})
    config = attacked.folder / "server.toml"
    (row,) = [
        r for r in json.loads(command("ledger", "--config", config, "--json")[1])["runs"] if r["id"] == "run-mine"
    ]
    assert row["probe"] == "probe-1"


@BOTH
def test_a_revoked_and_a_rotated_token(attacked, which):
    name, config = f"probe-left-{which}", attacked.folder / "server.toml"
    ask = {"gateway": ("GET", "/v1/campaigns"), "endpoint": ("GET", "/v1/pages")}[which]
    first = attacked.probe(name)
    assert attacked.https(attacked.port(which), *ask, token=first)[0] == 200
    second = command("probe", "rotate", name, "--config", config)[1].strip()
    assert attacked.https(attacked.port(which), *ask, token=first)[0] == 401
    assert attacked.https(attacked.port(which), *ask, token=second)[0] == 200
    assert command("probe", "revoke", name, "--config", config)[0] == 0
    assert attacked.https(attacked.port(which), *ask, token=second)[0] == 401


ELSEWHERE = [
    "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "../../etc/passwd", "run%00", "run%0d%0aX: y", "-x", "x" * 65, "%ff", "a/b", ".",
]  # fmt: skip


@pytest.mark.parametrize(
    ("which", "method", "place"),
    [
        ("gateway", "PUT", "/v1/runs/{}"),
        ("gateway", "GET", "/v1/campaigns/{}"),
        ("gateway", "PUT", "/v1/campaigns/{}/state"),
        ("gateway", "GET", "/v1/traces/{}"),
        ("gateway", "PATCH", "/v1/traces/{}"),
        ("endpoint", "PUT", "/v1/sessions/{}/result"),
        ("endpoint", "GET", "/v1/pages/{}"),
    ],
)
def test_a_name_that_leads_elsewhere(attacked, which, method, place):
    before = files(attacked.folder)
    login = f"Authorization: Bearer {attacked.token}\r\nContent-Length: 2\r\n"
    for name in ELSEWHERE:
        told = attacked.says(f"{method} {place.format(name)} HTTP/1.1\r\n{CLOSE}{login}\r\n{{}}", which)
        assert statuses(told)[0] in (400, 404, 405), name
        assert b"root:" not in told
    assert files(attacked.folder) == before


def files(folder):
    """All files but those that the database and SQLite come and go with."""
    return {f for f in folder.rglob("*") if "influxdb" not in f.parts and not f.name.endswith(("-wal", "-shm"))}


OTHER = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"


EMPTY = b"0\r\n\r\n"
PARTED = [
    ("Content-Length: 5\r\nTransfer-Encoding: chunked", EMPTY),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5", EMPTY),
    ("Content-Length: 0\r\nContent-Length: 40", b""),
    ("Content-Length: 0, 40", b""),
    ("Content-Length: -1", b""),
    ("Content-Length: +3", b""),
    ("Transfer-Encoding: gzip, chunked", EMPTY),
    ("Transfer-Encoding: chunked, identity", EMPTY),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", EMPTY),
    ("Transfer-Encoding : chunked", EMPTY),
    ("X\0: y", b""),
]


@BOTH
def test_a_request_that_two_readers_would_part_in_two_places(attacked, which):
    """Refused, and what follows it is not answered."""
    path = {"gateway": "/v1/records", "endpoint": "/v1/sessions"}[which]
    for headers, body in PARTED:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacked.token}\r\n{headers}\r\n\r\n"
        told = statuses(attacked.says(head.encode() + body + OTHER, which))
        assert (len(told), set(told) <= {400, 501}) == (1, True), headers


def test_what_follows_an_answer_and_is_no_http(attacked):
    head = "POST /v1/records HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    with contextlib.ExitStack() as all_at_once:
        for after in (b"zz\r\n", b"5\r\nabc", b"\x00\xff" * 10):
            connection = all_at_once.enter_context(attacked.tls(source="127.0.3.3"))
            all_at_once.callback(heard, connection)
            connection.sendall(head.encode())
            assert statuses(connection.recv(65536)) == [401]
            connection.sendall(after)


def test_http_of_before_and_half_a_connection(attacked):
    assert b" 200 OK" in attacked.says("GET /v1/health HTTP/1.0\r\n\r\n")
    assert statuses(attacked.says("GET /v1/health HTTP/2.0\r\nHost: x\r\n\r\n")) == [505]
    with attacked.plain() as connection:
        connection.shutdown(1)
        assert heard(connection) == b""
    with attacked.tls() as connection:
        # A whole head could be answered before the goodbye, whatever the body.
        connection.sendall(b"POST /v1/records HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n")
        plain = connection.unwrap()  # says goodbye in the middle of a head
        assert statuses(heard(plain)) == []


@BOTH
def test_plain_http_on_the_port_for_tls(attacked, which):
    with attacked.plain(which) as connection:
        connection.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\n\r\n")
        assert b"HTTP/" not in heard(connection)


@BOTH
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
def test_versions_of_tls_that_are_broken(attacked, which, version):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that is what is tried
        with pytest.raises((ssl.SSLError, ConnectionError)):
            attacked.tls(which, ciphers="ALL:@SECLEVEL=0", minimum_version=version, maximum_version=version)
    for good in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with attacked.tls(which, minimum_version=good, maximum_version=good) as connection:
            assert connection.version() == good.name.replace("_", ".", 1).replace("TLSv1.", "TLSv1.")
