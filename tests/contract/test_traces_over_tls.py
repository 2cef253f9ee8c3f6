"""Traces against the real gateway over TLS: kept at whatever byte the connection breaks or the process dies; strangers; bad requests."""

import gzip
import json
import random
import time
from dataclasses import replace

import pytest

from support.trace_gateway import TraceGateway, offered
from tandem.schema.trace import read_receipt


def content_of(seed):
    return random.Random(seed).randbytes(1_500_000)


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    made = TraceGateway(tmp_path_factory.mktemp("gateway"))
    made.start()
    yield made
    made.end()
    assert "Traceback" not in made.log()


def grown_to(file, size):
    """Waits until the file has so many bytes: the gateway says nothing before the request ends."""
    deadline_s = time.monotonic() + 60
    while not file.exists() or file.stat().st_size < size:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_trace_in_several_requests_is_received_once_and_for_good(gateway):
    content = content_of(1)
    offer, stream = offered(content, "captures/whole.pcap")
    assert gateway.offer(offer) == (200, {"state": "receiving", "offset": 0})
    assert gateway.send(offer, 0, stream[:400_001]) == (200, {"state": "receiving", "offset": 400_001})
    assert gateway.send(offer, 0, stream) == (409, {"state": "receiving", "offset": 400_001})
    assert gateway.state(offer) == (200, {"state": "receiving", "offset": 400_001})
    status, answer = gateway.send(offer, 400_001, stream[400_001:])
    assert (status, answer["state"]) == (200, "received")
    receipt = read_receipt(answer["receipt"])
    told = (receipt.probe, receipt.name, receipt.sha256, receipt.bytes)
    assert told == ("probe-1", offer.name, offer.sha256, len(content))
    for again in (gateway.offer(offer), gateway.state(offer), *(gateway.send(offer, at, stream) for at in (0, 7))):
        assert again == (200, answer)
    stored = gateway.folder / "traces/probe-1/captures/whole.pcap.gz"
    assert gzip.decompress(stored.read_bytes()) == content
    other, _ = offered(b"other", offer.name)
    assert gateway.offer(other)[0] == 409
    renamed = replace(offer, name="copy.pcap", run=None)
    assert read_receipt(gateway.offer(renamed)[1]["receipt"]).name == "copy.pcap"
    status, answer = gateway.offer(offered(b"", "empty.log")[0])
    assert (status, answer["state"], answer["receipt"]["bytes"]) == (200, "received", 0), "with its offer"


def test_connections_that_a_broken_link_left_open_keep_no_place(gateway):
    content = content_of(5) * 4
    offer, stream = offered(content, "captures/again.pcap", "identity")
    gateway.offer(offer)
    left, offset = [], 0
    for _ in range(7):
        left.append(gateway.begin_sending(offer, offset, len(stream) - offset))
        left[-1].sendall(stream[offset : offset + 520 * 1024])
        grown_to(gateway.stream(offer), offset + 512 * 1024)
        offset = gateway.state(offer)[1]["offset"]
    # The request before may still write down what it has (409), or hold the stream for longer on a slow disk (503): as a probe, go on.
    status, answer = gateway.send(offer, offset, stream[offset:])
    while status in (409, 503):
        assert "too many" not in answer.get("error", "")
        offset = gateway.state(offer)[1].get("offset", offset)
        status, answer = gateway.send(offer, offset, stream[offset:])
    assert (status, answer.get("state")) == (200, "received"), answer
    with left[-1] as hung:
        # It was told at once, though nothing more came from it; by then the newer one may have brought the rest.
        assert hung.recv(4096).startswith((b"HTTP/1.1 409 ", b"HTTP/1.1 200 "))
    for connection in left[:-1]:
        connection.close()
    assert (gateway.folder / "traces/probe-1/captures/again.pcap").read_bytes() == content


def test_a_corrupt_chunk_is_told_and_sent_again(gateway):
    content = content_of(4)
    offer, stream = offered(content, "captures/corrupt.pcap", "identity")
    gateway.offer(offer)
    bad = bytearray(stream)
    bad[200_000] ^= 4
    status, answer = gateway.send(offer, 0, bytes(bad))
    assert (status, answer["state"], answer["offset"]) == (422, "receiving", 3 * 65536)
    assert answer["error"]
    assert gateway.send(offer, 3 * 65536, stream[3 * 65536 :])[1]["state"] == "received"


def test_a_probe_sees_nothing_of_anothers_traces(gateway):
    offer, stream = offered(b"a secret of probe-2" * 1000, "captures/secret.pcap")
    gateway.offer(offer, "probe-2")
    assert gateway.state(offer)[0] == 404
    assert gateway.send(offer, 0, stream)[0] == 404
    assert gateway.send(offer, 0, stream, "probe-2")[1]["state"] == "received"
    assert gateway.offer(offer)[1] == {"state": "receiving", "offset": 0}  # that the server has it is not told


