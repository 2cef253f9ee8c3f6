"""The measurement listener with TLS, against the library's own sockets: the same figures, and no more for who does not speak it."""

import contextlib
import socket
import ssl
import struct
import time

import pytest
from endpoint_on_loopback import contexts, head, heard, read_answer, request, wait_until
from hypothesis import given
from hypothesis import strategies as st

from tandem.stream.tls import HANDSHAKE_LIMIT_BYTES, OVERHEAD_BYTES, RECORD_BYTES, Marks


def test_a_download_for_a_time_ends_with_the_end_of_tls(endpoint):
    here = endpoint()
    session = here.session("tcp", tls=True)
    with here.secure("tcp") as client:
        client.sendall(request("/v1/download?seconds=0.3", session.id))
        _, _, body = read_answer(client)  # a stream that only stopped would raise SSLEOFError
    told = here.ended(session)
    assert told["end"] == "complete"
    assert told["bytes_sent"] == told["bytes_acked"] == len(body) == session.used_bytes


def test_the_sender_waits_for_a_slow_reader_without_blocking(endpoint):
    here = endpoint()
    session = here.session("tcp", tls=True)
    with here.secure("tcp") as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 262_144)
        client.sendall(request("/v1/download?bytes=9000000", session.id))
        begun, since_s = client.recv(1), time.monotonic()
        # Records come also while the client does not read.
        wait_until(lambda: sum(line.startswith("connection,") for line in here.shelf.lines) >= 3)
        rested_s = time.monotonic() - since_s
        assert len((begun + heard(client)).partition(b"\r\n\r\n")[2]) == 9_000_000
    told = here.ended(session)
    assert told["request_to_last_ack_s"] >= rested_s
    series = [p.fields["bytes"] for p in here.points() if p.measurement == "connection"]
    assert series == sorted(series)
    assert series[-1] == 9_000_000


@pytest.mark.parametrize("damage", ["closed without the end of TLS", "a record that was changed"])
def test_an_upload_whose_tls_breaks_off_is_not_complete(endpoint, damage):
    here = endpoint()
    session = here.session("tcp", tls=True)
    with here.secure("tcp") as client:
        client.sendall(head("POST", "/v1/upload?seconds=60", session.id) + bytes(1000))
        raw = socket.socket(fileno=client.detach())
    with raw:
        raw.settimeout(60)
        if damage == "a record that was changed":
            raw.sendall(b"\x17\x03\x03\x00\x40" + bytes(64))
        else:
            raw.shutdown(socket.SHUT_WR)
        heard(raw)
    assert here.ended(session)["end"] == "client gone"


def test_whoami_and_a_session_of_the_other_port(endpoint):
    here = endpoint()
    secure, plain = here.session("any", tls=True), here.session("any")

    def asked(*words):
        with here.secure() as client:
            client.sendall(request(*words))
            return read_answer(client)[2], client.getsockname()[1]

    told, port = asked("/v1/whoami")
    assert told == {"address": "127.0.0.1", "port": port}
    assert asked("/v1/whoami", secure.id)[0]["multipath"] == "native"
    assert asked("/v1/download?bytes=1", plain.id)[0] == {"error": "the session is not for TLS"}
    status, _, told = here.get("/v1/download?bytes=1", secure.id)
    assert (status, told) == (403, {"error": "the session is for TLS"})


def test_http_without_tls_is_told_so_in_the_clear_and_tls_at_the_plain_port_at_once(endpoint):
    here = endpoint()
    for asked in (request("/v1/whoami"), b"G", head("POST", "/v1/upload?bytes=5", "x") + b"12345"):
        with here.connect("tcp", here.tls_port) as client:
            client.sendall(asked)
            client.shutdown(socket.SHUT_WR)
            status, _, told = read_answer(client)
        assert (status, told) == (400, {"error": "this port speaks TLS: ask by https"})
    with here.connect("tcp") as client, pytest.raises(ssl.SSLError, match=r"(?i)wrong.version.number"):
        contexts()[1].wrap_socket(client, server_hostname="127.0.0.1")


def hello(**changes):
    context = ssl.create_default_context(cadata=ssl.DER_cert_to_PEM_cert(contexts()[1].get_ca_certs(True)[0]))
    for name, value in changes.items():
        setattr(context, name, value)
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1").do_handshake()
    return outgoing.read()


