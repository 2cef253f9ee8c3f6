"""A connection over a path with IPv4 and one with IPv6 alone, watched: both carry, and what a reset took comes back on either."""

import shutil
from collections.abc import Iterator

import pytest
from download_server import Behaviour
from mixed_paths import A4, B6, PROBE6, SERVER6, Both, mixed, parameters, why_not6
from run_download import Run
from two_paths import ADDRESS, SERVER, Lab, await_true
from watched_paths import Transfer, Watched, cut_once

from tandem.mptcp import sockets, sysctls
from tandem.mptcp.paths import Paths
from tandem.mptcp.watch import Watch

LACK = why_not6() or (None if shutil.which("nft") else "nft is not installed")
pytestmark = [pytest.mark.lab, pytest.mark.skipif(LACK is not None, reason=str(LACK))]
HOST = {"a": ADDRESS["a"], "b": PROBE6}
BOTH = sockets.Options(both_families=True)


@pytest.fixture
def watched() -> Iterator[Watched]:
    with mixed() as two:
        made = Watched(two, (A4, B6))
        try:
            yield made
        finally:
            made.close()


@pytest.fixture
def running(watched: Watched) -> Iterator[Transfer]:
    """Begun by IPv4 over a."""
    made = Transfer(watched.two, "a", SERVER, BOTH)
    try:
        await_true(lambda: set(made.carrying()) == set(HOST.values()), 60, "both subflows")
        yield made
    finally:
        made.close()


def cut(two: Lab, path: str, what: str = "meta l4proto tcp") -> None:
    """Whatever comes over ``path`` to the server is answered by a reset, from now on."""
    family = "ip6" if ":" in HOST[path] else "ip"
    two.server.run(
        f"nft 'add table inet cut; add chain inet cut in {{ type filter hook input priority 0; }}; "
        f"add rule inet cut in {family} saddr {HOST[path]} {what} reject with tcp reset'"
    )


def mend(two: Lab) -> None:
    two.server.run("nft delete table inet cut")


def manager(two: Lab) -> str | None:
    return two.probe.inside(lambda: sysctls.read(["net.mptcp.pm_type"]))["net.mptcp.pm_type"]


@pytest.mark.parametrize("lost", ["a", "b"])
def test_what_a_reset_took_comes_back_on_either_family(watched, running, lost):
    """The first subflow, by IPv4, and the one by IPv6 to the address that the server told once."""
    cut(watched.two, lost)
    await_true(lambda: watched.watch.losses(running.token), 60, "the loss")
    before = running.received
    await_true(lambda: running.received > before, 60, "bytes over the other")
    mend(watched.two)
    await_true(lambda: watched.of("subflow_restored"), 60, "the return")
    await_true(lambda: running.carrying().get(HOST[lost]), 60, "bytes over the subflow that returned")
    (told,) = watched.of("subflow_restored")
    (loss,) = watched.watch.losses(running.token)
    assert told.path == loss["path"] == lost
    assert told.took_ms == loss["back_after_ms"] > 0
    assert running.ended is None


def test_one_reset_is_mended_at_once_each_time(watched, running):
    """Twice: the address that the server told is not used up. What is lost within a second again waits longer."""
    for count in (1, 2):
        cut_once(watched.two, HOST["b"])
        await_true(lambda count=count: len(watched.of("subflow_restored")) == count, 60, f"return {count}")
        mend(watched.two)
        await_true(lambda: running.carrying().get(HOST["b"]), 60, "bytes over it")
    losses = watched.watch.losses(running.token)
    assert [loss["path"] for loss in losses] == ["b"] * 2
    assert "attempts" not in watched.of("subflow_restored")[0].detail


def test_another_connections_subflow_lives_on(watched, running):
    """Unlike an endpoint made anew, an order is for one connection: nobody waits and nobody is disturbed."""
    other = Transfer(watched.two, "a", SERVER, BOTH)
    try:
        await_true(lambda: set(other.carrying()) == set(HOST.values()), 60, "both subflows")
        port = next(s.local.port for s in running.reader.read().subflows if s.local.host == PROBE6)
        cut(watched.two, "b", f"tcp sport {port}")
        await_true(lambda: watched.of("subflow_restored"), 60, "the return")
        assert watched.watch.losses(other.token) == []
        assert len(other.reader.read().subflows) == 2
    finally:
        other.close()


