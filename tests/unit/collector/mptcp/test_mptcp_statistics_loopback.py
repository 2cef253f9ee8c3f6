"""Statistics of real sockets on loopback: MPTCP, plain TCP, and fallbacks from either side."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tandem import mptcp_abi as abi
from tandem.mptcp import sockets
from tandem.mptcp_abi.reader import Reader, StatisticsError

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
