"""Where the measurement listener listens: both families unless told otherwise, and the same is served over both."""

import errno
import socket

import pytest

from tandem_server.endpoint import listener as module
from tandem_server.endpoint.listener import NoMultipathError, listen


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
