"""The layouts and files of the v0.9x kernel, packed here by hand after its public header and source; nothing of it ran there."""

import struct

import pytest

from support.hostile_json import said
from support.v094_tree import end, meta, tcp_info
from tandem.mptcp_abi import AbiError, Address, v094

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


def test_before_the_first_byte_nothing_came_at_any_time():
    early = v094.decode_info(header(1), meta(received=0), tcp_info(received=0), ends("1.2.3.4", "5.6.7.8"))
    assert early.mptcp.last_data_recv_ms is None
    late = v094.decode_info(header(1), meta(), tcp_info(), ends("1.2.3.4", "5.6.7.8"))
    assert late.mptcp.last_data_recv_ms == 12


FULLMESH = """Index, Address-ID, Backup, IP-address
IPv4, next v4-index: 2
0, 1, 0, 10.64.1.2
1, 2, 1, 10.65.1.2, 4
IPv6, next v6-index: 1
0, 9, 0, 2001:0db8:0000:0000:0000:0000:0000:0001
"""


def test_the_addresses_that_fullmesh_uses_are_read_and_another_file_is_refused():
    assert v094.parse_fullmesh(FULLMESH) == {"10.64.1.2", "10.65.1.2", "2001:db8::1"}
    for text in (
        "",
        "sl loc_tok\n",
        FULLMESH + "2, 3, 0\n",
        FULLMESH + "x, 3, 0, 1.2.3.4\n",
        FULLMESH + "2, 3, 0, 1.2.3\n",
    ):
        with pytest.raises(AbiError):
            v094.parse_fullmesh(text)


def test_sizes_that_contradict_each_other_and_another_file_are_refused():
    rows = [
        (header(1)[:20], tcp_info(), ends("1.2.3.4", "5.6.7.8")),
        (header(2), tcp_info(), ends("1.2.3.4", "5.6.7.8") * 2),
        (header(1, meta_bytes=44), tcp_info(), ends("1.2.3.4", "5.6.7.8")),
        (header(1, ends_bytes=40), tcp_info(), ends("1.2.3.4", "5.6.7.8")),
        (header(1, tcp_bytes=100), tcp_info(), ends("1.2.3.4", "5.6.7.8")),
        (struct.pack("<5I", 192, 200, 48, 56, 56) + header(1)[20:], tcp_info() + bytes(8), ends("1.2.3.4", "5.6.7.8")),
        (struct.pack("<5I", 192, 384, 48, 56, 56) + header(1)[20:], tcp_info() * 2, ends("1.2.3.4", "5.6.7.8")),
    ]
    assert [
        (told, tcp, pairs)
        for told, tcp, pairs in rows
        if not said(AbiError, v094.decode_info, told, meta(), tcp, pairs)
    ] == []
    rows = [
        "sl nothing\n",
        HEADING + "0: 1 2\n",
        HEADING + LINE.replace("6601A8C0:", "6601A8:"),
        HEADING + LINE.replace(" 0 6601", " 2 6601"),
        HEADING + LINE.replace("E89F", "+89F"),
        HEADING + LINE.replace("21895", "21_895"),
        HEADING + LINE.replace("00000010:", "1000000010:"),
    ]
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


def test_it_is_told_from_the_stock_kernel_also_where_its_sysctls_are_hidden(tmp_path):
    assert not v094.present(tmp_path)
    (tmp_path / "proc/sys/net/mptcp").mkdir(parents=True)
    (tmp_path / "proc/sys/net/mptcp/enabled").write_text("1\n")
    assert not v094.present(tmp_path), "the stock kernel's name"
    (tmp_path / "proc/sys/net/mptcp/mptcp_enabled").write_text("1\n")
    assert v094.present(tmp_path)
    (tmp_path / "proc/thread-self/net/mptcp_net").mkdir(parents=True)
    assert v094.present(tmp_path)
