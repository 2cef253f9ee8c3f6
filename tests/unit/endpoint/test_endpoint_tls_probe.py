"""The probe's own connections against the endpoint's TLS listener: verified, timed, and what was acknowledged told by its payload."""

import ipaddress
import ssl
import time

import pytest
from endpoint_on_loopback import contexts, head
from hypothesis import given
from hypothesis import strategies as st

from tandem.experiment import measured
from tandem.experiment.asked import Asked, Origin, ProbePath
from tandem.experiment.base import Stop
from tandem.experiment.control import describe, whoami
from tandem.experiment.transfer import Transfer
from tandem.experiment.upload import Upload
from tandem.stream import unacknowledged
from tandem.stream.marks import OVERHEAD_BYTES, RECORD_BYTES, Marks
from tandem_server.cli.tls import make

PATH = ProbePath("a", "lo", None, None)


@pytest.fixture
def asked(endpoint, tmp_path):
    """The endpoint, and what an experiment at it is asked."""
    here = endpoint()
    ca = tmp_path / "ca.pem"
    ca.write_text("".join(ssl.DER_cert_to_PEM_cert(der) for der in contexts()[1].get_ca_certs(binary_form=True)))
    secure = Origin("https", "127.0.0.1", here.tls_port)
    return here, Asked("run-1", (PATH,), secure, secure, "x", str(ca), 30.0)


@pytest.mark.parametrize("kind", ["mptcp", "tcp"])
def test_a_download_is_read_whole_and_the_handshake_is_timed_apart(asked, kind):
    here, request = asked
    session = here.session(kind, tls=True)
    connected = measured.connect(request, kind, PATH, 30)
    transfer, deadline_ns = Transfer(), time.monotonic_ns() + 60 * 10**9
    with connected.socket:
        get = head("GET", "/v1/download?bytes=5000000", session.id)
        assert transfer.run(connected.stream, get, 5_000_000, None, 30, 0.002, deadline_ns, Stop()) is None
    assert transfer.received == 5_000_000
    assert connected.tls_ms > 0
    assert connected.connect_ms > 0
    assert here.ended(session)["bytes_acked"] == 5_000_000


@pytest.mark.parametrize(("kind", "size"), [("mptcp", 3_000_000), ("tcp", 100), ("tcp", 3_000_000)])
def test_an_upload_is_timed_to_its_last_acknowledgement(asked, kind, size):
    here, request = asked
    session = here.session(kind, tls=True)
    connected = measured.connect(request, kind, PATH, 30)
    up, deadline_ns = Upload(), time.monotonic_ns() + 60 * 10**9
    with connected.socket:
        post = head("POST", f"/v1/upload?bytes={size}", session.id, f"Content-Length: {size}")
        assert up.run(connected.stream, post, size, None, 30, deadline_ns, Stop()) is None
        assert unacknowledged(connected.stream) == 0
    assert (up.sent, up.acked, up.received) == (size, size, size)
    assert up.begun_ns < up.acked_ns
    assert here.ended(session)["end"] == "complete"


def test_an_upload_for_a_time_ends_whole(asked):
    here, request = asked
    session = here.session("tcp", tls=True)
    connected = measured.connect(request, "tcp", PATH, 30)
    up = Upload()
    with connected.socket:
        post = head("POST", "/v1/upload?seconds=0.3", session.id)
        assert up.run(connected.stream, post, None, 0.3, 30, time.monotonic_ns() + 60 * 10**9, Stop()) is None
    assert 0 < up.acked_in_time <= up.sent == up.received


def test_whoami_asks_with_tls_too(asked):
    _, request = asked
    assert whoami(request, (PATH,), 30) == {"a": "127.0.0.1"}


def test_the_certificate_of_another_authority_is_refused(asked, tmp_path):
    _, request = asked
    (tmp_path / "ca.pem").write_bytes(make("other", [ipaddress.ip_address("127.0.0.1")], 2)["ca.pem"][0])
    measured._context.cache_clear()
    with pytest.raises(ssl.SSLCertVerificationError) as refused:
        measured.connect(request, "tcp", PATH, 30)
    assert describe(refused.value) == "certificate: unable to get local issuer certificate"


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
