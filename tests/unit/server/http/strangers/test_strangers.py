"""Requests and connections of strangers, and of probes with a good token that send too much; meanwhile a good probe is served."""

import contextlib
import gzip
import json
import select
import ssl
import time
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import pytest
from attacked import FAILURES, PATIENCE_S, PER_ADDRESS, STRANGERS, heard, line, statuses

from support.probe_runs import MANIFEST
from support.serve_on_loopback import command

BOTH = pytest.mark.parametrize("which", ["gateway", "endpoint"])
pytestmark = pytest.mark.usefixtures("meanwhile")
CLOSE = "Host: x\r\nConnection: close\r\n"


NO_TOKENS = [
    None, "", "Bearer", "Bearer ", "Bearer \t", "Basic cHJvYmUtMTp4", "Bearer tandem_" + "A" * 43,
    "Bearer tandem_" + "A" * 43 + ", Bearer x", "Bearer ' OR 1=1 --", "Bearer \xff\xfe", "Bearer " + "A" * 12_000, "tandem_" + "A" * 43,
]  # fmt: skip


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
    runs = json.loads(command("ledger", "--config", attacked.folder / "server.toml", "--json")[1])["runs"]
    assert [row["probe"] for row in runs if row["id"] == "run-mine"] == ["probe-1"]


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
    """All files but those that the database, SQLite and the worker come and go with."""
    return {
        f for f in folder.rglob("*") if "influxdb" not in f.parts and not f.name.endswith(("-wal", "-shm", ".lock"))
    }


OTHER = b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n"
PARTED = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5",
    "Content-Length: 0\r\nContent-Length: 40", "Content-Length: 0, 40", "Content-Length: -1", "Content-Length: +3",
    "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding : chunked", "X\0: y",
]  # fmt: skip


@BOTH
def test_a_request_that_two_readers_would_part_in_two_places(attacked, which):
    """Refused, and what follows it is not answered."""
    path = {"gateway": "/v1/records", "endpoint": "/v1/sessions"}[which]
    for headers in PARTED:
        head = f"POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {attacked.token}\r\n{headers}\r\n\r\n"
        body = b"0\r\n\r\n" if "Transfer-Encoding" in headers else b""
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


def trickled(connection, first, more):
    """Say ``first``, then ``more`` byte by byte, as long as the server stays; what it said."""
    told = b""
    try:
        connection.sendall(first)
        connection.settimeout(0.2)
        for _ in range(300):
            try:
                said = connection.recv(65536)
                if not said:
                    return told
                told += said
            except TimeoutError:
                connection.sendall(more)
    except OSError:
        return told
    raise AssertionError("the server listened to single bytes for a minute")


def asking(path, *lines):
    return "\r\n".join([f"POST {path} HTTP/1.1", "Host: x", *lines, "", ""]).encode()


def test_each_ends_by_itself(attacked):
    """All at the same time, at both ports: what never comes, and what comes byte by byte."""
    token = f"Authorization: Bearer {attacked.token}"

    def told(which, secured, first, more):
        with (attacked.tls if secured else attacked.plain)(which) as connection:
            if more:
                return trickled(connection, first, more)
            connection.sendall(first)
            return heard(connection)

    cases = [("gateway", True, b"GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\nGET /", b"x", [200])]
    for which, path in (("gateway", "/v1/records"), ("endpoint", "/v1/sessions")):
        cases += [
            (which, False, b"", b"", []),
            (which, False, b"\x16\x03\x01\x02\x00\x01", b"\x00", []),
            (which, True, b"", b"", []),
            (which, True, b"GET /v1/health HTTP/1.1\r\nX: ", b"x", []),
            # Told 401 at once; the body that still comes does not keep the connection.
            (which, True, asking(path, "Content-Length: 1000000"), b"x", [401, 429]),
            (which, True, asking(path, token, "Content-Length: 10"), b"", [408]),
        ]
    with ThreadPoolExecutor(len(cases)) as together:
        answers = list(together.map(lambda case: told(*case[:4]), cases))
    for (which, _, first, more, expected), answer in zip(cases, answers, strict=True):
        found = statuses(answer)
        # Of a stranger's body also the answer may be lost with the connection.
        right = found == expected if expected in ([200], [408]) else set(found) <= set(expected)
        assert (right, bool(answer) <= bool(expected)) == (True, True), (which, first, more, answer)


