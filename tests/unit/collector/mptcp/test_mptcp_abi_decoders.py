"""The kernel's layouts: known bytes, any bytes, and the kernel of this machine."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from tandem import mptcp_abi as abi

KERNEL_6_1, KERNEL_6_12, KERNEL_6_18 = 232, 248, 280


def tcp_info(size: int, **values: int) -> bytes:
    """A tcp_info of ``size`` bytes, zero but for fields given by offset, as o<offset>_<format>."""
    raw = bytearray(KERNEL_6_18)
    for key, value in values.items():
        offset, code = key[1:].split("_")
        struct.pack_into("<" + code, raw, int(offset), value)
    return bytes(raw[:size])


def sockaddr(host: str, port: int, size: int = 128) -> bytes:
    if ":" in host:
        raw = struct.pack("<H", socket.AF_INET6) + struct.pack(">HI", port, 0) + socket.inet_pton(socket.AF_INET6, host)
    else:
        raw = struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host)
    return raw.ljust(size, b"\0")


def full(rows: list[tuple[int, str, int]], room: int, total: int | None = None) -> tuple[bytearray, bytes, bytes]:
    """What a 6.18 kernel writes for subflows (id, local host, bytes received)."""
    header = bytearray(abi.FULL_INFO_BYTES)
    total = len(rows) if total is None else total
    struct.pack_into("<6I", header, 0, KERNEL_6_18, KERNEL_6_18, 264, 264, total, room)
    struct.pack_into("<Q", header, 40 + 64, 4711)  # mptcpi_bytes_received
    subflows = b"".join(
        struct.pack("<I4x", i) + sockaddr(h, 1000 + i) + sockaddr("203.0.113.10", 8480) for i, h, _ in rows
    )
    tcp = b"".join(tcp_info(KERNEL_6_18, o0_B=1, o128_Q=n) for _, _, n in rows)
    return header, subflows, tcp


def test_fields_lie_where_the_kernel_puts_them_and_what_is_not_measured_yet_is_none():
    info = abi.decode_tcp_info(
        tcp_info(KERNEL_6_18, o0_B=1, o68_I=41000, o80_I=77, o120_Q=5, o128_Q=6, o144_I=9, o148_I=40000)
    )
    assert (info.state, info.snd_cwnd_segments) == (1, 77)
    assert (info.rtt_us, info.min_rtt_us) == (41000, 40000)
    assert (info.bytes_acked, info.bytes_received, info.notsent_bytes) == (5, 6, 9)
    info = abi.decode_tcp_info(tcp_info(KERNEL_6_18, o148_I=0xFFFFFFFF))
    assert (info.rtt_us, info.rcv_rtt_us, info.min_rtt_us, info.delivery_rate) == (None,) * 4
    raw = struct.pack("<6B2xII3Q3BxI4Q4xII", 1, 0, 0, 2, 2, 2, 0, 99, 1, 2, 3, 0, 0, 1, 5, 6, 7, 8, 9, 10, 11)
    info = abi.decode_mptcp_info(raw)
    assert (info.token, info.bytes_received, info.bytes_acked, info.last_data_recv_ms) == (99, 8, 9, 11)
    assert abi.decode_mptcp_info(raw[:48]) == (0, 99, None, None, None)
    assert abi.decode_mptcp_info(raw[:40]).token == 99


@pytest.mark.parametrize(
    ("size", "sent", "out_of_order"), [(192, None, None), (KERNEL_6_1, 2, 3), (KERNEL_6_12, 2, 3), (KERNEL_6_18, 2, 3)]
)
def test_fields_of_later_kernels_are_none_on_earlier_ones(size, sent, out_of_order):
    info = abi.decode_tcp_info(tcp_info(size, o200_Q=2, o224_I=3))
    assert (info.bytes_sent, info.rcv_ooo_packets) == (sent, out_of_order)


def test_full_info_gives_each_subflow_with_its_counters_by_the_kernels_strides():
    info = abi.decode_full_info(*full([(1, "10.0.0.1", 100), (3, "::ffff:10.0.0.2", 200), (4, "fd00::1", 300)], room=8))
    assert [(s.id, s.local, s.tcp.bytes_received) for s in info.subflows] == [
        ("1", ("10.0.0.1", 1001), 100),
        ("3", ("10.0.0.2", 1003), 200),
        ("4", ("fd00::1", 1004), 300),
    ]
    assert info.mptcp.bytes_received == 4711
    info = abi.decode_full_info(*full([(1, "10.0.0.1", 1)], room=1, total=3))
    assert (info.total, len(info.subflows)) == (3, 1)
    # Elements of 232 bytes, as 6.1 returns them, in a buffer made for longer ones.
    body = tcp_info(KERNEL_6_1, o128_Q=1) + tcp_info(KERNEL_6_1, o128_Q=2)
    buffer = struct.pack("<4I", 16, 2, KERNEL_6_1, KERNEL_6_1) + body + b"\xee" * 400
    assert [t.bytes_received for t in abi.decode_tcp_array(buffer)] == [1, 2]


@given(counts=st.tuples(*[st.integers(0, 2**32 - 1)] * 4), room=st.integers(0, 20), data=st.binary(max_size=300))
def test_sizes_that_contradict_the_buffers_are_refused(counts, room, data):
    header = bytearray(abi.FULL_INFO_BYTES)
    struct.pack_into("<6I", header, 0, counts[0], counts[1], counts[2], counts[3], room, room)
    if room and (counts[1] * room > len(data) or counts[3] * room > len(data) or counts[1] < 104):
        with pytest.raises(abi.AbiError):
            abi.decode_full_info(header, data, data)


def test_what_is_too_short_or_has_another_header_or_family():
    rows = [
        *((abi.decode_tcp_info, bytes(103)), (abi.decode_mptcp_info, bytes(39)), (abi.decode_tcp_array, bytes(15))),
        *((abi.decode_address_array, struct.pack("<4I", *head)) for head in ((8, 0, 232, 256), (0, 1, 0, 0))),
        (abi.decode_tcp_array, struct.pack("<4I", 16, 1, 0, 50) + bytes(50)),
    ]
    assert [(decoder, raw) for decoder, raw in rows if not said(abi.AbiError, decoder, raw)] == []
    with pytest.raises(abi.AbiError):
        abi.decode_full_info(bytes(10), b"", b"")
    assert [
        abi.decode_address(raw) for raw in (b"", struct.pack("<H", socket.AF_UNIX) + bytes(30), sockaddr("::1", 1)[:20])
    ] == [None] * 3
