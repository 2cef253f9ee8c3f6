"""Probes with a good token that send too much: compromised ones, or faulty."""

import gzip
import json
import time
import zlib

import pytest
from attacked import line

pytestmark = pytest.mark.usefixtures("meanwhile")
PACKED = {"Content-Encoding": "gzip"}


def bombs():
    packer = zlib.compressobj(9, wbits=31)
    whole = b"".join(packer.compress(bytes(1 << 20)) for _ in range(64)) + packer.flush()
    return {
        "one": whole,
        "members": gzip.compress(bytes(1 << 20)) * 500,
        "nested": gzip.compress(gzip.compress(bytes(64 << 20))),
        "empty members": gzip.compress(b"", mtime=0) * 200_000,
        "too long as sent": bytes(9 << 20),
    }


def test_bombs(attacked):
    for name, bomb in bombs().items():
        status, _, told = attacked.gateway("POST", "/v1/records", bomb, PACKED)
        expected = {"nested": (400,), "empty members": (200,)}.get(name, (413,))
        assert status in expected, (name, told)
        assert len(json.dumps(told)) < 1000


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
    for body in (
        "[" * 100_000,
        '{"a":' * 100_000,
        "{" + '"id":1,' * 100_000 + '"x":1}',
        "1" * 900_000,
        '"' + "\\u0000" * 90_000,
    ):
        assert attacked.gateway("PUT", "/v1/runs/run-large", body)[0] == 400
