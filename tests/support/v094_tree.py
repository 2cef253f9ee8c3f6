"""A stand-in for a v0.94 kernel, which cannot be had here: its files (/proc/sys/net/mptcp, mptcp_net, mptcp_fullmesh, /sys/module), the
flags of its interfaces, its getsockopt as far as MPTCP_INFO, over bytes packed by hand; after its public source and after what
v0.94.1 was seen to do."""

import ctypes
import errno
import socket
import struct
import threading
from pathlib import Path
from typing import Any

from tandem import mptcp_abi

NOMULTIPATH = 0x80000
UP = 0x1003  # UP, BROADCAST, MULTICAST


NOTHING_YET_MS = 4_294_675_454
"""What it says of the time since the last byte came, before the first."""


def meta(acked: int = 5_000_000, received: int = 9_000_000_000, retransmits: int = 44) -> bytes:
    """struct mptcp_meta_info: 4 u8, 6 u32 (28 bytes), padding to 32, 2 u64."""
    since_ms = 12 if received else NOTHING_YET_MS
    return struct.pack("<BBBBIIIIIIIQQ", 1, 2, 0, 0, 204_000, 3, 11, since_ms, 13, retransmits, 0, acked, received)


def tcp_info(rtt_us: int = 40_000, received: int = 77) -> bytes:
    """struct tcp_info of Linux 4.14, field by field after its header: 104 bytes to total_retrans, 192 in all."""
    words = [0] * 24
    words[15], words[16], words[18] = rtt_us, rtt_us // 8, 10  # rtt, rttvar, snd_cwnd
    words[11] = 12 if received else NOTHING_YET_MS
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
    """``root``: give it to what reads the kernel's files. ``queue_s``: how late fullmesh takes what happened to interfaces, all that
    came meanwhile at once (half a second there). ``taken``: by address how often it was new to fullmesh, each time a new subflow."""

    def __init__(self, root: Path, release: str = "4.14.110", queue_s: float = 0.05, **sysctls: str) -> None:
        self.root, self.queue_s = root, queue_s
        self.taken: dict[str, int] = {}
        self._flags: dict[str, int | None] = {}
        self._addresses: dict[str, str] = {}
        self._known: list[str] = []
        self._queued, self._lock = False, threading.Lock()
        self.write("proc/sys/kernel/osrelease", release)
        told = {
            "mptcp_enabled": "1", "mptcp_version": "0", "mptcp_checksum": "1", "mptcp_debug": "0", "mptcp_syn_retries": "3",
            "mptcp_path_manager": "fullmesh", "mptcp_scheduler": "default", **sysctls,
        }  # fmt: skip
        for name, value in told.items():
            self.write(f"proc/sys/net/mptcp/{name}", value)
        self.write("proc/sys/net/ipv4/tcp_available_congestion_control", "cubic reno")
        self.write(
            "proc/thread-self/net/mptcp_net/mptcp",
            "  sl  loc_tok  rem_tok  v6 local_address remote_address st ns tx_queue rx_queue inode",
        )
        self.write(
            "proc/thread-self/net/mptcp_net/snmp",
            f"{'MPCapableSYNRX':32}\t0\n{'MPCapableSYNTX':32}\t4\n{'MPJoinSynTx':32}\t2",
        )
        self.module("mptcp_fullmesh", num_subflows="1", create_on_err="0")
        self._take()

    def write(self, name: str, text: str) -> None:
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(file.name + ".new").write_text(text + "\n")  # a reader sees it whole, as a file of /proc
        file.with_name(file.name + ".new").rename(file)

    def module(self, name: str, **parameters: str) -> None:
        (self.root / "sys/module" / name / "parameters").mkdir(parents=True)
        for parameter, value in parameters.items():
            self.write(f"sys/module/{name}/parameters/{parameter}", value)

    def interface(self, name: str, flags: int | None = UP, address: str | None = None) -> None:
        """There is one with these flags and this address, or (None) it has gone."""
        self._flags[name] = flags
        if address is not None:
            self._addresses[name] = address
        self._happened()

    def _happened(self) -> None:
        with self._lock:
            if not self._queued:
                self._queued = True
                timer = threading.Timer(self.queue_s, self._work)
                timer.daemon = True
                timer.start()

    def _work(self) -> None:
        with self._lock:
            self._queued = False
        self._take()

    def _take(self) -> None:
        """/proc/net/mptcp_fullmesh as mptcp_fm_seq_show prints it."""
        flags = {n: self._flags.get(n) for n in self._addresses}
        now = [a for n, a in self._addresses.items() if (flag := flags[n]) is not None and not flag & NOMULTIPATH]
        for address in set(now) - set(self._known):
            self.taken[address] = self.taken.get(address, 0) + 1
        self._known = now
        rows = [f"{number}, {number + 1}, 0, {address}" for number, address in enumerate(now)]
        heads = ["Index, Address-ID, Backup, IP-address", f"IPv4, next v4-index: {len(rows)}"]
        self.write("proc/thread-self/net/mptcp_fullmesh", "\n".join([*heads, *rows, "IPv6, next v6-index: 0"]))

    def flags(self, name: str) -> int | None:
        """As ``netlink.read_link_flags``."""
        return self._flags.get(name)

    def change(self, name: str, flags: int, mask: int) -> None:
        """As ``netlink.change_link_flags``, of this kernel."""
        before = self._flags.get(name)
        if before is None:
            raise OSError(errno.ENODEV, "No such device")
        self._flags[name] = before & ~mask | flags & mask
        self._happened()


class Connection:
    """A connection as this kernel tells of it: ``rows`` are local and remote end and bytes received, one a subflow, in the order in
    which they came to be (it lists the newest first); None: plain TCP."""

    def __init__(self, rows: list[tuple[tuple[str, int], tuple[str, int], int]] | None, monkeypatch: Any) -> None:
        self.rows, self._libc = rows, mptcp_abi._LIBC
        monkeypatch.setattr(mptcp_abi, "_LIBC", self)

    def getsockopt(self, fd: int, level: int, option: int, memory: object, length: object) -> int:
        """getsockopt(2); the header says sizes and where to write (do_tcp_getsockopt, mptcp_get_info)."""
        if (level, option) != (socket.IPPROTO_TCP, 45) or fd < 0:
            return self._libc.getsockopt(fd, level, option, memory, length)
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
        for number, (local, remote, received) in enumerate(self.rows[::-1]):
            ctypes.memmove(tcp_at + number * stride, tcp_info(1000 * (len(self.rows) - number), received), stride)
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