@pytest.mark.parametrize("lost", ["a", "b"])
def test_an_address_that_goes_takes_its_subflow_and_brings_it_back(watched, running, lost):
    two, size = watched.two, 64 if ":" in HOST[lost] else 24
    two.probe.run(f"ip address del {HOST[lost]}/{size} dev tmp5-{lost}")
    await_true(lambda: HOST[lost] not in running.carrying(), 60, "its end")
    before = running.received
    await_true(lambda: running.received > before, 60, "bytes over the other")
    two.probe.run(f"ip address add {HOST[lost]}/{size} dev tmp5-{lost} {'nodad' if size == 64 else ''}")
    await_true(lambda: running.carrying().get(HOST[lost]), 60, "bytes over it again")
    assert [loss["path"] for loss in watched.watch.losses(running.token)] == [lost]
    assert running.ended is None


def test_new_connections_are_ours_only_while_families_differ(watched):
    two = watched.two
    assert manager(two) == "1"
    two.probe.run(f"ip address add {ADDRESS['b']}/24 dev tmp5-b; ip address del {PROBE6}/64 dev tmp5-b")
    await_true(lambda: manager(two) == "0", 60, "the kernel's again")
    two.probe.run(f"ip address del {ADDRESS['b']}/24 dev tmp5-b; ip address add {PROBE6}/64 dev tmp5-b nodad")
    await_true(lambda: manager(two) == "1", 60, "ours again")


def test_the_kernel_has_them_again_at_the_end_and_after_a_crash():
    with mixed() as two:
        watched = Watched(two, (A4, B6))
        watched.close()
        assert manager(two) == "0"
        two.probe.run("echo 1 >/proc/sys/net/mptcp/pm_type")  # as a collector that was killed leaves it
        paths = Paths((A4,))
        two.probe.inside(paths.apply)
        watch = two.probe.inside(lambda: Watch(paths))
        assert manager(two) == "0"
        two.probe.inside(watch.close)


def test_a_socket_of_ipv4_alone_gets_what_its_family_has(watched):
    """The kernel refuses the subflow by IPv6; its IPv4 one comes back all the same."""
    alone = Transfer(watched.two, "a", SERVER)
    try:
        await_true(lambda: alone.received, 60, "bytes")
        token = alone.token
        await_true(lambda: token in watched.watch._ordering.joins, 60, "its beginning heard")
        assert set(alone.carrying()) == {ADDRESS["a"]}
        assert alone.ended is None
    finally:
        alone.close()


@pytest.mark.parametrize("lost", ["a", "b"])
def test_begun_by_ipv6_it_takes_the_servers_word_of_ipv4(watched, lost):
    """The other way round; without that word it has one subflow."""
    alone = Transfer(watched.two, "b", SERVER6, BOTH)
    await_true(lambda: alone.received, 60, "bytes")
    assert set(alone.carrying()) == {PROBE6}
    alone.close()
    watched.two.server.run(f"ip mptcp endpoint add {SERVER} id 10 signal")
    one = Transfer(watched.two, "b", SERVER6, BOTH)
    try:
        await_true(lambda: set(one.carrying()) == set(HOST.values()), 60, "both subflows")
        cut_once(watched.two, HOST[lost])
        await_true(lambda: watched.of("subflow_restored"), 60, "the return")
        await_true(lambda: len(one.carrying()) == 2, 60, "both subflows again")
        assert [loss["path"] for loss in watched.watch.losses(one.token)] == [lost]
    finally:
        one.close()


def test_a_download_over_both_families_loses_a_subflow_and_tells_when_it_was_back(watched, tmp_path):
    """The experiment and the collector's watch together; the listener is the server's own."""
    two = watched.two
    endpoint = two.server.inside(lambda: Both(Behaviour()))
    run = Run(parameters(watched.paths, tmp_path, endpoint, SERVER, seconds=600), two.probe.enter)
    try:
        run.until(lambda sample: sample["connection"]["subflows"] == 2)
        cut_once(two, HOST["b"])
        await_true(lambda: watched.of("subflow_restored"), 60, "the return")
        run.until(lambda _: len({s["subflow"] for at in run.samples for s in at["subflows"]}) == 3)
        run.process.terminate()
        line = run.end()
    finally:
        run.process.kill()
        endpoint.close()
    assert line["failure"] == {"reason": "stopped", "retry": False}
    (loss,) = watched.watch.losses(int(line["connection"], 16))
    assert (loss["path"], loss["back_after_ms"] > 0) == ("b", True)
    assert sorted(s["path"] for s in line["result"]["subflows"]) == [
        "a",
        "b",
        "b",
    ]  # b's first, and the one that came back
