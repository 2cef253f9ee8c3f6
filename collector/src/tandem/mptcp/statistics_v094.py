"""Read one connection's statistics from the v0.9x kernel: MPTCP_INFO, or TCP_INFO where the connection is plain TCP.

Made after that kernel's public header and source; it has not run there. It does not show a connection that left Multipath TCP after its
handshake (an infinite mapping): ``fallback`` is true only where the handshake already was plain TCP.
"""

from __future__ import annotations

import errno
import os
import socket
from pathlib import Path

from tandem import mptcp_abi as abi
from tandem.mptcp.samples import ROOM, ConnectionSample, StatisticsError, SubflowSample, plain
from tandem.mptcp_abi import v094
from tandem.mptcp_abi.calling import GetSockOpt, Memory, Numbers
from tandem.mptcp_abi.v094_sockets import InfoReader, MultipathSocket


class Reader:
    """Reads one socket again and again with the same buffers. ``getsockopt``, ``root``: the kernel's call and its files."""

    def __init__(self, connection: socket.socket, getsockopt: GetSockOpt | None = None, root: Path = Path("/")) -> None:
        self._socket, self._root = connection, root
        self._asked = isinstance(connection, MultipathSocket)
        self._info, self._plain = InfoReader(connection, ROOM, getsockopt), Memory(abi.TCP_INFO_BYTES)
        self._numbers = Numbers()
        self._token: int | None = None

    def read(self, now_ns: int) -> ConnectionSample:
        """One sample, of this moment (CLOCK_MONOTONIC); StatisticsError when the connection can no longer be read."""
        try:
            info = self._info.read()
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise StatisticsError(error.errno, error.strerror) from error
            return plain(self._socket, self._plain, now_ns, fallback=self._asked)
        rows = tuple(SubflowSample(self._numbers.of(s.local, s.remote), *s) for s in info.subflows)
        return ConnectionSample(now_ns, False, self._whole(info), rows, len(rows))

    def _whole(self, info: v094.Info) -> abi.MptcpInfo:
        """In the words of the stock kernel; what this one does not say is absent."""
        if self._token is None:
            self._token = _token(self._socket, self._root)
        return abi.MptcpInfo(
            subflows=max(0, len(info.subflows) - 1),
            add_addr_signal=None,
            add_addr_accepted=None,
            flags=0,
            token=self._token,
            write_seq=None,
            snd_una=None,
            rcv_nxt=None,
            checksum=None,
            retransmits=info.meta.total_retrans_segments,
            bytes_retrans=None,
            bytes_sent=None,
            bytes_received=info.meta.bytes_received,
            bytes_acked=info.meta.bytes_acked,
            subflows_total=None,
            last_data_recv_ms=info.meta.last_data_recv_ms,
        )


def _token(connection: socket.socket, root: Path) -> int | None:
    """The connection's token, by its socket's inode; None for who has no CAP_NET_ADMIN."""
    try:
        told = v094.parse_connections((root / v094.FOLDER / "mptcp").read_text())
    except (OSError, abi.AbiError):
        return None
    return v094.token_of(told, os.fstat(connection.fileno()).st_ino)
