"""The endpoint on the v0.9x kernel: bytes and files after its public source; nothing here ran on it."""

import ctypes
import errno
import socket
import struct

import pytest

from tandem.mptcp_abi import v094
from tandem.mptcp_abi.v094_sockets import InfoReader
from tandem_server.endpoint import handshake, sampler
from tandem_server.endpoint.environment import read_environment
from tandem_server.endpoint.listener import NoMultipathError, family_of, listen


class Asked:
    """What setsockopt is asked; ``refuse``: an errno with which MPTCP_ENABLED is refused."""

    def __init__(self) -> None:
        self.multipath, self.refuse = [], None

    def setsockopt(self, _socket, level, option, value):
        if (level, option) == (socket.IPPROTO_TCP, 42):
            self.multipath.append(value)
            if self.refuse is not None:
                raise OSError(self.refuse, "refused")


@pytest.fixture
def asked(monkeypatch):
    """That kernel, whose options no socket of this one is given: their numbers mean other things here."""
    made = Asked()
    monkeypatch.setattr(v094, "present", lambda: True)
    monkeypatch.setattr(socket.socket, "setsockopt", lambda *words: made.setsockopt(*words), raising=False)
    return made


def test_the_listener_is_a_tcp_socket_that_asks_for_multipath(asked):
    with listen("127.0.0.1", 0) as listener:
        assert asked.multipath == [1]
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    listen("127.0.0.1", 0, multipath=False).close()
    assert asked.multipath == [1, 0], "with mptcp_enabled=1 every socket is one of Multipath TCP"


def test_a_kernel_where_it_is_off_is_refused_with_the_mend_and_serves_tcp(asked):
    asked.refuse = errno.EPERM
    with pytest.raises(NoMultipathError, match=r"net\.mptcp\.mptcp_enabled=1 on the v0\.94 kernel"):
        listen("127.0.0.1", 0)
    listen("127.0.0.1", 0, multipath=False).close()
    assert family_of("127.0.0.1", multipath=True) == ("127.0.0.1", socket.AF_INET)


def info_of(remotes, asked_of):
    """getsockopt of MPTCP_INFO for a connection with these far ends; None: it is plain TCP."""

    def getsockopt(_fd, level, option, memory, length):
        asked_of.append((level, option))
        if remotes is None:
            ctypes.set_errno(errno.EINVAL)
            return -1
        size = length._obj.value
        header = ctypes.string_at(memory, size)
        pointer = struct.calcsize("P")
        meta_at, _, tcp_at, ends_at = struct.unpack("<4Q" if pointer == 8 else "<4I", header[-4 * pointer :])
        ctypes.memmove(meta_at, struct.pack("<4B6I4x2Q", 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 54_321, 0), 48)
        for number, (host, port) in enumerate(remotes):
            tcp = bytearray(192)
            tcp[0] = 1
            struct.pack_into("<Q", tcp, 120, 1000 * (number + 1))  # tcpi_bytes_acked, after 104 bytes and two rates
            ctypes.memmove(tcp_at + 192 * number, bytes(tcp), 192)
            own = struct.pack("<H", 2) + struct.pack(">H", 8080) + socket.inet_aton("203.0.113.10") + bytes(20)
            far = struct.pack("<H", 2) + struct.pack(">H", port) + socket.inet_aton(host) + bytes(20)
            ctypes.memmove(ends_at + 56 * number, own + far, 56)
        count = len(remotes)
        ctypes.memmove(memory, struct.pack("<5I", 192, 192 * count, 48, 56, 56 * count), 20)
        return 0

    return getsockopt


@pytest.fixture
def connection():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted = listener.accept()[0]
        with accepted:
            yield accepted, client


@pytest.mark.usefixtures("asked")
def test_the_senders_subflows_are_told_with_their_far_ends(connection, monkeypatch):
    calls = []
    told = info_of([("198.51.100.1", 4000), ("198.51.100.2", 5000)], calls)
    monkeypatch.setattr(sampler, "InfoReader", lambda made, room: InfoReader(made, room, told))
    snapshot = sampler.Sampler(connection[0]).read()
    assert calls == [(socket.IPPROTO_TCP, 45)]
    assert (snapshot.multipath, snapshot.acked_bytes) == (True, 54_321)
    assert [(f.id, f.remote, f.port, f.tcp.bytes_acked) for f in snapshot.flows] == [
        ("1", "198.51.100.1", 4000, 1000),
        ("2", "198.51.100.2", 5000, 2000),
    ]


@pytest.mark.usefixtures("asked")
def test_a_connection_that_is_plain_tcp_is_told_as_such(connection, monkeypatch):
    told = info_of(None, [])
    monkeypatch.setattr(sampler, "InfoReader", lambda made, room: InfoReader(made, room, told))
    snapshot = sampler.Sampler(connection[0]).read()
    assert (snapshot.multipath, [f.id for f in snapshot.flows]) == (False, ["1"])


@pytest.mark.usefixtures("asked")
@pytest.mark.parametrize(("value", "word"), [(1, "native"), (0, "none")])
def test_the_handshake_is_told_by_the_option_and_the_kernels_counter(connection, monkeypatch, tmp_path, value, word):
    (tmp_path / "snmp").write_text(f"{'MPCapableSYNRX':32}\t17\n")
    monkeypatch.setattr(handshake, "_V094_COUNTERS", tmp_path / "snmp")
    real = socket.socket.getsockopt
    monkeypatch.setattr(
        socket.socket,
        "getsockopt",
        lambda made, level, option, *size: value if (level, option) == (6, 42) else real(made, level, option, *size),
        raising=False,
    )
    seen = handshake.seen(connection[0])
    assert (seen["multipath"], seen["multipath_syns"]) == (word, 17)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"mptcp_enabled": "1", "mptcp_scheduler": "default"}, ("0", "default", "1")),
        ({"enabled": "1", "scheduler": "bpf_rr"}, ("1", "bpf_rr", "1")),
        ({}, (None, None, None)),
    ],
)
def test_the_environment_says_which_protocol_the_scheduler_is_of(tmp_path, files, told):
    folder = tmp_path / "sys/net/mptcp"
    folder.mkdir(parents=True)
    for name, value in files.items():
        (folder / name).write_text(value + "\n")
    environment = read_environment(tmp_path)
    assert (environment["mptcp_protocol"], environment["scheduler"], environment["mptcp_enabled"]) == told
