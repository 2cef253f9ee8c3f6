"""From samples to rows (rates, totals that outlive their subflow, shares), and statistics of real sockets on loopback."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandem import mptcp_abi as abi
from tandem.mptcp import sockets
from tandem.mptcp.statistics import PathName, Series, shares
from tandem.mptcp_abi import SubflowSample
from tandem.mptcp_abi.reader import ConnectionSample, Reader, StatisticsError

NAMES = {"10.0.0.1": PathName("a", "A"), "10.0.0.2": PathName("b", "B")}


def subflow(
    number: int, host: str, received: int, state: int = abi.ESTABLISHED, rcv_rtt_us: int = 50_000
) -> SubflowSample:
    raw = bytearray(280)
    raw[0] = state
    raw[68:72] = (41_000).to_bytes(4, "little")
    raw[92:96] = rcv_rtt_us.to_bytes(4, "little")
    raw[128:136] = received.to_bytes(8, "little")
    return SubflowSample(str(number), abi.Address(host, 1), abi.Address("203.0.113.10", 2), abi.decode_tcp_info(raw))


def sample(at_ms: int, *subflows: SubflowSample, fallback: bool = False) -> ConnectionSample:
    return ConnectionSample(at_ms * 1_000_000, fallback, None, subflows, len(subflows))


def series() -> Series:
    return Series(lambda s: NAMES.get(s.local.host, PathName(None, None)) if s.local else PathName(None, None))


def test_goodput_is_the_difference_over_the_interval_also_of_a_subflow_that_joins_within_it():
    s = series()
    first = s.add(sample(0, subflow(1, "10.0.0.1", 1000)), 900)
    assert "goodput_bit_per_s" not in first["connection"]
    assert "goodput_bit_per_s" not in first["subflows"][0]
    second = s.add(sample(200, subflow(1, "10.0.0.1", 26_000)), 25_900)
    assert second["connection"]["goodput_bit_per_s"] == pytest.approx(1_000_000)
    assert second["subflows"][0]["goodput_bit_per_s"] == pytest.approx(1_000_000)
    s = series()
    s.add(sample(0, subflow(1, "10.0.0.1", 0)), 0)
    row = s.add(sample(100, subflow(1, "10.0.0.1", 0), subflow(2, "10.0.0.2", 1250)), 0)
    assert row["subflows"][1]["goodput_bit_per_s"] == pytest.approx(100_000)
    assert row["connection"]["subflows"] == 2
    s = series()
    s.add(sample(0, subflow(1, "10.0.0.1", 0)), 0)
    assert shares(s.ordered()) == [0.0], "without any byte"
    s.note(sample(90, subflow(1, "10.0.0.1", 12_000)))
    row = s.add(sample(100, subflow(1, "10.0.0.1", 12_500)), 12_500)
    assert row["subflows"][0]["goodput_bit_per_s"] == pytest.approx(1_000_000)


def test_a_closed_subflow_keeps_its_counters_a_fallback_is_remembered_and_one_in_its_handshake_is_not_alive():
    s = series()
    s.add(sample(0, subflow(1, "10.0.0.1", 3000), subflow(2, "10.0.0.2", 1000)), 4000)
    s.add(sample(100, subflow(2, "10.0.0.2", 6000)), 9000)
    totals = s.ordered()
    assert [(t.subflow, t.bytes) for t in totals] == [("1", 3000), ("2", 6000)]
    assert shares(totals) == pytest.approx([1 / 3, 2 / 3])
    s = series()
    s.add(sample(0, subflow(0, "10.0.0.1", 0), fallback=True), 0)
    assert s.add(sample(100, subflow(0, "10.0.0.1", 0)), 0)["connection"]["fallback"] is True
    s = series()
    row = s.add(sample(0, subflow(1, "10.0.0.1", 0), subflow(2, "10.0.0.2", 0, abi.SYN_SENT)), 0)
    assert row["connection"]["subflows"] == 1
    assert s.totals["2"].established_ns is None
    s.note(sample(30, subflow(2, "10.0.0.2", 0)))
    assert s.totals["2"].established_ns == 30_000_000
    assert s.totals["2"].handshake_rtt_ms == 41
    assert [t.subflow for t in s.ordered()] == ["1", "2"]


def test_the_median_rtt_is_the_middle_one_or_the_mean_of_the_two_in_the_middle():
    s = series()
    medians = []
    for number, rtt_us in enumerate((0, 30_000, 10_000, 20_000, 45_000)):  # 0: not measured yet
        s.add(sample(number * 100, subflow(1, "10.0.0.1", number, rcv_rtt_us=rtt_us)), number)
        medians.append(s.ordered()[0].rtt_ms_median)
    assert medians == [None, 30.0, 20.0, 20.0, 25.0]


# --- statistics of real sockets on loopback: MPTCP, plain TCP, and fallbacks from either side


ENABLED = Path("/proc/sys/net/mptcp/enabled")
needs_mptcp = pytest.mark.skipif(
    not ENABLED.exists() or ENABLED.read_text().strip() != "1", reason="this kernel has no Multipath TCP, or it is off"
)
MPTCP, TCP = abi.IPPROTO_MPTCP, 0


@contextmanager
def pair(
    server_protocol: int, client_kind: sockets.Kind, sent: int = 30_000
) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connected pair over which the server has sent ``sent`` bytes and the client read them."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, server_protocol) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        client = sockets.connect(client_kind, listener.getsockname(), sockets.Source("lo"), 60).socket
        server = listener.accept()[0]
        with client, server:
            server.sendall(bytes(sent))
            got = 0
            while got < sent:
                got += len(client.recv(65536))
            yield client, server


@needs_mptcp
def test_the_way_without_full_info_reads_the_same():
    with pair(MPTCP, "mptcp") as (client, _):
        reader = Reader(client)
        new = reader.read()
        reader._full = False  # as on Linux 6.1, which lacks MPTCP_FULL_INFO
        old = reader.read()
        assert [(s.local, s.remote, s.tcp.bytes_received) for s in old.subflows] == [
            (s.local, s.remote, s.tcp.bytes_received) for s in new.subflows
        ]
        assert old.subflows[0].id == "1"


def test_a_closed_socket_and_an_unknown_interface_are_named():
    with pair(TCP, "tcp") as (client, _):
        reader = Reader(client)
        client.close()
        with pytest.raises(StatisticsError):
            reader.read()
    with pytest.raises(OSError, match="No such device"):
        sockets.connect("tcp", ("127.0.0.1", 9), sockets.Source("tmp5-none"), 1)
