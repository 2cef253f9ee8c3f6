"""Where the measurement listener listens: both families unless told otherwise, and the same is served over both."""

import errno
import socket

import pytest
from endpoint_on_loopback import head, read_answer, request

from tandem.mptcp_abi import IPPROTO_MPTCP
from tandem_server.endpoint import listener as module
from tandem_server.endpoint.listener import Acceptor, NoMultipathError, family_of, listen
from tandem_server.endpoint.paths import PathPeer


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


@pytest.mark.skipif(family_of("::", multipath=True)[1] != socket.AF_INET6, reason="this kernel has no IPv6 for it")
@pytest.mark.parametrize("protocol", [IPPROTO_MPTCP, socket.IPPROTO_TCP])
@pytest.mark.parametrize(("host", "family"), [("::1", socket.AF_INET6), ("127.0.0.1", socket.AF_INET)])
def test_downloads_and_uploads_over_both_families(endpoint, protocol, host, family):
    here = endpoint()
    paths = {"six": PathPeer("A", "::1"), "four": PathPeer("B", "127.0.0.1")}
    session = here.sessions.open("probe-1", "run-1", "any", None, paths, None, None, budget_bytes=300_000)
    listener = listen("::", 0, multipath=protocol == IPPROTO_MPTCP)
    acceptor = Acceptor(listener, lambda *them: here.measurement.serve(*them[:4]), here.door)

    def exchange(*sent):
        with socket.socket(family, socket.SOCK_STREAM, protocol) as client:
            client.settimeout(60)
            client.connect((host, listener.getsockname()[1]))
            for one in sent:
                client.sendall(one)
            return *read_answer(client), client.getsockname()[1]

    try:
        *_, told, port = exchange(request("/v1/whoami"))
        assert told == {"address": host, "port": port}
        status, _, body, port = exchange(request("/v1/download?bytes=200000", session.id))
        assert (status, len(body)) == (200, 200_000)
        upload = head("POST", "/v1/upload?bytes=5", session.id, "Content-Length: 5")
        assert exchange(upload, b"12345")[2]["bytes"] == 5
        down, up = here.sessions.end(session.id, "probe-1").summaries
    finally:
        acceptor.stop()
    assert down["peer"] == down["subflows"][0]["remote"] == {"address": host, "port": port}
    assert {down["subflows"][0]["path"], up["subflows"][0]["path"]} == {"six" if family == socket.AF_INET6 else "four"}
    assert down["multipath"] is (protocol == IPPROTO_MPTCP)
