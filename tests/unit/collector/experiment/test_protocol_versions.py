"""Two ends that speak different versions of Multipath TCP: what would be measured is plain TCP, so it is refused."""

import socket
from unittest.mock import Mock

import pytest

from tandem.experiment import base, measured_connection
from tandem.mptcp import kernels, sockets


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch):
    """Connects by a kind, on a kernel of a version, to a server that said which it speaks."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        asked = Mock(measurement=Mock(host=host, port=port, scheme="http"))
        path = Mock(interface=None, source=sockets.Source())

        def connect(kind: sockets.Kind, here: int, there: str | None) -> None:
            monkeypatch.setattr(base, "server_environment", {"mptcp_protocol": there})
            made = Mock(protocol=here)
            made.name, made.fault.return_value = "upstream", None
            made.open_socket = lambda family, *, multipath: socket.socket(family)  # noqa: ARG005
            monkeypatch.setattr(kernels, "here", lambda: made)
            measured_connection.connect(asked, kind, path, 5.0).socket.close()

        yield connect


def test_another_version_is_refused_with_the_hint_and_tcp_goes_on(connect):
    for here, there in ((1, "0"), (0, "1")):
        with pytest.raises(sockets.UnsupportedError, match=f"version {there} .*this probe version {here} .*; hint: "):
            connect("mptcp", here, there)
        connect("tcp", here, there)


def test_the_same_version_and_a_server_that_says_none_are_measured(connect):
    for here, there in ((1, "1"), (0, "0"), (1, None)):
        connect("mptcp", here, there)
