"""Paths that rest: no endpoint, no subflow but a connection's first; all as before afterwards, and nothing is told as lost."""

from collections.abc import Iterator

import pytest
from watched_paths import Transfer, Watched

from support.two_paths import ADDRESS, Lab, await_true, lab, lab_with

pytestmark = lab_with()


@pytest.fixture
def watched() -> Iterator[Watched]:
    with lab() as two:
        made = Watched(two)
        try:
            yield made
        finally:
            made.close()


def rest(watched: Watched, *names: str) -> None:
    watched.paths.suspended.request(names)
    watched.watch.wake()
    assert watched.paths.suspended.wait(5)


def endpoints(two: Lab) -> str:
    return two.probe.run("ip mptcp endpoint show")


def test_a_resting_path_gets_no_subflow_and_has_them_again_afterwards(watched):
    running = Transfer(watched.two, "a")
    later = []
    try:
        await_true(lambda: set(running.carrying()) == set(ADDRESS.values()), 60, "both subflows")
        rest(watched, "b")
        assert ADDRESS["b"] not in endpoints(watched.two)
        await_true(lambda: set(running.carrying()) == {ADDRESS["a"]}, 60, "the resting path's subflow ends")
        later.append(Transfer(watched.two, "a"))
        before = running.received
        await_true(lambda: running.received > before + 1_000_000, 60, "bytes over the other")
        assert set(later[0].carrying()) == {ADDRESS["a"]}
        # Routes stay: the control channel, and a connection's first subflow.
        later.append(Transfer(watched.two, "b"))
        assert ADDRESS["b"] in later[1].carrying()
        rest(watched)
        assert ADDRESS["b"] in endpoints(watched.two)
        await_true(lambda: set(running.carrying()) == set(ADDRESS.values()), 60, "both subflows again")
    finally:
        for one in (running, *later):
            one.close()
    assert watched.of("endpoint_restored") == []
    assert watched.of("path_down") == []


def test_a_path_that_comes_back_while_it_rests_goes_on_resting(watched):
    rest(watched, "b")
    watched.two.probe.run("ip addr del 10.71.2.1/24 dev tmp5-b")
    await_true(lambda: watched.of("path_down"), 60, "it is gone")
    watched.two.probe.run("ip addr add 10.71.2.1/24 dev tmp5-b")
    await_true(lambda: "b" in watched.paths.addresses, 60, "it is back")
    assert ADDRESS["b"] not in endpoints(watched.two)
    rest(watched)
    assert ADDRESS["b"] in endpoints(watched.two)
