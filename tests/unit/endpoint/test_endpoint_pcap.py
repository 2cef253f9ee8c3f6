"""Capture files: records parted and judged, whatever the bytes are."""

import contextlib
import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandem_server.endpoint.pcap import PcapError, belongs, ends_of, read_header, record_bytes, records

SLL2, SLL = 276, 113


def header(link=SLL2, magic=0xA1B2C3D4):
    return struct.pack("<IHHiIII", magic, 2, 4, 0, 0, 160, link)


def record(source, target, link=SLL2, protocol=6):
    """One TCP segment between (address, port) pairs."""
    one, two = (ipaddress.ip_address(end[0]) for end in (source, target))
    ports = struct.pack(">HH", source[1], target[1]) + bytes(16)
    if one.version == 4:
        packet = bytes([0x46, *bytes(8), protocol, 0, 0]) + one.packed + two.packed + bytes(4) + ports  # with an option
    else:
        packet = bytes([0x60, *bytes(5), protocol, 64]) + one.packed + two.packed + ports
    kind = b"\x08\x00" if one.version == 4 else b"\x86\xdd"
    frame = (kind + bytes(18) if link == SLL2 else bytes(14) + kind) + packet
    return struct.pack("<4I", 1, 2, len(frame), len(frame) + 1400) + frame


A, B, HERE = ("192.0.2.1", 4000), ("192.0.2.1", 4001), ("198.51.100.1", 8480)
A6, HERE6 = ("2001:db8::1", 4000), ("2001:db8::2", 8480)


@pytest.mark.parametrize("link", [SLL, SLL2])
@pytest.mark.parametrize(("peer", "here"), [(A, HERE), (A6, HERE6)])
def test_both_directions_of_a_connection_belong_to_it(link, peer, here):
    assert ends_of(record(peer, here, link), link) == (peer, here)
    for source, target in ((peer, here), (here, peer)):
        assert belongs(record(source, target, link), link, {peer}, 8480)
        assert not belongs(record(source, target, link), link, {B}, 8480)
        assert not belongs(record(source, target, link), link, {peer}, 8481)


def test_what_is_no_tcp_or_cut_off_is_nobodys_and_a_mapped_address_is_ipv4():
    assert ends_of(record(("::ffff:192.0.2.1", 4000), HERE6), SLL2)[0] == A
    assert ends_of(record(A, HERE, protocol=17), SLL2) is None
    whole = record(A, HERE)
    assert all(ends_of(whole[:length], SLL2) in (None, (A, HERE)) for length in range(16, len(whole)))
    assert ends_of(whole[:50], SLL2) is None


def test_headers_are_read_records_parted_and_a_cut_one_left_out():
    both = record(A, HERE) + record(HERE, B)
    assert list(records(both)) == [record(A, HERE), record(HERE, B)]
    assert list(records(both[:-1])) == [record(A, HERE)]
    assert read_header(header()).link_type == SLL2
    assert read_header(header(SLL, 0xA1B23C4D)).link_type == SLL
    for raw in (b"", header()[:-1], header(magic=0), header(link=1), b"\xff" * 24):
        with pytest.raises(PcapError):
            read_header(raw)
    with pytest.raises(PcapError, match="a record of"):
        record_bytes(struct.pack("<4I", 0, 0, 1 << 30, 0))


@given(st.binary(max_size=200), st.sampled_from([SLL, SLL2]))
def test_any_bytes_are_records_or_refused(raw, link):
    with contextlib.suppress(PcapError):
        for one in records(raw):
            assert len(one) >= 16
            ends_of(one, link)
    with contextlib.suppress(PcapError):
        read_header(raw[:24])