def padded(record):
    """The same hello with a padding extension of two bytes too many, so that its lengths lie."""
    return record[:3] + struct.pack(">H", len(record) - 5 + 2) + record[5:] + b"\0\0"


def test_what_is_no_hello_of_tls_13_gets_an_alert_at_most(endpoint):
    here = endpoint(head_s=1.0)
    for name, sent in {
        "no handshake": b"\x17\x03\x03\x40\x00" + bytes(500),
        "zeros": bytes(9000),
        "a short hello": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
        "TLS 1.2": hello(maximum_version=ssl.TLSVersion.TLSv1_2),
        "a hello that is none": b"\x16\x03\x01\x02\x00" + bytes(512),
        "lengths that lie": padded(hello()),
    }.items():
        with here.connect("tcp", here.tls_port) as client:
            client.sendall(sent)
            told = heard(client)
        assert len(told) <= 7, name
        assert told[:1] in (b"", b"\x15"), name


def test_a_handshake_that_does_not_go_on_is_ended_and_gives_back_less_than_three_times_what_it_took(endpoint):
    """All the bytes of both directions with their headers, as of the requests: SYN, ACK, hello and FIN against SYN+ACK, flight and FIN."""
    here = endpoint(head_s=1.0)
    whole, least = hello(), hello(minimum_version=ssl.TLSVersion.TLSv1_3)
    with contextlib.ExitStack() as stack:
        all_of_them = (b"", b"\x16", b"\x16\x03\x01", whole[:-1], whole, least)
        begun = {sent: stack.enter_context(here.connect("tcp", here.tls_port)) for sent in all_of_them}
        for sent, client in begun.items():
            client.sendall(sent)
        told = {sent: heard(client) for sent, client in begun.items()}
    assert (len(told[whole]) + 160) / (len(whole) + 160) < 1.7
    assert (len(told[least]) + 160) / (len(least) + 160) < 3


def test_a_hello_in_drops_and_one_without_end_are_ended(endpoint):
    here = endpoint(head_s=0.5)
    whole = hello()
    with here.connect("tcp", here.tls_port) as client, contextlib.suppress(ConnectionError):
        for number in range(len(whole)):
            client.sendall(whole[number : number + 1])
            time.sleep(0.01)  # what a slow peer does; the bound is on the whole
        pytest.fail("five seconds of handshake were taken")
    endless = b"\x16\x03\x01\x40\x00\x01\x00\xff\xff" + bytes(16380)
    with here.connect("tcp", here.tls_port) as client, contextlib.suppress(ConnectionError):
        for _ in range(100 * HANDSHAKE_LIMIT_BYTES // len(endless)):
            client.sendall(endless)
        pytest.fail("a handshake without end was taken")


def test_records_of_one_byte_are_counted_too(endpoint):
    here = endpoint()
    session = here.session("tcp", tls=True)
    with here.secure("tcp") as client:
        client.sendall(head("POST", "/v1/upload?bytes=300", session.id, "Content-Length: 300"))
        for _ in range(300):
            client.sendall(b"x")
        assert read_answer(client)[2]["bytes"] == 300
    assert here.ended(session)["end"] == "complete"


@given(st.lists(st.integers(1, 5 * RECORD_BYTES), max_size=20), st.data())
def test_payload_is_counted_by_whole_records_wherever_the_stream_is_looked_at(batches, data):
    marks, ends, stream, payload = Marks(), [(300, 0)], 300, 0
    marks.add(300, 0)
    for batch in batches:
        for start in range(0, batch, RECORD_BYTES):
            size = min(RECORD_BYTES, batch - start)
            stream += size + OVERHEAD_BYTES
            payload += size
            ends.append((stream, payload))
        marks.add(stream, payload)
        if data.draw(st.booleans()):  # an answer of the library's in between
            stream += 30
            marks.add(stream, payload)
    for place in sorted(data.draw(st.lists(st.integers(0, stream), max_size=20))):
        whole = max((p for end, p in ends if end <= place), default=0)
        assert marks.payload_in(place) == whole
    assert marks.payload_in(stream) == payload
