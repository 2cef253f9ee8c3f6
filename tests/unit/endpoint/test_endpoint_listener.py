"""Where the measurement listener listens: both families unless told otherwise."""

import errno
import socket

import pytest

from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem_server.endpoint import listener as module
from tandem_server.endpoint.listener import NoMultipathError, listen


def _lacks(family: int, protocol: int) -> bool:
    try:
        socket.socket(family, socket.SOCK_STREAM, protocol).close()
    except OSError:
        return True
    return False


def greeted(listener: socket.socket, host: str) -> tuple[str, bytes]:
    """Who was accepted, and what he said."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.connect((host, listener.getsockname()[1]))
        client.sendall(b"hello")
        connection, peer = listener.accept()
        with connection:
            return str(peer[0]), connection.recv(5)


@pytest.mark.skipif(_lacks(socket.AF_INET6, 0), reason="no IPv6 in this kernel")
@pytest.mark.parametrize("multipath", [True, False])
def test_a_listener_on_every_address_takes_both_families(multipath: bool) -> None:
    if multipath and _lacks(socket.AF_INET6, IPPROTO_MPTCP):
        pytest.skip("this kernel's Multipath TCP has no IPv6")
    with listen("::", 0, multipath=multipath) as listener:
        assert greeted(listener, "127.0.0.1") == ("::ffff:127.0.0.1", b"hello")
        assert greeted(listener, "::1") == ("::1", b"hello")


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
