"""Where the measurement listener listens: both families unless told otherwise, and the same is served over both."""

import errno
import socket

import pytest

from tandem.mptcp_abi import v094
from tandem_server.endpoint import handshake
from tandem_server.endpoint import listener as module
from tandem_server.endpoint.environment import read_environment
from tandem_server.endpoint.listener import NoMultipathError, family_of, listen


def test_where_the_kernel_has_no_ipv6_it_listens_for_ipv4(monkeypatch, caplog) -> None:
    whole = socket.socket

    def without6(family: int, *more: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")
        return whole(family, *more)

    monkeypatch.setattr(module.socket, "socket", without6)
    with listen("::", 0, multipath=False) as listener:
        assert listener.getsockname()[0] == "0.0.0.0"  # noqa: S104  what is asserted
    assert "IPv4 alone" in caplog.text
    with pytest.raises(module.ListenError, match="Protocol not supported"):
        listen("::1", 0, multipath=False)


def test_no_multipath_at_all_is_said_as_such(monkeypatch) -> None:
    def refused(*_: int) -> socket.socket:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")

    monkeypatch.setattr(module.socket, "socket", refused)
    with pytest.raises(NoMultipathError, match=r"net\.mptcp\.enabled=1"):
        listen("::", 0)


# --- the endpoint on the v0.9x kernel: bytes and files after its public source; nothing here ran on it


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


@pytest.fixture
def connection():
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_connection(listener.getsockname()) as client:
        accepted = listener.accept()[0]
        with accepted:
            yield accepted, client


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
