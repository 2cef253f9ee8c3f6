"""The kernels' layouts: known bytes of Linux, and of v0.9x by its public header and source; any bytes: test_outside_bytes.py."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.hostile_json import said
from support.v094_tree import end, meta, tcp_info
from tandem import mptcp_abi as abi
from tandem.mptcp_abi import AbiError, Address, v094

KERNEL_6_1, KERNEL_6_18 = 232, 280


def linux_tcp_info(size: int, **values: int) -> bytes:
    """A linux_tcp_info of ``size`` bytes, zero but for fields given by offset, as o<offset>_<format>."""
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
    tcp = b"".join(linux_tcp_info(KERNEL_6_18, o0_B=1, o128_Q=n) for _, _, n in rows)
    return header, subflows, tcp


def test_fields_lie_where_the_kernel_puts_them_and_what_is_not_measured_yet_is_none():
    info = abi.decode_tcp_info(
        linux_tcp_info(KERNEL_6_18, o0_B=1, o68_I=41000, o80_I=77, o120_Q=5, o128_Q=6, o144_I=9, o148_I=40000)
    )
    assert (info.state, info.snd_cwnd_segments) == (1, 77)
    assert (info.rtt_us, info.min_rtt_us) == (41000, 40000)
    assert (info.bytes_acked, info.bytes_received, info.notsent_bytes) == (5, 6, 9)
    info = abi.decode_tcp_info(linux_tcp_info(KERNEL_6_18, o148_I=0xFFFFFFFF))
    assert (info.rtt_us, info.rcv_rtt_us, info.min_rtt_us, info.delivery_rate) == (None,) * 4
    raw = struct.pack("<6B2xII3Q3BxI4Q4xII", 1, 0, 0, 2, 2, 2, 0, 99, 1, 2, 3, 0, 0, 1, 5, 6, 7, 8, 9, 10, 11)
    info = abi.decode_mptcp_info(raw)
    assert (info.token, info.bytes_received, info.bytes_acked, info.last_data_recv_ms) == (99, 8, 9, 11)
    assert abi.decode_mptcp_info(raw[:48]) == (0, 99, None, None, None)
    assert abi.decode_mptcp_info(raw[:40]).token == 99


def test_fields_of_later_kernels_are_none_on_earlier_ones():
    for size, expected in ((192, (None, None)), (KERNEL_6_1, (2, 3)), (KERNEL_6_18, (2, 3))):
        info = abi.decode_tcp_info(linux_tcp_info(size, o200_Q=2, o224_I=3))
        assert (info.bytes_sent, info.rcv_ooo_packets) == expected, size


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
    body = linux_tcp_info(KERNEL_6_1, o128_Q=1) + linux_tcp_info(KERNEL_6_1, o128_Q=2)
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


# --- the layouts and files of the v0.9x kernel, packed here by hand after its public header and source; nothing of it ran there


HEADING = (
    "  sl  loc_tok  rem_tok  v6 local_address                         remote_address                        st ns"
    " tx_queue rx_queue inode\n"
)
LINE = (
    "   0: 2D0B85BA 39F8CCC5  0 6601A8C0:E89F                         2DE66882:0050                         01 02"
    " 00000010:00000400 21895\n"
)
SIX = (
    "   1: 1 2  1 B80D0120000000000000000001000000:1F90 B80D0120000000000000000002000000:01BB 01 01"
    " 00000000:00000000 7\n"
)
HIDDEN = LINE.replace("2D0B85BA 39F8CCC5", "FFFFFFFF FFFFFFFF")


def ends(local: str, remote: str, port=80) -> bytes:
    return end(local, 40_000) + end(remote, port)


def header(subflows: int, tcp_bytes=192, meta_bytes=48, ends_bytes=56) -> bytes:
    """struct mptcp_info as the kernel leaves it: five u32, then four pointers, aligned as this machine's."""
    sizes = (tcp_bytes, subflows * tcp_bytes, meta_bytes, ends_bytes, subflows * ends_bytes)
    pointer = struct.calcsize("P")
    return struct.pack("<5I", *sizes) + bytes(4 if pointer == 8 else 0) + bytes(4 * pointer)


