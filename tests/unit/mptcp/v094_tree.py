"""Files of a v0.94 kernel, written after its public documentation and source: /proc/sys/net/mptcp, /proc/net/mptcp_net, /sys/module;
the flags of its interfaces. And its getsockopt, as far as MPTCP_INFO, over bytes packed by hand."""

import ctypes
import errno
import socket
import struct
from pathlib import Path

NOMULTIPATH = 0x80000
UP = 0x1003  # UP, BROADCAST, MULTICAST


def meta(acked: int = 5_000_000, received: int = 9_000_000_000, retransmits: int = 44) -> bytes:
    """struct mptcp_meta_info: 4 u8, 6 u32 (28 bytes), padding to 32, 2 u64."""
    return struct.pack("<BBBBIIIIIIIQQ", 1, 2, 0, 0, 204_000, 3, 11, 12, 13, retransmits, 0, acked, received)


def tcp_info(rtt_us: int = 40_000, received: int = 77) -> bytes:
    """struct tcp_info of Linux 4.14, field by field after its header: 104 bytes to total_retrans, 192 in all."""
    words = [0] * 24
    words[15], words[16], words[18] = rtt_us, rtt_us // 8, 10  # rtt, rttvar, snd_cwnd
    rest = struct.pack("<4Q6IQ3Q", 1000, 1 << 40, 66, received, 1, 2, 3, 39_000, 4, 5, 8_000, 9, 10, 11)
    made = struct.pack("<8B", 1, *[0] * 7) + struct.pack("<24I", *words) + rest
    assert len(made) == 192
    return made


def end(host: str, port: int) -> bytes:
    """Half of struct mptcp_sub_info: a union as long as sockaddr_in6."""
    if ":" in host:
        packed = socket.inet_pton(socket.AF_INET6, host)
        return struct.pack("<H", socket.AF_INET6) + struct.pack(">HI", port, 0) + packed + bytes(4)
    return struct.pack("<H", socket.AF_INET) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(20)


class Tree:
    """``root``: give it to what reads the kernel's files."""

    def __init__(self, root: Path, release: str = "4.14.110", **sysctls: str) -> None:
        self.root = root
        self._flags: dict[str, int | None] = {}
        self.write("proc/sys/kernel/osrelease", release)
        told = {
            "mptcp_enabled": "1", "mptcp_version": "0", "mptcp_checksum": "1", "mptcp_debug": "0", "mptcp_syn_retries": "3",
            "mptcp_path_manager": "fullmesh", "mptcp_scheduler": "default", **sysctls,
        }  # fmt: skip
        for name, value in told.items():
            self.write(f"proc/sys/net/mptcp/{name}", value)
        self.write("proc/sys/net/ipv4/tcp_available_congestion_control", "cubic reno")
        self.write(
            "proc/net/mptcp_net/mptcp",
            "  sl  loc_tok  rem_tok  v6 local_address remote_address st ns tx_queue rx_queue inode",
        )
        self.write(
            "proc/net/mptcp_net/snmp", f"{'MPCapableSYNRX':32}\t0\n{'MPCapableSYNTX':32}\t4\n{'MPJoinSynTx':32}\t2"
        )
        self.module("mptcp_fullmesh", num_subflows="1", create_on_err="0")

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")

    def module(self, name: str, **parameters: str) -> None:
        (self.root / "sys/module" / name / "parameters").mkdir(parents=True)
        for parameter, value in parameters.items():
            self.write(f"sys/module/{name}/parameters/{parameter}", value)

    def interface(self, name: str, flags: int | None = UP) -> None:
        """There is one with these flags, or (None) it has gone."""
        self._flags[name] = flags

    def flags(self, name: str) -> int | None:
        """As ``link_flags.read``."""
        return self._flags.get(name)

    def change(self, name: str, flags: int, mask: int) -> None:
        """As ``link_flags.change``, of this kernel."""
        before = self._flags.get(name)
        if before is None:
            raise OSError(errno.ENODEV, "No such device")
        self._flags[name] = before & ~mask | flags & mask


class Connection:
    """A connection as this kernel tells of it: ``rows`` are local and remote end and bytes received, one a subflow; None: plain TCP."""

    def __init__(self, rows: list[tuple[tuple[str, int], tuple[str, int], int]] | None) -> None:
        self.rows = rows

    def getsockopt(self, _fd: int, level: int, option: int, memory: object, length: object) -> int:
        """getsockopt(2); the header says sizes and where to write (do_tcp_getsockopt, mptcp_get_info)."""
        assert (level, option) == (socket.IPPROTO_TCP, 45)
        if self.rows is None:
            ctypes.set_errno(errno.EINVAL)
            return -1
        pointer = struct.calcsize("P")
        size = (24 if pointer == 8 else 20) + 4 * pointer
        header = ctypes.string_at(memory, size)
        info_len, sub_len, meta_len, ends_len, ends_all = struct.unpack_from("<5I", header)
        meta_at, first, tcp_at, ends_at = struct.unpack("<4Q" if pointer == 8 else "<4I", header[-4 * pointer :])
        assert first == 0, "that one may be gone"
        told_meta = meta(1234, sum(row[2] for row in self.rows), 7)[:meta_len]
        ctypes.memmove(meta_at, told_meta, len(told_meta))
        stride = min(info_len, 192)
        for number, (local, remote, received) in enumerate(self.rows):
            ctypes.memmove(tcp_at + number * stride, tcp_info(1000 * (number + 1), received), stride)
            ends = end(*local) + end(*remote)
            assert len(ends) == ends_len == 56
            ctypes.memmove(ends_at + number * 56, ends, 56)
        assert len(self.rows) * stride <= sub_len
        assert len(self.rows) * 56 <= ends_all
        sizes = (stride, stride * len(self.rows), len(told_meta), 56, 56 * len(self.rows))
        told = struct.pack("<5I", *sizes) + header[20:]
        ctypes.memmove(memory, told, size)
        length._obj.value = size
        return 0