def alive(connections):
    watch = select.poll()
    for one in connections:
        watch.register(one, select.POLLIN | select.POLLRDHUP)
    ended = {number for number, _ in watch.poll(0)}
    return [one for one in connections if one.fileno() not in ended]


def awaited_alive(connections, most):
    """Wait until no more than so many are left."""
    deadline = time.monotonic() + PATIENCE_S
    while len(left := alive(connections)) > most:
        assert time.monotonic() < deadline, len(left)
        select.select(left, [], [], 0.05)
    return left


@BOTH
@pytest.mark.parametrize("addresses", [1, 50])
def test_strangers_have_their_share_and_the_newest_gets_in(attacked, which, addresses):
    bound = PER_ADDRESS if addresses == 1 else STRANGERS
    crowd = [attacked.plain(which, f"127.0.1.{1 + i % addresses}") for i in range(bound * 3)]
    try:
        with attacked.tls(which, "127.0.1.1") as newest:
            newest.sendall(b"GET /v1/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert statuses(heard(newest)) == [{"gateway": 200, "endpoint": 404}[which]]
        awaited_alive(crowd, bound)
    finally:
        for one in crowd:
            one.close()


def test_bombs(attacked):
    packer = zlib.compressobj(9, wbits=31)
    whole = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    for name, expected, bomb in (
        ("one", 413, whole),
        ("members", 413, gzip.compress(bytes(1 << 20)) * 500),
        ("nested", 400, gzip.compress(gzip.compress(bytes(64 << 20)))),
        ("empty members", 200, gzip.compress(b"", mtime=0) * 200_000),
        ("too long as sent", 413, bytes(9 << 20)),
    ):
        status, _, told = attacked.gateway("POST", "/v1/records", bomb, {"Content-Encoding": "gzip"})
        assert (status, len(json.dumps(told)) < 1000) == (expected, True), (name, told)


def test_lines_that_are_too_much(attacked):
    long = f"health,boot=b mobile=true,seq=1i,monotonic_ns=1i,{'x' * 7_000_000}=1 {time.time_ns()}"
    tags = "health," + ",".join(f"t{i}=v" for i in range(50_000)) + f" seq=1i {time.time_ns()}"
    fields = "health,boot=b " + ",".join(f"f{i}=1i" for i in range(50_000)) + f" {time.time_ns()}"
    same = "health,boot=b " + ",".join(["seq=1i"] * 50_000) + f" {time.time_ns()}"
    for body in (long, tags, fields, same, "\\" * 1_000_000, '"' * 1_000_000, "health,boot=" + "\\ " * 500_000):
        status, _, told = attacked.gateway("POST", "/v1/records", body)
        assert status == 200
        assert (told["accepted"], [one["line"] for one in told["rejected"]]) == (0, [0])
        assert len(json.dumps(told)) < 1000


def test_more_than_its_share_a_minute(attacked):
    """The batch that passes the bound is still taken; then the probe is told when to come again."""
    for name, body, good in [
        ("probe-lines", "\n".join(line(i + 1, "rate") for i in range(8)), 1),
        ("probe-requests", "", 3),
        ("probe-bytes", line(1, "rate") + "\n" * 400, 1),
    ]:
        token, taken = attacked.probe(name), 0
        while (answer := attacked.gateway("POST", "/v1/records", body, token=token))[0] == 200:
            taken += 1
            assert taken < 50, name
        # More than that only where the machine took so long that some of it had come back.
        assert (answer[0], taken >= good) == (429, True), name
        headers = {k.lower(): v for k, v in answer[1].items()}
        assert 1 <= int(headers["retry-after"]) <= 60, name


def test_manifests_that_are_too_much(attacked):
    repeated = "{" + '"id":1,' * 100_000 + '"x":1}'
    for body in ("[" * 100_000, '{"a":' * 100_000, repeated, "1" * 900_000, '"' + "\\u0000" * 90_000):
        assert attacked.gateway("PUT", "/v1/runs/run-large", body)[0] == 400