def test_connection_and_subflows_are_told_by_the_kernels_own_stride():
    # The newest first.
    pairs = ends("2001:db8::1", "2001:db8::2", 443) + ends("10.64.1.2", "203.0.113.10")
    info = v094.decode_info(header(2), meta(), tcp_info(90_000, 88) + tcp_info(), pairs)
    assert info.mptcp == (0, None, 9_000_000_000, 5_000_000, 12)
    first, second = info.subflows
    assert (first.local, first.remote) == (Address("10.64.1.2", 40_000), Address("203.0.113.10", 80))
    assert (second.local, second.remote) == (Address("2001:db8::1", 40_000), Address("2001:db8::2", 443))
    assert (first.tcp.rtt_us, first.tcp.min_rtt_us, first.tcp.bytes_received) == (40_000, 39_000, 77)
    assert (second.tcp.rtt_us, second.tcp.bytes_received, second.tcp.delivery_rate) == (90_000, 88, 8_000)
    assert (first.tcp.delivery_rate, first.tcp.bytes_sent, first.tcp.bytes_retrans) == (8_000, None, None), (
        "not before 4.19"
    )
    info = v094.decode_info(
        header(2, tcp_bytes=160), meta(), tcp_info()[:160] + tcp_info(5000)[:160], ends("1.2.3.4", "5.6.7.8") * 2
    )
    assert [s.tcp.rtt_us for s in info.subflows] == [5000, 40_000]
    assert info.subflows[0].tcp.delivery_rate is None
    early = v094.decode_info(header(1), meta(received=0), tcp_info(received=0), ends("1.2.3.4", "5.6.7.8"))
    assert early.mptcp.last_data_recv_ms is None, "nothing has come yet"


FULLMESH = """Index, Address-ID, Backup, IP-address
IPv4, next v4-index: 2
0, 1, 0, 10.64.1.2
1, 2, 1, 10.65.1.2, 4
IPv6, next v6-index: 1
0, 9, 0, 2001:0db8:0000:0000:0000:0000:0000:0001
"""


def test_the_addresses_that_fullmesh_uses_are_read_and_another_file_is_refused():
    assert v094.parse_fullmesh(FULLMESH) == {"10.64.1.2", "10.65.1.2", "2001:db8::1"}
    rows = ["sl loc_tok\n", *(FULLMESH + row for row in ("2, 3, 0\n", "x, 3, 0, 1.2.3.4\n", "2, 3, 0, 1.2.3\n"))]
    assert [text for text in rows if not said(AbiError, v094.parse_fullmesh, text)] == []


def test_sizes_that_contradict_each_other_and_another_file_are_refused():
    rows = [
        (header(1)[:20], tcp_info(), ends("1.2.3.4", "5.6.7.8")),
        (header(2), tcp_info(), ends("1.2.3.4", "5.6.7.8") * 2),
        *(
            (header(1, **{name: size}), tcp_info(), ends("1.2.3.4", "5.6.7.8"))
            for name, size in (("meta_bytes", 44), ("ends_bytes", 40), ("tcp_bytes", 100))
        ),
        (struct.pack("<5I", 192, 200, 48, 56, 56) + header(1)[20:], tcp_info() + bytes(8), ends("1.2.3.4", "5.6.7.8")),
        (struct.pack("<5I", 192, 384, 48, 56, 56) + header(1)[20:], tcp_info() * 2, ends("1.2.3.4", "5.6.7.8")),
    ]
    assert [
        (told, tcp, pairs)
        for told, tcp, pairs in rows
        if not said(AbiError, v094.decode_info, told, meta(), tcp, pairs)
    ] == []
    changes = (("6601A8C0:", "6601A8:"), (" 0 6601", " 2 6601"), ("E89F", "+89F"), ("21895", "21_895"))
    rows = ["sl nothing\n", HEADING + "0: 1 2\n", *(HEADING + LINE.replace(*change) for change in changes)]
    assert [text for text in rows if not said(AbiError, v094.parse_connections, text)] == []


def test_connections_and_counters_by_the_kernels_files():
    assert v094.parse_connections(HEADING + LINE + SIX + HIDDEN) == (
        (0x2D0B85BA, 2, 21895),
        (1, 1, 7),
        (None, 2, 21895),
    )
    assert v094.parse_connections(HEADING) == v094.parse_connections("") == ()
    text = "MPCapableSYNRX                  \t3\nMPJoinSynTx                     \t-1\n"
    assert v094.parse_counters(text) == {"MPCapableSYNRX": 3, "MPJoinSynTx": -1}
    with pytest.raises(AbiError):
        v094.parse_counters("MPCapableSYNRX 1 2\n")
