"""Where the measurement listener listens: both families unless told otherwise, and the same is served over both."""

import errno
import socket
from contextlib import nullcontext

import pytest

from support.v094_tree import Connection
from tandem.mptcp_abi import v094
from tandem_server.endpoint import listener as module
from tandem_server.endpoint import sockets
from tandem_server.endpoint.listener import Controllers, NoMultipathError, family_of, listen
from tandem_server.endpoint.sessions import Limits, Refused, SessionRequest, SessionTable
from tandem_server.endpoint.sockets import (
    Options,
    OptionsError,
    apply_accepted,
    effective,
    handshake_seen,
    negotiate,
    read_environment,
)


def test_where_the_kernel_has_no_ipv6_it_listens_for_ipv4_and_no_multipath_is_said_as_such(monkeypatch, caplog) -> None:
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

    def refused(*_: int) -> socket.socket:
        raise OSError(errno.EPROTONOSUPPORT, "Protocol not supported")

    monkeypatch.setattr(module.socket, "socket", refused)
    with pytest.raises(NoMultipathError, match=r"net\.mptcp\.enabled=1"):
        listen("::", 0)


# --- the endpoint on the v0.9x kernel: a stand-in of its files and options, v094_tree


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


def test_the_listener_is_a_tcp_socket_that_asks_for_multipath_and_a_kernel_where_it_is_off_serves_tcp(asked):
    with listen("127.0.0.1", 0) as listener:
        assert asked.multipath == [1]
        assert listener.getsockopt(socket.SOL_SOCKET, socket.SO_PROTOCOL) == socket.IPPROTO_TCP
    listen("127.0.0.1", 0, multipath=False).close()
    assert asked.multipath == [1, 0], "with mptcp_enabled=1 every socket is one of Multipath TCP"
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
    monkeypatch.setattr(sockets, "_V094_COUNTERS", tmp_path / "snmp")
    real = socket.socket.getsockopt
    monkeypatch.setattr(
        socket.socket,
        "getsockopt",
        lambda made, level, option, *size: value if (level, option) == (6, 42) else real(made, level, option, *size),
        raising=False,
    )
    # The newest subflow is listed first; the handshake was the oldest's.
    rows = [(("203.0.113.10", 8480), ("10.64.1.2", 40_000), 0), (("203.0.113.10", 8480), ("10.65.1.2", 40_001), 0)]
    Connection(rows, monkeypatch)
    seen = handshake_seen(connection[0])
    assert (seen["multipath"], seen["multipath_syns"]) == (word, 17)
    assert (seen["handshake_rtt_ms"] == 1.0) == (word == "native")


def test_the_environment_says_which_protocol_the_scheduler_is_of(tmp_path, monkeypatch):
    def read(root, **files):
        folder = root / "proc/sys/net/mptcp"
        folder.mkdir(parents=True)
        for name, value in files.items():
            (folder / name).write_text(value + "\n")
        environment = read_environment(root)
        return environment["mptcp_protocol"], environment["scheduler"], environment["mptcp_enabled"]

    assert read(tmp_path / "v094", mptcp_enabled="1", mptcp_scheduler="default") == ("0", "default", "1")
    assert read(tmp_path / "mainline", enabled="1", scheduler="bpf_rr") == ("1", "bpf_rr", "1")
    assert read(tmp_path / "neither") == (None, None, None)
    (tmp_path / "namespace" / v094.FOLDER).mkdir(parents=True)  # not the first: it shows itself, and hides its sysctls
    monkeypatch.setattr(v094, "in_force", lambda _root: {})
    assert read(tmp_path / "namespace") == ("0", None, None)


class Accepted:
    """An accepted connection of that kernel: its first subflow has what the listener had, whatever is set later."""

    def __init__(self, began_with: str, multipath: int = 1) -> None:
        self.first, self.later, self.multipath = began_with, began_with, multipath

    def setsockopt(self, level, option, value):
        if (level, option) == (socket.IPPROTO_TCP, socket.TCP_CONGESTION):
            self.later = value.decode()
            self.first = self.first if self.multipath else self.later

    def getsockopt(self, level, option, *_size):
        if option == socket.TCP_CONGESTION and level == socket.IPPROTO_TCP:
            return self.later.encode() + b"\0"
        return self.multipath if option == 42 else 0


def test_a_controller_is_never_set_on_a_connection_whose_first_subflow_would_keep_its_own(monkeypatch):
    monkeypatch.setattr(v094, "present", lambda: True)
    wanted = Options("lia")
    for connection in (Accepted("lia"), Accepted("cubic", multipath=0)):  # plain TCP takes it at any time
        apply_accepted(connection, wanted)
        assert (connection.first, connection.later) == ("lia", "lia")
    plain = Accepted("lia", multipath=0)  # the listener still has what a session of before chose
    monkeypatch.setattr(sockets, "_trial", lambda: nullcontext(Accepted("cubic")))
    apply_accepted(plain, Options())
    assert plain.later == "cubic", "a session without a controller has the system's"
    begun = Accepted("cubic")
    with pytest.raises(OptionsError, match=r"'lia': the connection began with cubic; hint"):
        apply_accepted(begun, wanted)
    assert begun.later == "cubic", "nothing may say lia of a connection that is half cubic"


def test_each_session_begins_with_its_own_controller_and_one_that_wants_another_waits(registry):
    registry.probes.add("probe-1")
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accepted() -> str:
            with socket.create_connection(listener.getsockname()), listener.accept()[0] as connection:
                return effective(connection).congestion_control

        own = accepted()
        other = "reno" if own != "reno" else "cubic"
        sessions = SessionTable(registry, Limits(), choose=Controllers([listener]).choose)

        def opened(name: str | None, kind: str = "mptcp") -> str:
            return sessions.open("probe-1", SessionRequest("run-1", kind, "a", {}, options=Options(name))).id

        first = opened(other)
        assert accepted() == other
        for name in (own, None):
            with pytest.raises(Refused, match=f"one congestion controller at a time, which is {other} now; hint"):
                opened(name)
        opened(own, kind="tcp")  # whose connections take theirs at any time
        opened(other)
        assert accepted() == other
        sessions.end_all()
        opened(None)
        assert accepted() == own
        assert sessions.get(first) is None
        sessions.end_all()
        with pytest.raises(OptionsError, match="'absent'"):
            opened("absent")


def test_where_the_list_of_controllers_is_hidden_a_socket_is_tried(tmp_path):
    assert negotiate(Options("reno"), tmp_path / "hidden").congestion_control == "reno"
    with pytest.raises(OptionsError, match="'absent': the server's kernel does not have it"):
        negotiate(Options("absent"), tmp_path / "hidden")
