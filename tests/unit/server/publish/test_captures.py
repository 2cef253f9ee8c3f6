"""Published captures: headers of TCP, other addresses, checksums that still hold."""

import contextlib
import io
import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.sample_export import checksum, pcap, tcp4, tcp6
from tandem_server.publish.captures import CaptureError, Reader, faults, rewrite
from tandem_server.publish.identities import Rewriter

REWRITER = Rewriter(b"k" * 32, {}, frozenset(), places=True)
ADDED = b"\x1e\x10\x31\x02" + ipaddress.ip_address("9.9.9.9").packed + b"hmachmac"
ADDED6 = b"\x01\x01\x1e\x1e\x31\x02" + ipaddress.ip_address("2a00::7").packed + b"\x20\xfbhmachmac"


def published(content):
    out = io.BytesIO()
    count = rewrite(io.BytesIO(content), out, REWRITER.address)
    return out.getvalue(), count


def packets(content):
    return [packet.content for packet in Reader(io.BytesIO(content))]


def other(text):
    return REWRITER.address(ipaddress.ip_address(text)).packed


def whole_checksum(content, payload, size):
    """Of TCP with the payload that was cut: 0 where the checksum holds."""
    ip = 20 if size == 4 else 40
    segment = content[ip:] + payload
    return checksum(content[ip - 2 * size : ip] + struct.pack(">IHH", len(segment), 0, 6) + segment)


@pytest.mark.parametrize("payload", [b"", b"GET /secret HTTP/1.1", b"odd"])
def test_addresses_and_payload_are_gone_and_checksums_hold(payload):
    four, six = tcp4("10.64.0.2", "9.9.9.9", payload, ADDED), tcp6("2a00::1", "2a00::2", payload, ADDED6)
    content, count = published(pcap([four, six]))
    assert count == 2
    first, second = packets(content)
    assert first[12:20] == ipaddress.ip_address("10.64.0.2").packed + other("9.9.9.9")
    assert first[44:48] == other("9.9.9.9")
    assert second[8:40] == other("2a00::1") + other("2a00::2")
    assert second[66:82] == other("2a00::7")
    assert checksum(first[:20]) == 0
    assert whole_checksum(first, payload, 4) == whole_checksum(second, payload, 16) == 0
    assert (len(first), len(second)) == (len(four) - len(payload), len(six) - len(payload))
    assert [packet.length for packet in Reader(io.BytesIO(content))] == [len(four), len(six)]
    assert list(faults(io.BytesIO(content))) == []
    damaged = bytearray(four)
    damaged[24] ^= 4
    content, _ = published(pcap([bytes(damaged)]))
    assert whole_checksum(packets(content)[0], payload, 4) != 0, "a damaged packet stays damaged"


@pytest.mark.parametrize(("link", "skip"), [(1, 14), (113, 16), (276, 20), (12, 0)])
@pytest.mark.parametrize("order", ["<", ">"])
def test_what_lies_before_the_ip_header_is_gone(link, skip, order):
    sent = tcp4("10.0.0.1", "10.0.0.2", b"payload")
    content, _ = published(pcap([b"\xb8" * skip + sent], link, order))
    assert packets(content) == [sent[:40]]
    assert Reader(io.BytesIO(content)).link == 101


def test_what_is_no_whole_header_of_tcp_is_dropped():
    good = tcp4("10.0.0.1", "10.0.0.2", b"")
    udp = good[:9] + b"\x11" + good[10:]
    later = good[:6] + b"\x00\x10" + good[8:]
    options = tcp4("10.0.0.1", "10.0.0.2", b"", ADDED)[:-8]
    content, count = published(pcap([good, udp, later, options, b"", good[:30], b"\x46" + good[1:], b"\x00" * 60]))
    assert count == 1
    assert packets(content) == [good]


def test_faults_of_what_was_not_made_here_and_what_is_no_capture_is_one_line_with_a_hint():
    sent = tcp4("10.0.0.1", "9.9.9.9", b"payload")
    found = faults(io.BytesIO(pcap([tcp4("10.0.0.1", "10.0.0.2", b""), sent, sent])))
    assert sorted(found) == [(2, "payload or no TCP"), (2, "public address")]
    assert list(faults(io.BytesIO(pcap([], 1)))) == [(0, "MAC address")]
    for content, words in ((b"", "no pcap"), (b"\x0a\x0d\x0d\x0a" * 9, "no pcap"), (pcap([], 147), "link type 147")):
        with pytest.raises(CaptureError, match=f"{words}.*hint:"):
            published(content)


@given(st.binary(max_size=400))
def test_any_bytes_become_a_capture_without_faults_or_none(content):
    for begun in (b"", pcap([])):
        made = io.BytesIO()
        with contextlib.suppress(CaptureError):
            rewrite(io.BytesIO(begun + content), made, REWRITER.address)
            assert list(faults(io.BytesIO(made.getvalue()))) == []