def test_names_that_are_none_are_refused_and_leave_nothing(gateway):
    hidden = ("../x", "/etc/passwd", "a/../b", "a//b", ".hidden", "a/.b", "a\\b", "a\x00b")
    for name in (*hidden, "é", "a/b/c/d/e/f", "x" * 300, "a\n", ""):
        body = {**offered(b"y")[0].as_json(), "name": name}
        assert gateway.ask("POST", "/v1/traces", json.dumps(body))[0] == 400, name


def test_addresses_and_headers_that_are_none(gateway):
    offer, _ = offered(b"z" * 100, "bad-requests")
    gateway.offer(offer)
    path = f"/v1/traces/{offer.sha256}"
    for offset in ("", "-1", "x", "1.0", "9" * 40, "0x1", "٣".encode()):
        assert gateway.ask("PATCH", path, b"z", {"Upload-Offset": offset})[0] == 400
    assert gateway.ask("PATCH", path, b"z", {"Upload-Offset": "0", "Content-Encoding": "gzip"})[0] == 400
    assert gateway.ask("PATCH", path, b"z")[0] == 400
    for address in ("..", "A" * 64, "0" * 63, "%2e%2e", "0" * 64):
        assert gateway.ask("PATCH", f"/v1/traces/{address}", b"z", {"Upload-Offset": "0"})[0] == 404
    assert gateway.send(offer, 5, b"z")[0] == 409
    assert gateway.ask("PUT", path, b"z")[0] == 405
    assert gateway.ask("DELETE", path)[0] == 405
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"format": NaN}', gzip.compress(bytes(9 << 20))):
        headers = {"Content-Encoding": "gzip"} if body[:2] == b"\x1f\x8b" else {}
        assert gateway.ask("POST", "/v1/traces", body, headers)[0] in (400, 413)


def test_a_gateway_killed_in_the_middle_goes_on_where_it_was(tmp_path):
    content = content_of(5)
    gateway = TraceGateway(tmp_path)
    gateway.start()
    offer, stream = offered(content)
    gateway.offer(offer)
    told = gateway.send(offer, 0, stream[:100_000])[1]["offset"]
    for upto in (700_000, 1_300_000):
        connection = gateway.begin_sending(offer, told, len(stream) - told)
        connection.sendall(stream[told:upto])
        grown_to(gateway.stream(offer), told + 512 * 1024)
        gateway.kill()
        connection.close()
        gateway.start()
        status, answer = gateway.offer(offer)
        assert status == 200
        assert told + 512 * 1024 <= answer["offset"] <= upto
        told = answer["offset"]
    status, answer = gateway.send(offer, told, stream[told:])
    assert (status, answer["state"]) == (200, "received")
    assert gzip.decompress((tmp_path / "traces/probe-1/captures/run-1-a.pcap.gz").read_bytes()) == content
    gateway.kill()
    gateway.start()
    assert gateway.offer(offer) == (200, answer)
    gateway.end()
    assert "Traceback" not in gateway.log()


def test_bounds_are_told_with_when_to_try_again(tmp_path):
    gateway = TraceGateway(
        tmp_path, "reserve_bytes = 0\nprobe_bytes_per_day = 1000\nunfinished_per_probe = 1\ntrace_bytes = 100000"
    )
    gateway.start()
    offer, stream = offered(bytes(5000), "a", "identity")
    assert gateway.offer(offered(bytes(100_001), "l")[0])[0] == 413
    gateway.offer(offer)
    status, headers, _ = gateway.ask("POST", "/v1/traces", json.dumps(offered(b"b", "b")[0].as_json()))
    assert (status, headers["retry-after"]) == (429, "3600")
    assert gateway.send(offer, 0, stream[:2000])[0] == 429
    status, headers, _ = gateway.ask("PATCH", f"/v1/traces/{offer.sha256}", stream[2000:], {"Upload-Offset": "2000"})
    assert status == 429
    assert 0 < int(headers["retry-after"]) <= 3600
    assert gateway.state(offer)[1]["offset"] == 2000
    assert gateway.offer(offered(b"c", "c")[0], "probe-2")[0] == 200, "another probe's day is its own"
    gateway.end()
    (tmp_path / "full").mkdir()
    full = TraceGateway(tmp_path / "full", f"reserve_bytes = {1 << 59}")
    full.start()
    assert full.offer(offered(b"a")[0])[0] == 507
    full.end()
