"""A path whose network gives IPv6 only: used where the kernel's Multipath TCP has IPv6, and named where it has not."""

import pytest
from download_lab import SIZE
from dual_family_paths import B6, HOP6, PROBE6, SERVER6, begin_download, mixed, why_not6

from support.experiment_process import server_of
from support.scripted_endpoint import Behaviour, Endpoint
from support.two_paths import ADDRESS, PATHS, SERVER, Lab, await_true, lab_with, up
from tandem.mptcp import sockets
from tandem.mptcp.paths import Paths

pytestmark = lab_with(lack=why_not6())


@pytest.fixture
def two():
    with mixed() as made:
        yield made


def everything(two: Lab) -> list[str]:
    return sorted(
        two.probe.run("ip rule; ip -6 rule; ip route; ip -6 route; ip mptcp endpoint; ip mptcp limits").splitlines()
    )


def download(two: Lab, paths: Paths, tmp_path, kind: str, primary: str, server: str) -> dict:
    endpoint = two.server.inside(lambda: Endpoint(Behaviour(), host="::"))
    line = begin_download(two, paths, server_of(tmp_path, endpoint, server), kind=kind, path=primary, bytes=SIZE).end()
    endpoint.close()
    return line


def test_an_ipv4_connection_takes_the_ipv6_only_path_too(two, tmp_path):
    """Its server must tell its IPv6 address (``ip mptcp endpoint add … signal``): the kernel pairs addresses of one family."""
    before = everything(two)
    paths = up(two, (PATHS[0], B6))
    assert paths.addresses == {"a": ADDRESS["a"], "b": PROBE6}
    line = download(two, paths, tmp_path, "mptcp", "a", SERVER)
    assert line["failure"] is None
    assert line["result"]["fallback"] is False
    assert {s["path"]: s["bytes"] > 0 for s in line["result"]["subflows"]} == {"a": True, "b": True}
    two.probe.inside(paths.remove)
    assert everything(two) == before


def test_a_name_is_resolved_to_what_the_path_has(two):
    seen = {
        name: two.probe.inside(lambda name=name: sockets.only6(name)) for name in ("tmp5-a", "tmp5-b", "no-such-one")
    }
    assert seen == {"tmp5-a": False, "tmp5-b": True, "no-such-one": False}
    assert two.probe.inside(lambda: sockets.resolve(SERVER6, 80, "tmp5-b")) == (SERVER6, 80)
    with pytest.raises(OSError, match="family"):
        two.probe.inside(lambda: sockets.resolve(SERVER6, 80, "tmp5-a"))


def test_where_both_are_there_ipv4_is_taken(two):
    two.probe.run(f"ip address add {ADDRESS['b']}/24 dev tmp5-b")
    paths = up(two)
    assert paths.addresses == ADDRESS
    two.probe.run(
        f"ip address del {ADDRESS['b']}/24 dev tmp5-b; ip -6 route add default via {HOP6} dev tmp5-b proto ra"
    )
    events = two.probe.inside(paths.check)
    assert [(e.kind, e.detail) for e in events] == [("endpoint_restored", f"tmp5-b: {ADDRESS['b']} became {PROBE6}")]
    assert paths.statuses["b"].gateway == HOP6  # the router advertised it; the one configured is of the other family
    assert "10.71.2.1" not in two.probe.run("ip rule; ip mptcp endpoint; ip route show table all proto 71")


def test_a_kernel_without_it_leaves_a_named_state(two, monkeypatch):
    monkeypatch.setattr(sockets, "multipath6", lambda: False)
    paths = Paths((PATHS[0], B6))
    two.probe.inside(paths.apply)
    await_true(lambda: two.probe.inside(paths.check) is not None and "a" in paths.addresses, 60, "a up")
    status = paths.statuses["b"]
    assert status.state == "ipv6_only_unusable"
    assert PROBE6 in status.detail
    assert PROBE6 not in two.probe.run("ip -6 rule; ip mptcp endpoint")
